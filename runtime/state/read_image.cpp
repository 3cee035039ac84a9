// Decodes a state from untrusted bytes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/check.h"
#include "runtime/state/file_kind.h"
#include "runtime/state/image_format.h"
#include "runtime/state/misfit.h"
#include "runtime/state/round_update.h"
#include "runtime/state/state_image.h"

namespace rivulet::runtime {
namespace {

using namespace image;

/// Reads fields in sequence. Returns nothing more after the first missing one.
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

/// Returns an error message; nullopt if the image is valid.
using ValidationError = std::optional<std::string>;

constexpr std::array<std::string_view, 10> known{"MODL", "OWNR", "MEAN", "PART", "PARM",
                                                 "OPTA", "BUFS", "AVRG", "STAT", "CTRL"};

struct Section {
  std::string_view tag;
  std::span<const std::byte> body;
};

/// The frame of an image: its head and sections.
struct Frame {
  std::uint32_t count = 0;
  StateHead head;
  std::vector<Section> sections;
  /// Returns the body of a known section. check_order() has ensured that the section occurs only once.
  [[nodiscard]] std::optional<std::span<const std::byte>> body_of(std::string_view tag) const {
    const auto found = std::ranges::find(sections, tag, &Section::tag);
    return found == sections.end() ? std::nullopt : std::optional(found->body);
  }
};

ValidationError read_head(std::span<const std::byte> bytes, std::uint64_t length, Frame& frame) {
  if (!as_text(bytes).starts_with(magic)) {
    const auto kind = kind_of_file(bytes.first(std::min(bytes.size(), state_head_bytes)));
    return kind.empty()
               ? "it is not a state of Rivulet"
               : fmt::format("it is {}, not a state of Rivulet (final.state, checkpoints/*.ckpt)", kind);
  }
  if (bytes.size() < state_head_bytes) return "it is too short";
  Reader r(bytes.subspan(magic.size()));
  const auto version = r.number<std::uint32_t>();
  if (version != state_image_version)
    return fmt::format("its version is {}, this program reads version {}", version, state_image_version);
  frame.count = r.number<std::uint32_t>();
  StateHead& head = frame.head;
  head.bytes = r.number<std::uint64_t>();
  head.stamp.lineage = r.number<std::uint64_t>();
  head.stamp.step = r.number<std::uint64_t>();
  head.digest.low = r.number<std::uint64_t>();
  head.digest.high = r.number<std::uint64_t>();
  if (r.number<std::uint64_t>() != head_checksum(bytes)) return "its head is damaged";
  if (frame.count > sections_max)
    return fmt::format("it has {} sections, the maximum is {}", frame.count, sections_max);
  if (head.bytes != length || length < state_head_bytes + hash_bytes)
    return fmt::format("it has {} bytes, but its head specifies {}", length, head.bytes);
  return std::nullopt;
}

ValidationError read_sections(std::span<const std::byte> bytes, Frame& frame) {
  Reader r(bytes.subspan(state_head_bytes, bytes.size() - state_head_bytes - hash_bytes));
  for (std::uint32_t i = 0; i < frame.count; ++i) {
    const auto tag = as_text(r.bytes(4));
    const auto zero = r.number<std::uint32_t>();
    const auto size = r.number<std::uint64_t>();
    const auto checksum = r.number<std::uint64_t>();
    const auto body = r.bytes(size);
    if (!r.good() || zero != 0) return fmt::format("section {} is cut off", i + 1);
    if (rivulet::digest_of(body).low != checksum) return fmt::format("section {} is damaged", i + 1);
    frame.sections.push_back({tag, body});
  }
  if (r.left() > 0) return "it has extra bytes after its last section";
  return std::nullopt;
}

/// Known sections must be in order and occur once, except for the optimizer's arrays.
ValidationError check_order(const Frame& frame) {
  std::size_t next = 0;
  for (const Section& section : frame.sections) {
    const auto at = static_cast<std::size_t>(std::ranges::find(known, section.tag) - known.begin());
    if (at == known.size()) continue;
    if (at < next) return "its sections are out of order or repeated";
    next = section.tag == "OPTA" ? at : at + 1;
  }
  return std::nullopt;
}

ValidationError read_model(std::span<const std::byte> body, ImageFacts& facts, std::uint64_t& rows) {
  Reader r(body);
  const auto scalar = r.number<std::uint32_t>();
  facts.scalar = scalar == number_of(Scalar::f32) ? Scalar::f32 : Scalar::f64;
  facts.parameters = r.number<std::uint64_t>();
  facts.buffers = r.number<std::uint64_t>();
  rows = r.number<std::uint64_t>();
  facts.owner.model = as_text(r.bytes(std::min(r.left(), name_max)));
  if (!r.good() || r.left() > 0 || scalar > number_of(Scalar::f64))
    return "its description of the model cannot be read";
  return std::nullopt;
}

std::string name_in(Reader& r) {
  const auto bytes = r.number<std::uint32_t>();
  return std::string(as_text(r.bytes(bytes)));
}

std::vector<std::string> names_in(Reader& r) {
  const auto count = r.number<std::uint32_t>();
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count && r.good(); ++i) names.push_back(name_in(r));
  return names;
}

/// Partitions refer to topics by index: the same index must mean the same topic.
ValidationError read_owner(std::span<const std::byte> body, StateOwner& owner) {
  Reader r(body);
  owner.job = name_in(r);
  owner.topics = names_in(r);
  return r.good() && r.left() == 0 && body.size() <= owner_bytes_max
             ? ValidationError()
             : "its job and topic names cannot be read";
}

ValidationError read_meaning(std::span<const std::byte> body, Meaning& meaning) {
  Reader r(body);
  const auto parts = r.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < parts && r.good(); ++i) {
    std::string what = name_in(r);
    meaning.push_back({std::move(what), names_in(r)});
  }
  return r.good() && r.left() == 0 && body.size() <= meaning_bytes_max
             ? ValidationError()
             : "the meaning of its values cannot be read";
}

