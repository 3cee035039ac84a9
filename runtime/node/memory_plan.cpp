#include "runtime/node/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "buffer/row_buffer.h"
#include "runtime/node/node.h"
#include "runtime/node/node_config.h"
#include "runtime/train/injected_rows.h"
#include "stream/dataset.h"
#include "sync/message/facts.h"
#include "sync/round/session.h"
#include "sync/round/speculation.h"

namespace rivulet::runtime {
namespace {

constexpr double kib = 1024;
constexpr double mib = 1024 * kib;

// librdkafka keeps an extra structure for each queued record.
constexpr double bytes_per_message = 512;
constexpr double messages_usual = 100'000;  // librdkafka's default
constexpr double messages_least = 1'000;
constexpr double queue_usual = 16 * mib;
constexpr double queue_most = 64 * mib;
constexpr double queue_least = 1 * mib;
constexpr double partition_fetch = 1 * mib;
constexpr double fetch_most = 8 * mib;
constexpr double queue_seconds = 2;
// Reader and writer of the control topic: the log limits bytes to 4 MiB, log_properties() the number of
// records.
constexpr double log_queue = 4 * mib;
constexpr std::uint64_t log_messages = 10'000;
constexpr double log_writer = 2 * mib;
constexpr double block_rounding = 8 * kib;
constexpr double partition_bytes =
    12 * kib;                             // ledger entry in memory and in an image, with all skipped ranges
constexpr double image_frame = 64 * kib;  // headers, checksums, names
constexpr std::size_t held_out_most = 100'000;
constexpr double evaluation_rows = 256;
// simdjson: text, index, tape and strings; csv: the fields of a line.
constexpr double json_bytes_per_byte = 16;
constexpr double csv_bytes_per_byte = 4;

double number_of(const Config& config, std::initializer_list<std::string_view> names, double usual) {
  for (const auto& [name, value] : config.source.kafka_properties) {
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    std::uint64_t set = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), set).ec == std::errc())
      usual = static_cast<double>(set);  // the last value is used, as in the client
  }
  return usual;
}

double record_bytes(const Config& config, std::size_t columns) {
  const auto numbers = static_cast<double>(columns);
  if (config.decode.format != "raw") return 16 * (numbers + 1);  // approximate length of a number as text
  const std::string& type = config.settings.text("decode.raw.features");
  return 1 + numbers * (type == "u8" ? 1 : type == "i16" ? 2 : 4);
}

/// Returns the scalars of a state: parameters, their average, optimizer arrays and buffers. `numbers`:
/// parameters plus buffers.
double state_numbers(const devices::ModelLayout& layout, double numbers) {
  const auto arrays = static_cast<double>(layout.optimizer_arrays.size() + (layout.average_rows > 0 ? 1 : 0));
  return (1 + arrays) * numbers - arrays * static_cast<double>(layout.buffers);
}

/// Sums all parts that do not depend on the queue, then assigns the rest to the queue.
class Planner {
 public:
  Planner(const Config& config, const MemoryNeeds& needs)
      : c_(config),
        n_(needs),
        scalar_(static_cast<double>(bytes_of(needs.layout.scalar))),
        numbers_(std::max(needs.model.parameters, static_cast<double>(needs.layout.parameters)) +
                 static_cast<double>(needs.layout.buffers)),
        state_(scalar_ * state_numbers(needs.layout, numbers_)),
        rows_max_(static_cast<double>(
            std::min<std::size_t>(std::max(config.batch.max, config.batch.rows), config.buffer.rows))),
        columns_(static_cast<double>(needs.rows.columns())) {}

  MemoryPlan run() {
    plan_.cap = static_cast<double>(c_.device.memory);
    plan_.held_out_rows = n_.held_out_rows;
    stream();
    model();
    states();
    network();
    queue();
    return std::move(plan_);
  }

