#include "runtime/state/state_image.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/check.h"
#include "runtime/state/image_format.h"

namespace rivulet::runtime {
namespace {

using namespace image;

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
  void sized_text(std::string_view in) {
    number(static_cast<std::uint32_t>(in.size()));
    text(in);
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
  w.sized_text(owner.job);
  w.number(static_cast<std::uint32_t>(owner.topics.size()));
  for (const std::string& topic : owner.topics) w.sized_text(topic);
  return std::move(w.out());
}

std::vector<std::byte> meaning_section(const Meaning& meaning) {
  Writer w(256);
  w.number(static_cast<std::uint32_t>(meaning.size()));
  for (const MeaningPart& part : meaning) {
    w.sized_text(part.what);
    w.number(static_cast<std::uint32_t>(part.list.size()));
    for (const std::string& text : part.list) w.sized_text(text);
  }
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
    w.number(
        static_cast<std::uint32_t>(std::ranges::count_if(progress.dropped, [](auto n) { return n > 0; })));
    for (std::uint32_t reason = 0; reason < drop_reasons; ++reason) {
      if (progress.dropped.at(reason) == 0) continue;
      w.number(reason);
      w.number(progress.dropped.at(reason));
    }
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
  const std::size_t arrays = 1 + layout.optimizer_arrays.size() + (layout.average_rows > 0 ? 1 : 0);
  return (arrays * layout.parameters + layout.buffers) * bytes_of(layout.scalar);
}

std::size_t statistics_bytes(const devices::ModelLayout& layout) {
  return 3 * sizeof(double) + 2 * sizeof(std::uint32_t) + layout.normalized.size() * sizeof(devices::Column) +
         layout.counted_classes * sizeof(double);
}

std::vector<std::byte> statistics_section(const devices::Statistics& known) {
  Writer w(64);
  w.bytes(std::as_bytes(std::span(&known.averaged_rows, 1)));
  w.bytes(std::as_bytes(std::span(&known.usual_norm, 1)));
  w.bytes(std::as_bytes(std::span(&known.hurried_rows, 1)));
  w.number(static_cast<std::uint32_t>(known.columns.size()));
  w.bytes(std::as_bytes(std::span(known.columns)));
  w.number(static_cast<std::uint32_t>(known.class_rows.size()));
  w.bytes(std::as_bytes(std::span(known.class_rows)));
  return std::move(w.out());
}

std::vector<std::byte> optimizer_section(const std::string& name, const GradientView& array) {
  Writer w(sizeof(std::uint32_t) + name.size() + array.bytes());
  w.sized_text(name);
  w.bytes(array.host_bytes());
  return std::move(w.out());
}

std::vector<std::byte> controllers_section(const AgreedState& state) {
  Writer w(64);
  for (const auto& memory : state.controllers) {
    w.sized_text(memory.name);
    w.number(static_cast<std::uint32_t>(memory.values.size()));
    w.bytes(std::as_bytes(std::span(memory.values)));
    w.number(static_cast<std::uint32_t>(memory.devices.size()));
    for (const std::string& device : memory.devices) w.sized_text(device);
  }
  return std::move(w.out());
}

}  // namespace

std::size_t state_array_bytes(const devices::ModelLayout& layout) {
  return array_bytes(layout);
}

std::size_t state_image_max(const devices::ModelLayout& layout) {
  return state_head_bytes + sections_max * (section_head_bytes + name_max) + 64 + owner_bytes_max +
         meaning_bytes_max + controllers_bytes_max + partitions_bytes_max + array_bytes(layout) +
         statistics_bytes(layout) + hash_bytes;
}

std::vector<std::byte> encode_state(const StateOwner& owner, const AgreedState& state, const Digest& digest) {
  RIVULET_CHECK(owner.model.size() <= name_max, "the model's name is too long");
  const auto about = model_section(owner.model, state);
  const auto names = owner_section(owner);
  const auto meaning = meaning_section(owner.meaning);
  RIVULET_CHECK(meaning.size() <= meaning_bytes_max, "the meaning is too long");
  const auto partitions = partitions_section(state);
  const auto& layout = state.model.layout();
  std::vector<std::vector<std::byte>> remembered;
  std::size_t names_bytes = 0;
  for (std::size_t i = 0; i < layout.optimizer_arrays.size(); ++i) {
    const std::string& name = layout.optimizer_arrays[i].name;
    remembered.push_back(optimizer_section(name, state.model.optimizer_array(i)));
    names_bytes += sizeof(std::uint32_t) + name.size();
  }
  const auto controllers = controllers_section(state);
  RIVULET_CHECK(controllers.size() <= controllers_bytes_max, "the memory of controllers is too large");
  const auto statistics = statistics_section(state.model.statistics());
  const bool averages = layout.average_rows > 0;
  const std::size_t sections = 7 + remembered.size() + (averages ? 1 : 0) + (controllers.empty() ? 0 : 1);
  const std::size_t total = state_head_bytes + sections * section_head_bytes + about.size() + names.size() +
                            meaning.size() + partitions.size() + controllers.size() + names_bytes +
                            array_bytes(layout) + statistics.size() + hash_bytes;
  Writer w(total);
  w.text(magic);
  w.number(state_image_version);
  w.number(static_cast<std::uint32_t>(sections));
  w.number(static_cast<std::uint64_t>(total));
  w.number(state.stamp.lineage);
  w.number(state.stamp.step);
  w.number(digest.low);
  w.number(digest.high);
  w.number(rivulet::digest_of(w.out()).low);
  w.section("MODL", about);
  w.section("OWNR", names);
  w.section("MEAN", meaning);
  w.section("PART", partitions);
  w.section("PARM", state.model.parameters().host_bytes());
  for (const auto& array : remembered) w.section("OPTA", array);
  w.section("BUFS", state.model.buffers().host_bytes());
  if (averages) w.section("AVRG", state.model.average().host_bytes());
  w.section("STAT", statistics);
  if (!controllers.empty()) w.section("CTRL", controllers);
  w.bytes(sha256_of(w.out()));
  RIVULET_CHECK(w.out().size() == total, "the image does not have the length in its head");
  return std::move(w.out());
}

Sha256 hash_in(std::span<const std::byte> image) {
  RIVULET_CHECK(image.size() >= hash_bytes, "the image is shorter than its hash");
  Sha256 hash{};
  std::ranges::copy(image.last(hash_bytes), hash.begin());
  return hash;
}

}  // namespace rivulet::runtime