SkippedRange read_run(Reader& r, const PartitionId& id) {
  SkippedRange run{id};
  run.from = r.cursor();
  run.to = r.cursor();
  run.rows = r.number<std::uint64_t>();
  run.fate = r.number<std::uint32_t>();
  return run;
}

/// Rejects unknown drop reasons: they come from a newer build, whose ledger this one cannot keep.
void read_dropped(Reader& r, DropCounts& dropped) {
  const auto reasons = r.number<std::uint32_t>();
  std::uint32_t least = 0;
  for (std::uint32_t i = 0; i < reasons && r.good(); ++i) {
    const auto reason = r.number<std::uint32_t>();
    const auto rows = r.number<std::uint64_t>();
    if (reason < least || reason >= drop_reasons || rows == 0) return r.give_up();
    dropped.at(reason) = rows;
    least = reason + 1;
  }
}

PartitionProgress read_progress(Reader& r, const PartitionId& id) {
  PartitionProgress p;
  p.start = r.cursor();
  p.next = r.cursor();
  p.trained = r.number<std::uint64_t>();
  p.shared = r.number<std::uint64_t>();
  p.holes = r.number<std::uint64_t>();
  read_dropped(r, p.dropped);
  const auto runs = r.number<std::uint32_t>();
  if (runs > passed_runs_max) r.give_up();
  for (std::uint32_t i = 0; i < runs && r.good(); ++i) p.runs.push_back(read_run(r, id));
  return p;
}

ValidationError read_partitions(std::span<const std::byte> body, AgreedState& state) {
  if (body.size() > partitions_bytes_max) return "its list of partitions is too long";
  Reader r(body);
  while (r.left() > 0) {
    PartitionId id;
    id.topic = r.number<std::uint32_t>();
    id.partition = r.number<std::int32_t>();
    const PartitionProgress p = read_progress(r, id);
    if (!r.good()) return "its partitions are cut off";
    if (p.next < p.start || p.start.offset < 0) return "a partition in it has an invalid range of offsets";
    if (!p.adds_up() || !p.is_explained()) return "the ledger of a partition in it does not balance";
    if (!state.partitions.empty() && !(state.partitions.rbegin()->first < id))
      return "its partitions are out of order or repeated";
    state.partitions.emplace(id, p);
  }
  return std::nullopt;
}

