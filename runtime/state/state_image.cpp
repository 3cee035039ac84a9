#include "runtime/state/state_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/check.h"

// Little-endian, nothing between the fields:
//   head, 64 bytes: magic 8 | version u32 | sections u32 | bytes of all u64 | lineage u64 | step u64 |
//                   digest low u64, high u64 | low half of XXH3-128 of the 56 bytes before
//   section:        tag 4 | zero u32 | bytes u64 | low half of XXH3-128 of the body | body
//     "MODL"  scalar u32 (0 f32, 1 f64) | parameters u64 | buffers u64 | rows u64 | name
//     "OWNR"  bytes u32, name of the job | topics u32 | per topic: bytes u32, name
//     "PART"  per partition: topic u32, partition i32, start offset i64, row u32, next offset i64, row u32,
//             trained u64, shared u64, holes u64, dropped u64 of each DropReason, runs u32, and per run:
//             from offset i64, row u32, to offset i64, row u32, rows u64, fate u32
//     "PARM", "MOMT", "BUFS"  the arrays
//   SHA-256 of everything before, 32 bytes
namespace rivulet::runtime {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays and fields are written as they lie in memory");

constexpr std::string_view magic = "RVLSTATE";
constexpr std::size_t section_head_bytes = 24;
constexpr std::size_t partition_bytes = 60 + sizeof(DropCounts);
constexpr std::size_t run_bytes = 36;
constexpr std::size_t hash_bytes = sizeof(Sha256);
constexpr std::size_t name_max = 1024;
constexpr std::size_t partitions_bytes_max = partitions_max * (partition_bytes + passed_runs_max * run_bytes);
constexpr std::size_t owner_bytes_max = std::size_t{1} << 20U;  // four thousand topics
constexpr std::array<std::string_view, 6> tags{"MODL", "OWNR", "PART", "PARM", "MOMT", "BUFS"};

class Writer {
 public:
  explicit Writer(std::size_t capacity) { out_.reserve(capacity); }
  void bytes(std::span<const std::byte> in) { out_.insert(out_.end(), in.begin(), in.end()); }
  void text(std::string_view in) { bytes(std::as_bytes(std::span(in))); }
  template <class T>
  void number(T value) {
    static_assert(std::is_integral_v<T>);
    bytes(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  void cursor(const RowCursor& at) {
    number(at.offset);
    number(at.row);
  }
  void section(std::string_view tag, std::span<const std::byte> body) {
    text(tag);
    number(std::uint32_t{0});
    number(static_cast<std::uint64_t>(body.size()));
    number(rivulet::digest_of(body).low);
    bytes(body);
  }
  std::vector<std::byte>& out() { return out_; }

 private:
  std::vector<std::byte> out_;
};

/// Hands out parts; after the first one that is not there, nothing more.
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
  RowCursor cursor() {
    RowCursor at;
    at.offset = number<std::int64_t>();
    at.row = number<std::uint32_t>();
    return at;
  }
  template <class T>
  T number() {
    T value{};
    if (const auto part = bytes(sizeof(T)); good_) std::memcpy(&value, part.data(), sizeof(T));
    return value;
  }
  void give_up() { good_ = false; }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
  bool good_ = true;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint32_t number_of(Scalar scalar) {
  return scalar == Scalar::f32 ? 0 : 1;
}

std::vector<std::byte> model_section(const std::string& model, const AgreedState& state) {
  const devices::ModelLayout& layout = state.model.layout();
  Writer w(64);
  w.number(number_of(layout.scalar));
  w.number(static_cast<std::uint64_t>(layout.parameters));
  w.number(static_cast<std::uint64_t>(layout.buffers));
  w.number(state.rows);
  w.text(model);
  return std::move(w.out());
}

std::vector<std::byte> owner_section(const StateOwner& owner) {
  Writer w(64);
  const auto name = [&](const std::string& text) {
    w.number(static_cast<std::uint32_t>(text.size()));
    w.text(text);
  };
  name(owner.job);
  w.number(static_cast<std::uint32_t>(owner.topics.size()));
  for (const std::string& topic : owner.topics) name(topic);
  return std::move(w.out());
}

std::vector<std::byte> partitions_section(const AgreedState& state) {
  Writer w(state.partitions.size() * (partition_bytes + 2 * run_bytes));
  for (const auto& [id, progress] : state.partitions) {
    w.number(id.topic);
    w.number(id.partition);
    w.cursor(progress.start);
    w.cursor(progress.next);
    w.number(progress.trained);
    w.number(progress.shared);
    w.number(progress.holes);
    for (const std::uint64_t rows : progress.dropped) w.number(rows);
    w.number(static_cast<std::uint32_t>(progress.runs.size()));
    for (const SkippedRange& run : progress.runs) {
      w.cursor(run.from);
      w.cursor(run.to);
      w.number(run.rows);
      w.number(run.fate);
    }
  }
  return std::move(w.out());
}

std::size_t array_bytes(const devices::ModelLayout& layout) {
  return (2 * layout.parameters + layout.buffers) * bytes_of(layout.scalar);
}

std::uint64_t head_checksum(std::span<const std::byte> bytes) {
  return rivulet::digest_of(bytes.first(state_head_bytes - sizeof(std::uint64_t))).low;
}

/// The sentence about what is wrong, if anything is.
using ValidationError = std::optional<std::string>;
using Sections = std::array<std::span<const std::byte>, tags.size()>;

/// `length`: of the whole image.
ValidationError read_head(std::span<const std::byte> bytes, std::uint64_t length, StateHead& head) {
  if (bytes.size() < state_head_bytes) return "it is too short";
  Reader r(bytes);
  if (as_text(r.bytes(magic.size())) != magic) return "it is no state of rivulet";
  if (const auto v = r.number<std::uint32_t>(); v != state_image_version)
    return fmt::format("its version is {}, this program reads version {}", v, state_image_version);
  const auto sections = r.number<std::uint32_t>();
  head.bytes = r.number<std::uint64_t>();
  head.stamp.lineage = r.number<std::uint64_t>();
  head.stamp.step = r.number<std::uint64_t>();
  head.digest.low = r.number<std::uint64_t>();
  head.digest.high = r.number<std::uint64_t>();
  if (r.number<std::uint64_t>() != head_checksum(bytes)) return "its head is damaged";
  if (sections != tags.size()) return fmt::format("it has {} sections, not {}", sections, tags.size());
  if (head.bytes != length || length < state_head_bytes + hash_bytes)
    return fmt::format("it has {} bytes, its head says {}", length, head.bytes);
  return std::nullopt;
}

ValidationError read_sections(std::span<const std::byte> bytes, Sections& sections) {
  Reader r(bytes.subspan(state_head_bytes, bytes.size() - state_head_bytes - hash_bytes));
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const auto tag = as_text(r.bytes(tags[i].size()));
    const auto zero = r.number<std::uint32_t>();
    const auto size = r.number<std::uint64_t>();
    const auto checksum = r.number<std::uint64_t>();
    if (!r.good() || tag != tags[i] || zero != 0)
      return fmt::format("section {} is not where it should be", tags[i]);
    sections[i] = r.bytes(size);
    if (!r.good()) return fmt::format("section {} is cut off", tags[i]);
    if (rivulet::digest_of(sections[i]).low != checksum) return fmt::format("section {} is damaged", tags[i]);
  }
  if (r.left() > 0) return "there is something behind its last section";
  return std::nullopt;
}

ValidationError read_model(std::span<const std::byte> body, const Expected& expected, std::uint64_t& rows) {
  Reader r(body);
  const auto scalar = r.number<std::uint32_t>();
  const auto parameters = r.number<std::uint64_t>();
  const auto buffers = r.number<std::uint64_t>();
  rows = r.number<std::uint64_t>();
  const auto name = as_text(r.bytes(std::min(r.left(), name_max)));
  const auto& layout = expected.layout;
  if (!r.good() || r.left() > 0) return "its description of the model is no such thing";
  if (name != expected.owner.model)
    return fmt::format("it is of model '{}', not '{}'", name, expected.owner.model);
  if (scalar == number_of(layout.scalar) && parameters == layout.parameters && buffers == layout.buffers)
    return std::nullopt;
  return fmt::format("it holds {} parameters and {} buffers of {}, the model has {} and {} of {}", parameters,
                     buffers, scalar == 0 ? "float32" : "float64", layout.parameters, layout.buffers,
                     layout.scalar == Scalar::f32 ? "float32" : "float64");
}

std::string name_in(Reader& r) {
  const auto bytes = r.number<std::uint32_t>();
  return std::string(as_text(r.bytes(bytes)));
}

/// Offsets count within topics, and those have numbers: the same number must mean the same topic.
ValidationError read_owner(std::span<const std::byte> body, const StateOwner& expected) {
  Reader r(body);
  const std::string job = name_in(r);
  const auto topics = r.number<std::uint32_t>();
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < topics && r.good(); ++i) names.push_back(name_in(r));
  if (!r.good() || r.left() > 0 || body.size() > owner_bytes_max)
    return "its names of job and topics are no such thing";
  if (!expected.job.empty() && job != expected.job)
    return fmt::format("it is of job '{}', this is job '{}'", job, expected.job);
  if (expected.topics.empty()) return std::nullopt;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (i >= expected.topics.size() || names[i] != expected.topics[i])
      return fmt::format("its topics are {}, not {}", fmt::join(names, ", "),
                         fmt::join(expected.topics, ", "));
  return std::nullopt;
}

SkippedRange read_run(Reader& r, const PartitionId& id) {
  SkippedRange run{id};
  run.from = r.cursor();
  run.to = r.cursor();
  run.rows = r.number<std::uint64_t>();
  run.fate = r.number<std::uint32_t>();
  return run;
}

PartitionProgress read_progress(Reader& r, const PartitionId& id) {
  PartitionProgress p;
  p.start = r.cursor();
  p.next = r.cursor();
  p.trained = r.number<std::uint64_t>();
  p.shared = r.number<std::uint64_t>();
  p.holes = r.number<std::uint64_t>();
  for (std::uint64_t& rows : p.dropped) rows = r.number<std::uint64_t>();
  const auto runs = r.number<std::uint32_t>();
  if (runs > passed_runs_max) r.give_up();
  for (std::uint32_t i = 0; i < runs && r.good(); ++i) p.runs.push_back(read_run(r, id));
  return p;
}

ValidationError read_partitions(std::span<const std::byte> body, AgreedState& state) {
  if (body.size() > partitions_bytes_max) return "its partitions are no such thing";
  Reader r(body);
  while (r.left() > 0) {
    PartitionId id;
    id.topic = r.number<std::uint32_t>();
    id.partition = r.number<std::int32_t>();
    const PartitionProgress p = read_progress(r, id);
    if (!r.good()) return "its partitions are cut off";
    if (p.next < p.start || p.start.offset < 0) return "a partition in it ends before it begins";
    if (!p.adds_up() || !p.is_explained()) return "the books of a partition in it do not add up";
    if (!state.partitions.empty() && !(state.partitions.rbegin()->first < id))
      return "its partitions are not in order, or one is in it twice";
    state.partitions.emplace(id, p);
  }
  return std::nullopt;
}

Status fill(const GradientView& own, std::span<const std::byte> from, devices::Device& device) {
  auto host = device.to_host(own);
  if (!host) return host.error();
  const auto to = host.value().host_bytes();
  RIVULET_CHECK(to.size() == from.size(), "lengths were checked before");
  std::ranges::copy(from, to.begin());
  return device.from_host(host.value(), own);
}

Error bad(const std::string& complaint) {
  return {ErrorCode::bad_record, complaint};
}

ValidationError check_frame(std::span<const std::byte> bytes, StateHead& head, Sha256& hash,
                            Sections& sections) {
  if (const ValidationError c = read_head(bytes, bytes.size(), head)) return c;
  if (const ValidationError c = read_sections(bytes, sections)) return c;
  hash = sha256_of(bytes.first(bytes.size() - hash_bytes));
  if (!std::ranges::equal(hash, bytes.last(hash_bytes))) return "its SHA-256 is wrong";
  return std::nullopt;
}

}  // namespace

