#include "runtime/state_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/check.h"
#include "runtime/whole_file.h"

// Layout, little-endian, nothing between the fields:
//   magic 8 bytes | version u32 | scalar u32 (0 f32, 1 f64) | parameters u64 | buffers u64 | step u64 | rows
//   u64 agreed digest: low u64, high u64 | length of the model name u32, name | partitions u32 per partition:
//   topic u32, partition i32, next offset i64, next row u32, trained u64, dropped u64 parameters, momentum,
//   buffers XXH3-128 of all bytes before: low u64, high u64
namespace rivulet::runtime {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays and fields are written as they lie in memory");

constexpr std::string_view magic = "RVLSTATE";
constexpr std::uint32_t version = 1;
constexpr std::size_t partition_bytes = 36;
constexpr std::size_t checksum_bytes = 16;
constexpr std::size_t head_max = 16 << 20;  // names and partitions of any job fit many times

class Writer {
 public:
  void bytes(std::span<const std::byte> in) { out_.insert(out_.end(), in.begin(), in.end()); }
  void text(std::string_view in) { bytes(std::as_bytes(std::span(in))); }
  template <class T>
  void number(T value) {
    static_assert(std::is_integral_v<T>);
    bytes(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  void digest(const Digest& d) {
    number(d.low);
    number(d.high);
  }
  std::vector<std::byte>& out() { return out_; }

 private:
  std::vector<std::byte> out_;
};

/// Hands out parts of a file; after the first one that is not there, nothing more.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : left_(in) {}
  std::span<const std::byte> bytes(std::size_t n) {
    if (!good_ || n > left_.size()) {
      good_ = false;
      return {};
    }
    const auto part = left_.first(n);
    left_ = left_.subspan(n);
    return part;
  }
  template <class T>
  T number() {
    T value{};
    if (const auto part = bytes(sizeof(T)); good_) std::memcpy(&value, part.data(), sizeof(T));
    return value;
  }
  Digest digest() {
    const auto low = number<std::uint64_t>();
    return {low, number<std::uint64_t>()};
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
  bool good_ = true;
};

std::uint32_t number_of(Scalar scalar) {
  return scalar == Scalar::f32 ? 0 : 1;
}

void write_head(Writer& w, const std::string& model, const AgreedState& state, const Digest& digest) {
  const devices::ModelLayout& layout = state.model.layout();
  w.text(magic);
  w.number(version);
  w.number(number_of(layout.scalar));
  w.number(static_cast<std::uint64_t>(layout.parameters));
  w.number(static_cast<std::uint64_t>(layout.buffers));
  w.number(state.step);
  w.number(state.rows);
  w.digest(digest);
  w.number(static_cast<std::uint32_t>(model.size()));
  w.text(model);
  w.number(static_cast<std::uint32_t>(state.partitions.size()));
  for (const auto& [id, progress] : state.partitions) {
    w.number(id.topic);
    w.number(id.partition);
    w.number(progress.next.offset);
    w.number(progress.next.row);
    w.number(progress.trained);
    w.number(progress.dropped);
  }
}

std::size_t array_bytes(const devices::ModelLayout& layout) {
  return (2 * layout.parameters + layout.buffers) * bytes_of(layout.scalar);
}

/// The sentence about what is wrong, if anything is.
using Complaint = std::optional<std::string>;

Complaint check_frame(std::span<const std::byte> file) {
  if (file.size() < magic.size() + sizeof version + checksum_bytes) return "it is too short";
  Reader r(file);
  if (std::memcmp(r.bytes(magic.size()).data(), magic.data(), magic.size()) != 0)
    return "it is no state file";
  if (const auto v = r.number<std::uint32_t>(); v != version) {
    return fmt::format("its version is {}, this program reads version {}", v, version);
  }
  const auto body = file.first(file.size() - checksum_bytes);
  Reader tail(file.last(checksum_bytes));
  if (tail.digest() != rivulet::digest_of(body)) return "its checksum is wrong: it is damaged or cut off";
  return std::nullopt;
}

Complaint read_shape(Reader& r, const devices::ModelLayout& layout) {
  const auto scalar = r.number<std::uint32_t>();
  const auto parameters = r.number<std::uint64_t>();
  const auto buffers = r.number<std::uint64_t>();
  if (r.good() && scalar == number_of(layout.scalar) && parameters == layout.parameters &&
      buffers == layout.buffers) {
    return std::nullopt;
  }
  return fmt::format("it holds {} parameters and {} buffers of {}, the model has {} and {} of {}", parameters,
                     buffers, scalar == 0 ? "float32" : "float64", layout.parameters, layout.buffers,
                     layout.scalar == Scalar::f32 ? "float32" : "float64");
}

Complaint read_name(Reader& r, const std::string& model) {
  const auto name = r.bytes(r.number<std::uint32_t>());
  const std::string_view text(reinterpret_cast<const char*>(name.data()), name.size());
  if (r.good() && text == model) return std::nullopt;
  return fmt::format("it is of model '{}', not '{}'", text, model);
}

Complaint read_partitions(Reader& r, AgreedState& state, std::size_t behind) {
  const auto count = r.number<std::uint32_t>();
  if (!r.good() || r.left() != count * partition_bytes + behind) return "its length does not fit its counts";
  for (std::uint32_t i = 0; i < count; ++i) {
    PartitionId id;
    id.topic = r.number<std::uint32_t>();
    id.partition = r.number<std::int32_t>();
    PartitionProgress progress;
    progress.next.offset = r.number<std::int64_t>();
    progress.next.row = r.number<std::uint32_t>();
    progress.trained = r.number<std::uint64_t>();
    progress.dropped = r.number<std::uint64_t>();
    if (!state.partitions.emplace(id, progress).second) return "a partition is in it twice";
  }
  return std::nullopt;
}

Status fill(const GradientView& own, Reader& r, devices::Device& device) {
  auto host = device.to_host(own);
  if (!host) return host.error();
  const auto target = host.value().host_bytes();
  const auto source = r.bytes(target.size());
  RIVULET_CHECK(r.good(), "the length was checked before");
  if (!target.empty()) std::memcpy(target.data(), source.data(), target.size());
  return device.from_host(host.value(), own);
}

Error bad(const std::string& path, const std::string& complaint) {
  return {ErrorCode::bad_record, fmt::format("state file {} cannot be used: {}", path, complaint)};
}

}  // namespace

Status write_state_file(const std::string& path, const std::string& model, const AgreedState& state,
                        const Digest& digest) {
  Writer w;
  write_head(w, model, state, digest);
  for (const GradientView& array :
       {state.model.parameters(), state.model.momentum(), state.model.buffers()}) {
    w.bytes(array.host_bytes());
  }
  w.digest(rivulet::digest_of(w.out()));
  return write_whole_file(path, w.out());
}

Result<AgreedState> read_state_file(const std::string& path, const std::string& model,
                                    const devices::ModelLayout& layout, devices::Device& device,
                                    Digest& digest) {
  auto file = read_whole_file(path, array_bytes(layout) + head_max);
  if (!file) return file.error();
  if (const Complaint c = check_frame(file.value())) return bad(path, *c);
  Reader r(std::span<const std::byte>(file.value()).subspan(magic.size() + sizeof version));
  if (const Complaint c = read_shape(r, layout)) return bad(path, *c);
  const auto step = r.number<std::uint64_t>();
  const auto rows = r.number<std::uint64_t>();
  const Digest agreed = r.digest();
  if (const Complaint c = read_name(r, model)) return bad(path, *c);
  auto empty = devices::ModelState::create(layout, device);
  if (!empty) return empty.error();
  AgreedState state{std::move(empty).value(), step, rows, {}};
  if (const Complaint c = read_partitions(r, state, array_bytes(layout) + checksum_bytes))
    return bad(path, *c);
  for (const GradientView& own : {state.model.parameters(), state.model.momentum(), state.model.buffers()}) {
    if (Status filled = fill(own, r, device); !filled) return filled.error();
  }
  digest = agreed;
  return state;
}

}  // namespace rivulet::runtime
