#pragma once
#include <concepts>
#include <type_traits>

namespace rivulet {

/// A T, const or not: what a list of fields takes.
template <class A, class T>
concept Either = std::same_as<std::remove_const_t<A>, T>;

/// A struct with one list of its fields. Behind the struct stands
///
///   constexpr void fields(Either<Move> auto& m, auto&& visit) { visit("from", m.from); ... }
///
/// and whatever walks over fields comes from it: bytes and hashes (sync/message/field_bytes.h), JSON both
/// ways and differences (runtime/decisions/). The order is that of the bytes. tests/unit/sync_fields_test.cpp
/// compares each list with its struct.
template <class T>
concept HasFields = requires(T& value) { fields(value, [](const char*, auto&) {}); };

}  // namespace rivulet