 private:
  /// Adds a part. Blocks are rounded up to pages.
  void add(std::string_view name, double bytes, std::string_view key, double blocks = 8) {
    plan_.parts.push_back({name, bytes + blocks * block_rounding, key});
  }

  void stream() {
    add("row_buffer", static_cast<double>(buffer::RowBuffer::bytes_for(c_.buffer.rows, n_.rows)),
        "buffer.rows");
    const double row = 4 * (columns_ + n_.rows.targets) + sizeof(RowTag) + sizeof(buffer::SlotIndex);
    add("batch", rows_max_ * row, "batch.max");
    const auto record = static_cast<double>(c_.decode.max_record_bytes);
    if (c_.decode.format != "raw")
      add("decoder", record * (c_.decode.format == "json" ? json_bytes_per_byte : csv_bytes_per_byte),
          "decode.max_record_bytes");
    if (n_.file_bytes > 0) add("file_source", 2 * static_cast<double>(n_.file_bytes), "source.path");
    if (n_.held_out_rows > 0)
      add("held_out_rows",
          static_cast<double>(n_.held_out_rows) * (4 * (columns_ + n_.rows.targets) + sizeof(RowTag)) +
              2 * static_cast<double>(n_.held_out_bytes),
          "evaluate.held_out.path");
  }

  /// A trainer keeps the initial values of its tensors and, before the first use, those it was constructed
  /// with. A gradient is computed before it is added to its destination.
  void model() {
    const double copies = 3 * scalar_ * numbers_;
    const double classes = 8;  // per row
    add("trainer", copies + rows_max_ * (scalar_ * n_.model.per_row + classes), "batch.max");
    if (n_.held_out_rows > 0)
      add("evaluator", copies + evaluation_rows * (scalar_ * n_.model.per_row + classes),
          "evaluate.held_out.path");
    add("gradients", 2 * scalar_ * numbers_, "model");
  }

  void states() {
    const double image = state_ + image_frame + partitions() * partition_bytes;
    const double state = state_ + partitions() * partition_bytes;
    add("state", 2 * state, "model");  // the agreed one, and the private copy while local steps are pending
    add("checkpoint", state + image, "model");
    add("adoption", state + image, "model");  // or for giving a copy to a joining device
    if (n_.held_out_rows > 0) add("snapshot", state, "evaluate.held_out.path");
  }

  void network() {
    const double devices = c_.job.devices.max;
    const double payload = scalar_ * numbers_;  // upper bound for every compressor
    const auto* how = sync::policy::collective_named(c_.sync.collective);
    const bool whole = how != nullptr && how->fits == &sync::sums_whole;
    const double gathered = whole ? 0 : devices * payload;
    const double summed = how != nullptr && how->pattern == sync::Pattern::to_all ? 0 : payload;
    add("payloads", gathered + summed, whole ? "model" : "sync.collective (sum needs one payload)",
        devices + 1);
    const bool speculates = c_.sync.speculate && c_.job.devices.max > 1 && !whole;
    if (speculates && scalar_ * numbers_ <= static_cast<double>(sync::Speculation::payload_bytes_max))
      add("early_payloads", gathered, "sync.speculate", devices + 1);
    const auto policy = worker_config(c_, {}, n_.rows, n_.layout).session.policy;
    const bool deltas = sync::policy::exchanges_deltas(policy, sync::policy::builtin_controllers());
    // Two vectors, the maximum result of a selection, and the positions sent.
    if (policy.compression_policy != "none")
      add("residual", (deltas ? 5 : 4) * payload, "compression.policy");
    // The delta; the optimizer arrays at the last synchronization, their copy for a checkpoint, and its file
    // image. With overlap, delta and arrays once more.
    const auto* when = sync::policy::controller_named(sync::policy::Role::when, c_.sync.policy);
    const bool overlaps = deltas && when != nullptr && when->overlaps != nullptr && when->overlaps(policy);
    const auto arrays = static_cast<double>(n_.layout.optimizer_arrays.size());
    if (deltas)
      add("local_steps", payload * (1 + 3 * arrays + (overlaps ? 1 + arrays : 0)),
          overlaps ? "sync.overlap" : "sync.policy");
    // The pool of own rows, the rows received last, and the rows being received.
    if (devices > 1 && transfer_policy(c_) != "none")
      add("injected_rows",
          static_cast<double>(InjectedRows::rows_held(n_.rows)) * 4 * (columns_ + n_.rows.targets) *
                  (1 + 2 * InjectedRows::peers_held) +
              2 * devices * static_cast<double>(sync::injected_bytes_max(n_.rows)),
          "inject.policy");
    add("facts", 2 * devices * (sync::facts_section_max_bytes + 4 * kib), "job.devices");
  }