std::size_t state_image_max(const devices::ModelLayout& layout) {
  return state_head_bytes + tags.size() * section_head_bytes + 64 + name_max + owner_bytes_max +
         partitions_bytes_max + array_bytes(layout) + hash_bytes;
}

std::vector<std::byte> encode_state(const StateOwner& owner, const AgreedState& state, const Digest& digest) {
  RIVULET_CHECK(owner.model.size() <= name_max, "a model's name is short");
  const auto about = model_section(owner.model, state);
  const auto names = owner_section(owner);
  const auto partitions = partitions_section(state);
  const std::size_t total = state_head_bytes + tags.size() * section_head_bytes + about.size() +
                            names.size() + partitions.size() + array_bytes(state.model.layout()) + hash_bytes;
  Writer w(total);
  w.text(magic);
  w.number(state_image_version);
  w.number(static_cast<std::uint32_t>(tags.size()));
  w.number(static_cast<std::uint64_t>(total));
  w.number(state.stamp.lineage);
  w.number(state.stamp.step);
  w.number(digest.low);
  w.number(digest.high);
  w.number(rivulet::digest_of(w.out()).low);
  w.section(tags[0], about);
  w.section(tags[1], names);
  w.section(tags[2], partitions);
  w.section(tags[3], state.model.parameters().host_bytes());
  w.section(tags[4], state.model.momentum().host_bytes());
  w.section(tags[5], state.model.buffers().host_bytes());
  w.bytes(sha256_of(w.out()));
  RIVULET_CHECK(w.out().size() == total, "the length in the head is the length");
  return std::move(w.out());
}