/// Reads the memory of controllers. Without this section, they have none.
ValidationError read_controllers(std::span<const std::byte> body, AgreedState& state) {
  Reader r(body);
  while (r.left() > 0 && r.good()) {
    sync::policy::ControllerMemory memory{name_in(r), {}, {}};
    const auto count = r.number<std::uint32_t>();
    if (count > r.left() / sizeof(double)) r.give_up();
    for (std::uint32_t i = 0; i < count && r.good(); ++i) memory.values.push_back(r.number<double>());
    for (auto i = r.number<std::uint32_t>(); i > 0 && r.good(); --i) memory.devices.push_back(name_in(r));
    state.controllers.push_back(std::move(memory));
  }
  return r.good() && body.size() <= controllers_bytes_max ? ValidationError()
                                                          : "its controllers' memory cannot be read";
}

template <class T>
void read_list(Reader& r, std::vector<T>& list) {
  if (r.number<std::uint32_t>() != list.size()) return r.give_up();
  const auto bytes = r.bytes(list.size() * sizeof(T));
  if (r.good() && !list.empty()) std::memcpy(list.data(), bytes.data(), bytes.size());
}

/// Requires the layout's numbers of columns and classes, with valid values.
ValidationError read_statistics(std::span<const std::byte> body, devices::Statistics& known) {
  Reader r(body);
  known.averaged_rows = r.number<double>();
  known.usual_norm = r.number<double>();
  known.hurried_rows = r.number<double>();
  read_list(r, known.columns);
  read_list(r, known.class_rows);
  if (!r.good() || r.left() > 0) return "its row statistics belong to a different model, or are cut off";
  return devices::is_sound(known) ? ValidationError() : "its row statistics contain an invalid value";
}

Status fill(const GradientView& own, std::span<const std::byte> from, devices::Device& device) {
  auto host = device.to_host(own);
  if (!host) return host.error();
  const auto to = host.value().host_bytes();
  RIVULET_CHECK(to.size() == from.size(), "the lengths of the arrays differ");
  std::ranges::copy(from, to.begin());
  return device.from_host(host.value(), own);
}

Error bad(const std::string& problem) {
  return {ErrorCode::bad_record, problem};
}

/// If the model has an average but the image has none, the average begins with the next rows.
Status fill_average(const Frame& frame, devices::ModelState& model, devices::Device& device) {
  const auto average = frame.body_of("AVRG");
  const bool has_one = model.layout().average_rows > 0;
  if (!average && !has_one && model.statistics().averaged_rows > 0) return bad("its average is missing");
  if (average.has_value() != has_one) model.statistics().averaged_rows = 0;
  if (!average || !has_one) return ok();
  if (average->size() != model.average().bytes()) return bad("an array in it has the wrong length");
  if (Status filled = fill(model.average(), *average, device); !filled) return filled;
  auto host = device.to_host(model.average());
  if (!host) return host.error();
  return all_finite(host.value()) ? ok()
                                  : bad("its average of parameters contains a value that is not finite");
}

ValidationError read_frame(std::span<const std::byte> bytes, Frame& frame, Sha256& hash) {
  if (const ValidationError c = read_head(bytes, bytes.size(), frame)) return c;
  if (const ValidationError c = read_sections(bytes, frame)) return c;
  if (const ValidationError c = check_order(frame)) return c;
  hash = sha256_of(bytes.first(bytes.size() - hash_bytes));
  if (!std::ranges::equal(hash, bytes.last(hash_bytes))) return "its SHA-256 is wrong";
  return std::nullopt;
}

/// An optimizer array, by name.
struct NamedArray {
  std::string name;
  std::span<const std::byte> numbers;
};

std::vector<NamedArray> optimizer_arrays(const Frame& frame) {
  std::vector<NamedArray> all;
  for (const Section& section : frame.sections) {
    if (section.tag != "OPTA") continue;
    Reader r(section.body);
    std::string name = name_in(r);
    all.push_back({std::move(name), r.bytes(r.left())});
  }
  return all;
}