  void queue() {
    if (c_.source.type != "kafka" && c_.job.devices == 1) return;
    add("control_log", log_reader() + log_writer, "job.devices");
    if (c_.source.type != "kafka") return;
    const double left = std::max(plan_.cap - plan_.total(), 0.0);
    const auto claims = static_cast<double>(std::max<std::size_t>(c_.source.claims.size(), 1));
    const double per_partition =
        number_of(c_, {"fetch.message.max.bytes", "max.partition.fetch.bytes"}, partition_fetch);
    const double fetch =
        number_of(c_, {"fetch.max.bytes"}, std::clamp(claims * per_partition, partition_fetch, fetch_most));
    const double record = record_bytes(c_, n_.rows.columns());
    const double fastest = rows_max_ / to_seconds(c_.batch.tick);
    const double wanted = std::clamp(queue_seconds * fastest * record, queue_usual, queue_most);
    // One answer may wait outside the queue, and a partly consumed one keeps its memory.
    const double besides = 2 * fetch + messages_least * bytes_per_message + 8 * block_rounding;
    const double room = std::max(left - besides, 0.0) / (1 + bytes_per_message / record);
    const double bytes = number_of(c_, {"queued.max.messages.kbytes"},
                                   std::clamp(wanted, queue_least, std::max(room, queue_least)) / kib) *
                         kib;
    const double messages =
        number_of(c_, {"queued.min.messages"}, std::clamp(bytes / record, messages_least, messages_usual));
    plan_.queue = {static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(messages),
                   static_cast<std::uint64_t>(fetch)};
    add("client_queue", bytes + 2 * fetch + messages * bytes_per_message,
        "source.kafka.properties: queued.max.messages.kbytes");
  }

  [[nodiscard]] double log_reader() const {
    return number_of(c_, {"queued.max.messages.kbytes"}, log_queue / kib) * kib +
           2 * number_of(c_, {"fetch.message.max.bytes", "max.partition.fetch.bytes"}, partition_fetch) +
           number_of(c_, {"queued.min.messages"}, log_messages) * bytes_per_message;
  }

  [[nodiscard]] double partitions() const {
    return static_cast<double>(c_.job.devices.max) *
           static_cast<double>(std::max<std::size_t>(c_.source.claims.size(), 1));
  }

  const Config& c_;
  const MemoryNeeds& n_;
  const double scalar_;
  const double numbers_;  ///< parameters plus buffers
  const double state_;
  const double rows_max_;
  const double columns_;
  MemoryPlan plan_;
};

std::string bytes_text(double bytes) {
  if (bytes >= 1024 * mib) return fmt::format("{:.1f} GiB", bytes / (1024 * mib));
  if (bytes >= mib) return fmt::format("{:.1f} MiB", bytes / mib);
  return fmt::format("{:.1f} KiB", bytes / kib);
}

std::uint64_t bytes_of_records(const stream::Dataset& data) {
  constexpr std::uint64_t per_record = 32;  // position, class, index in an order
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < data.size(); ++i) bytes += data.value(i).size() + per_record;
  return bytes;
}

