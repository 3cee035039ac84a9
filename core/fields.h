#pragma once
#include <concepts>
#include <type_traits>

namespace rivulet {

/// A T, const or not: the parameter type of a field list.
template <class A, class T>
concept Either = std::same_as<std::remove_const_t<A>, T>;

/// A struct with a single list of its fields. The struct is followed by
///
///   constexpr void fields(Either<Move> auto& m, auto&& visit) { visit("from", m.from); ... }
///
/// and everything that iterates over fields uses this list: bytes and hashes (sync/message/field_bytes.h),
/// JSON reading, writing and differences (runtime/decisions/). The order of the list is the order of the
/// bytes. tests/unit/sync_fields_test.cpp compares each list with its struct.
template <class T>
concept HasFields = requires(T& value) { fields(value, [](const char*, auto&) {}); };

}  // namespace rivulet