Sha256 hash_in(std::span<const std::byte> image) {
  RIVULET_CHECK(image.size() >= hash_bytes, "an image ends with its hash");
  Sha256 hash{};
  std::ranges::copy(image.last(hash_bytes), hash.begin());
  return hash;
}

Result<DecodedState> decode_state(std::span<const std::byte> bytes, const Expected& expected) {
  StateHead head;
  Sections sections;
  Sha256 hash{};
  if (const ValidationError c = check_frame(bytes, head, hash, sections)) return bad(*c);
  std::uint64_t rows = 0;
  if (const ValidationError c = read_model(sections[0], expected, rows)) return bad(*c);
  if (const ValidationError c = read_owner(sections[1], expected.owner)) return bad(*c);
  const std::size_t scalar = bytes_of(expected.layout.scalar);
  const std::array wanted{expected.layout.parameters, expected.layout.parameters, expected.layout.buffers};
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (sections[3 + i].size() != wanted[i] * scalar)
      return bad(fmt::format("section {} is too short or too long", tags[3 + i]));
  auto model = devices::ModelState::create(expected.layout, expected.device);
  if (!model) return model.error();
  DecodedState out{{std::move(model).value(), head.stamp, rows, {}}, head.digest, hash};
  if (const ValidationError c = read_partitions(sections[2], out.state)) return bad(*c);
  const std::array arrays{out.state.model.parameters(), out.state.model.momentum(),
                          out.state.model.buffers()};
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (Status filled = fill(arrays[i], sections[3 + i], expected.device); !filled) return filled.error();
  return out;
}

Status check_digest(const DecodedState& decoded, devices::Device& device) {
  const auto digest = digest_of(decoded.state, device);
  if (!digest) return digest.error();
  if (digest.value() == decoded.digest) return ok();
  return bad(fmt::format("its numbers are not those that its digest is of: it says {}, they have {}",
                         decoded.digest.hex(), digest.value().hex()));
}

Result<StateHead> decode_state_head(std::span<const std::byte> bytes, std::uint64_t length) {
  StateHead head;
  if (const ValidationError c = read_head(bytes, length, head)) return bad(*c);
  return head;
}

}  // namespace rivulet::runtime