/// Counts the bytes of files that are read into memory. They may be compressed, so only reading them shows
/// their size.
Status count_files(const Config& config, MemoryNeeds& needs) {
  if (config.source.type == "file") {
    const auto data = stream::open_dataset(config.source.path, stream::Split::train);
    if (!data) return data.error();
    needs.file_bytes = bytes_of_records(*data.value());
  }
  if (!measures_held_out(config)) return ok();
  const auto data = stream::open_dataset(config.evaluate.held_out_path, stream::Split::test);
  if (!data) return data.error();
  needs.held_out_rows = std::clamp<std::size_t>(data.value()->size(), 1, held_out_most);
  needs.held_out_bytes = bytes_of_records(*data.value());
  return ok();
}

}  // namespace

double MemoryPlan::total() const {
  double sum = 0;
  for (const auto& part : parts) sum += part.bytes;
  return sum;
}

double MemoryPlan::bytes_of(std::string_view part) const {
  for (const auto& p : parts)
    if (p.name == part) return p.bytes;
  return 0;
}

std::string MemoryPlan::text() const {
  return fmt::format("{} of device.memory = {}", bytes_text(total()), bytes_text(cap));
}

std::string MemoryPlan::table() const {
  auto sorted = parts;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::string text;
  for (const auto& part : sorted)
    text += fmt::format("  {:<14} {:>11}   {}\n", part.name, bytes_text(part.bytes), part.key);
  return text + fmt::format("  {:<14} {:>11}", "sum", bytes_text(total()));
}

Status MemoryPlan::check() const {
  if (fits()) return ok();
  return Error{
      ErrorCode::invalid_config,
      fmt::format("'device.memory' is {}, but this configuration needs {}:\n{}\nraise device.memory, or "
                  "lower one of the keys on the right",
                  bytes_text(cap), bytes_text(total()), table())};
}

std::vector<std::pair<std::string, std::string>> MemoryPlan::client_properties() const {
  return {{"queued.max.messages.kbytes", std::to_string(std::max<std::uint64_t>(queue.bytes / 1024, 1))},
          {"queued.min.messages", std::to_string(queue.messages)},
          {"fetch.max.bytes", std::to_string(queue.fetch)}};
}

std::vector<std::pair<std::string, std::string>> MemoryPlan::log_properties() const {
  return {{"queued.min.messages", std::to_string(log_messages)}};
}

void MemoryPlan::publish(MetricsSink& metrics) const {
  for (const auto& part : parts) metrics.gauge("memory_planned_bytes", {{"part", part.name}}).set(part.bytes);
  metrics.gauge("memory_cap_bytes").set(cap);
}

MemoryPlan plan_memory(const Config& config, const MemoryNeeds& needs) {
  return Planner(config, needs).run();
}

Result<MemoryPlan> plan_memory(const Config& config, const Catalog& catalog, const StopRequest* stop) {
  const auto decoder = build_decoder(config, catalog);
  if (!decoder) return decoder.error();
  MemoryNeeds needs;
  needs.rows = decoder.value()->shape();
  needs.layout.scalar = model_config(config, needs.rows).scalar;
  const auto optimizer = build_optimizer(config, catalog);
  if (!optimizer) return optimizer.error();
  needs.layout.average_rows = static_cast<double>(config.train.average);
  needs.layout.optimizer_arrays = devices::arrays_of(*optimizer.value().entry);
  const auto model = needs_of_model(config, catalog, needs.rows, stop);
  if (!model) return model.error();
  needs.model = model.value();
  if (auto counted = count_files(config, needs); !counted) return counted.error();
  if (const auto plan = plan_memory(config, needs); !plan.fits()) return plan;  // too large to construct
  const auto device = devices::make_host_device();
  const auto trainer = build_trainer(config, catalog, needs.rows, *device);
  if (!trainer) return trainer.error();
  needs.layout = trainer.value()->layout();
  return plan_memory(config, needs);
}

}  // namespace rivulet::runtime