/// Finds the bytes of each array of the state, in the state's order, and checks their lengths. Writes the
/// names of the optimizer's arrays to `facts`.
ValidationError find_arrays(const Frame& frame, ImageFacts& facts,
                            std::vector<std::span<const std::byte>>& arrays) {
  const auto parameters = frame.body_of("PARM");
  const auto buffers = frame.body_of("BUFS");
  if (!parameters || !buffers) return "its parameters or buffers are missing";
  arrays = {*parameters};
  for (const NamedArray& array : optimizer_arrays(frame)) {
    facts.optimizer_arrays.push_back(array.name);
    arrays.push_back(array.numbers);
  }
  arrays.push_back(*buffers);
  const std::size_t scalar = bytes_of(facts.scalar);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::size_t bytes = arrays[i].size();
    const std::uint64_t wanted = i + 1 == arrays.size() ? facts.buffers : facts.parameters;
    if (bytes % scalar != 0 || bytes / scalar != wanted) return "an array in it has the wrong length";
  }
  return std::nullopt;
}

}  // namespace

Result<DecodedState> decode_state(std::span<const std::byte> bytes, const Expected& expected) {
  Frame frame;
  Sha256 hash{};
  if (const ValidationError c = read_frame(bytes, frame, hash)) return bad(*c);
  const auto about = frame.body_of("MODL");
  const auto owner = frame.body_of("OWNR");
  const auto meaning = frame.body_of("MEAN");
  const auto partitions = frame.body_of("PART");
  if (!about || !owner || !meaning || !partitions)
    return bad("its model, owner, meaning or partitions are missing");
  ImageFacts facts;
  std::uint64_t rows = 0;
  if (const ValidationError c = read_model(*about, facts, rows)) return bad(*c);
  if (const ValidationError c = read_owner(*owner, facts.owner)) return bad(*c);
  if (const ValidationError c = read_meaning(*meaning, facts.owner.meaning)) return bad(*c);
  std::vector<std::span<const std::byte>> arrays;
  if (const ValidationError c = find_arrays(frame, facts, arrays)) return bad(*c);
  if (const auto misfit = misfit_of(facts, expected)) return Error{ErrorCode::invalid_config, *misfit};
  auto model = devices::ModelState::create(expected.layout, expected.device);
  if (!model) return model.error();
  DecodedState out{{std::move(model).value(), frame.head.stamp, rows, {}}, frame.head.digest, hash};
  if (const ValidationError c = read_partitions(*partitions, out.state)) return bad(*c);
  if (const auto controllers = frame.body_of("CTRL"))
    if (const ValidationError c = read_controllers(*controllers, out.state)) return bad(*c);
  const auto statistics = frame.body_of("STAT");
  if (!statistics) return bad("its row statistics are missing");
  if (const ValidationError c = read_statistics(*statistics, out.state.model.statistics())) return bad(*c);
  const auto own = out.state.model.arrays();
  for (std::size_t i = 0; i < own.size(); ++i)
    if (Status filled = fill(own[i], arrays[i], expected.device); !filled) return filled.error();
  if (Status filled = fill_average(frame, out.state.model, expected.device); !filled) return filled.error();
  out.skipped = static_cast<std::size_t>(std::ranges::count_if(
      frame.sections, [](const Section& s) { return std::ranges::count(known, s.tag) == 0; }));
  // Counts a section that this configuration does not use as unknown.
  if (expected.layout.average_rows == 0 && frame.body_of("AVRG")) ++out.skipped;
  return out;
}

Status check_digest(const DecodedState& decoded, devices::Device& device) {
  const auto digest = digest_of(decoded.state, device);
  if (!digest) return digest.error();
  if (digest.value() == decoded.digest) return ok();
  return bad(fmt::format("its values do not match its digest: stated {}, computed {}", decoded.digest.hex(),
                         digest.value().hex()));
}

Result<StateHead> decode_state_head(std::span<const std::byte> bytes, std::uint64_t length) {
  Frame frame;
  if (const ValidationError c = read_head(bytes, length, frame)) return bad(*c);
  return frame.head;
}

}  // namespace rivulet::runtime
