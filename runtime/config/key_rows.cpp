#include "runtime/config/key_rows.h"

#include <algorithm>
#include <array>
#include <map>

#include "runtime/config/key_row_parts.h"
#include "runtime/config/sizes.h"
#include "sync/policy/controller.h"

namespace rivulet::runtime {

namespace {

/// sizes.cpp stores the value.
KeyRow sizes_row(const char* key, const char* text, bool (*fits)(std::string_view), std::string_view form,
                 const char* help, const char* sample = "") {
  KeyRow row{spec(key, kind::text, text, help, {.sample = sample})};
  row.fits = fits;
  row.form = form;
  row.or_number = true;
  return row;
}

std::vector<KeyRow> job_and_device() {
  return {
      {spec("version", kind::integer, "1", "schema version"), {1, 1}},
      {spec("job.name", kind::text, "\"\"",
            "name of the job, required; its control topic is rivulet.<name>.control",
            {.sample = "\"mnist\""}),
       {},
       [](Config& c, const Value& v) { c.job.name = str(v); }},
      sizes_row("job.devices", "4", is_group_size, group_size_form,
                "number of devices: fixed, or a range such as \"2-16\" within which devices come and go",
                "1"),
      sizes_row("job.devices.min", "\"\"", is_device_count, device_count_form,
                "fewest devices: with fewer, the group pauses; default: checkpoint.quorum"),
      sizes_row(
          "job.devices.wanted", "\"\"", is_device_count, device_count_form,
          "usual number of devices, for learning rate and batch sizes; a starting group waits 5 s for it; "
          "default: job.devices.max"),
      sizes_row("job.devices.max", "\"\"", is_device_count, device_count_form,
                "most devices: further ones wait for a place; memory is planned for it"),
      {spec("job.seed", kind::integer, "42",
            "seed of the job's pseudorandom numbers, such as initial parameters"),
       not_negative, [](Config& c, const Value& v) { c.job.seed = whole<std::uint64_t>(v); }},
      {spec("device.id", kind::text, "\"${HOSTNAME:-device-1}\"",
            "name of this device, unique in the job; default: the host name"),
       {},
       [](Config& c, const Value& v) { c.device.id = str(v); }},
      {spec("device.data_dir", kind::text, "\"/var/lib/rivulet\"",
            "directory for checkpoints and all other files of the device; it writes nowhere else",
            {.sample = "\"/tmp/rivulet\""}),
       {},
       [](Config& c, const Value& v) { c.device.data_dir = str(v); }},
      {spec("device.type", kind::text, "\"auto\"", "compute device: cpu | cuda | auto (a GPU if available)",
            {.choices = {"cpu", "cuda", "auto"}}),
       {},
       [](Config& c, const Value& v) { c.device.type = str(v); }},
      {spec("device.threads", kind::integer, "1", "number of CPU threads per computation"),
       {1, 1024},
       [](Config& c, const Value& v) { c.device.threads = whole<int>(v); }},
      {spec("device.speed", kind::number, "0.0",
            "estimated compute speed in a unit common to all devices (cores, teraflops), used until the "
            "speed is measured; 0: device.threads"),
       {0, 1e9},
       [](Config& c, const Value& v) { c.device.speed = real(v); }},
      {spec("device.memory", kind::size, "\"1 GiB\"",
            "maximum memory for buffers, the Kafka client's queue, payloads and states; excludes the program "
            "itself"),
       {1, 1e15},
       [](Config& c, const Value& v) { c.device.memory = whole<std::uint64_t>(v); }},
  };
}

std::vector<KeyRow> source() {
  return {
      {spec("source.type", kind::text, "\"kafka\"",
            "source of records: kafka | file (data set on disk) | synthetic (generated)",
            {.choices = {"kafka", "file", "synthetic"}}),
       {},
       [](Config& c, const Value& v) { c.source.type = str(v); }},
      {spec("source.topics", kind::texts, "[]",
            "topics of the job; \"topic:0-3\" also claims partitions 0 to 3", {.sample = "[\"mnist\"]"})},
      {spec("source.partitions", kind::partitions, "[0]",
            "partitions that this device reads from the first topic; for other topics: \"topic:0-3\"")},
      {spec("source.start", kind::offset, "\"checkpoint\"",
            "start of a partition without a saved offset: checkpoint (= earliest) | earliest | latest | an "
            "offset"),
       {},
       [](Config& c, const Value& v) { c.source.start = str(v); }},
      {spec("source.on_gap", kind::text, "\"stop\"",
            "reaction to records that the broker deleted before they were read: stop (stops reading the "
            "partition) | count (counts the gap and continues)",
            {.choices = {"stop", "count"}}),
       {},
       [](Config& c, const Value& v) { c.source.on_gap = str(v); }},
      {spec("source.retention", kind::text, "\"persist\"",
            "policy for rows that arrive faster than they are trained: persist (all stay in Kafka) | "
            "truncate-newest (drops new rows) | truncate-oldest (drops old rows); both truncations keep "
            "about one second of rows and count dropped rows",
            {.choices = {"persist", "truncate-newest", "truncate-oldest"}, .later = {"spool"}}),
       {},
       [](Config& c, const Value& v) { c.source.retention = str(v); }},
      {spec("source.path", kind::text, "\"\"", "for type \"file\": directory or file of the data set",
            {.sample = "#\"examples/mnist/data\""}),
       {},
       [](Config& c, const Value& v) { c.source.path = str(v); }},
      {spec("source.rate", kind::number, "0.0",
            "rows/s per partition for types \"file\" and \"synthetic\"; 0 = unlimited (file) or 1000 "
            "(synthetic)",
            {.sample = "#100.0"}),
       not_negative, [](Config& c, const Value& v) { c.source.rate = real(v); }},
      {spec("source.repeat", kind::boolean, "false",
            "for type \"file\": whether reading restarts at the end of the data set", {.sample = "#true"}),
       {},
       [](Config& c, const Value& v) { c.source.repeat = std::get<bool>(v.data); }},
  };
}

/// Keys that all formats share; the decoders own the others.
std::vector<KeyRow> decode() {
  return {
      {spec("decode.format", kind::text, "\"raw\"", "record format: raw | csv | json",
            {.later = {"avro", "protobuf", "image", "auto"}}),
       {},
       [](Config& c, const Value& v) { c.decode.format = str(v); }},
      {spec("decode.on_error", kind::text, "\"drop\"",
            "reaction to a record that cannot be decoded: drop (counted by reason) | stop (with an error)",
            {.choices = {"drop", "stop"}, .later = {"dead_letter"}}),
       {},
       [](Config& c, const Value& v) { c.decode.on_error = str(v); }},
      {spec("decode.max_record_bytes", kind::size, "1000000",
            "maximum size of a record; larger records are dropped"),
       {1, 1e9},
       [](Config& c, const Value& v) { c.decode.max_record_bytes = whole<std::size_t>(v); }},
      {spec("dead_letter.topic", kind::text, "\"{topic}.dlq\"", "topic for invalid records",
            {.since = "streams"})},
  };
}

std::vector<KeyRow> buffer_and_batch() {
  return {
      {spec("buffer.rows", kind::integer, "8192", "capacity of the row buffer, in rows"),
       {1, 1 << 24},
       [](Config& c, const Value& v) { c.buffer.rows = whole<std::size_t>(v); }},
      {spec("batch.policy", kind::text, "\"unified\"", controllers_of(sync::policy::Role::batch).c_str()),
       {},
       [](Config& c, const Value& v) { c.batch.policy = str(v); }},
      {spec("batch.rows", kind::integer, "64",
            "batch size in rows for policy fixed; mean batch size for policy throughput"),
       rows, [](Config& c, const Value& v) { c.batch.rows = whole<std::uint32_t>(v); }},
      {spec("batch.min", kind::integer, "1", "minimum batch size in rows"), rows,
       [](Config& c, const Value& v) { c.batch.min = whole<std::uint32_t>(v); }},
      {spec("batch.max", kind::integer, "128", "maximum batch size in rows"), rows,
       [](Config& c, const Value& v) { c.batch.max = whole<std::uint32_t>(v); }},
      {spec("batch.tick", kind::duration, "\"100ms\"",
            "period of the group's steps; policy stream: batch = rate * tick; policy unified: maximum tick, "
            "unless slow steps require more"),
       some_time, [](Config& c, const Value& v) { c.batch.tick = time(v); }},
      {spec("batch.max_wait", kind::duration, "\"200ms\"",
            "maximum wait for rows after the previous round; a value below batch.tick shortens ticks"),
       some_time, [](Config& c, const Value& v) { c.batch.max_wait = time(v); }},
      {spec("normalize.window", kind::integer, "10000",
            "window of the running mean and standard deviation for scale \"auto\" and normalized targets, in "
            "rows of the group; older rows fade"),
       {100, 1e12},
       [](Config& c, const Value& v) { c.normalize.window = whole<std::uint64_t>(v); }},
      {spec("normalize.limit", kind::number, "8.0",
            "distance from the mean beyond which normalized values are clipped as outliers, in standard "
            "deviations"),
       positive, [](Config& c, const Value& v) { c.normalize.limit = real(v); }},
      {spec("normalize.targets", kind::boolean, "true",
            "whether targets are normalized, for train.loss = \"mse\"; predictions keep the target's unit"),
       {},
       [](Config& c, const Value& v) { c.normalize.targets = std::get<bool>(v.data); }},
      {spec("inject.policy", kind::text, "\"auto\"",
            ("policy for injected rows, which devices send to their peers: none | " +
             controllers_of(sync::policy::Role::transfer))
                .c_str()),
       {},
       [](Config& c, const Value& v) { c.inject.policy = str(v); }},
  };
}

/// Inserts the row after the last key of its table; the first key of a table is inserted after the enclosing
/// table.
void place_row(std::vector<KeyRow>& all, KeyRow row) {
  std::string table = row.spec.key;
  auto last = all.rend();
  while (last == all.rend() && table.find('.') != std::string::npos) {
    table.resize(table.rfind('.'));
    last = std::find_if(all.rbegin(), all.rend(),
                        [&](const KeyRow& other) { return other.spec.key.starts_with(table + "."); });
  }
  all.insert(last == all.rend() ? all.end() : last.base(), std::move(row));
}

std::vector<KeyRow> make_rows() {
  std::vector<KeyRow> all;
  for (auto part : {job_and_device, source, decode, buffer_and_batch, model_rows, train_rows,
                    sync_and_checkpoint_rows, operation_rows}) {
    for (auto& row : part()) {
      all.push_back(std::move(row));
    }
  }
  for (auto& row : entry_rows()) place_row(all, std::move(row));
  return all;
}

}  // namespace

const std::vector<KeyRow>& key_rows() {
  static const std::vector<KeyRow> rows_of_table = make_rows();
  return rows_of_table;
}

const std::vector<KeySpec>& key_table() {
  static const std::vector<KeySpec> specs = [] {
    std::vector<KeySpec> out;
    for (const auto& row : key_rows()) out.push_back(row.spec);
    return out;
  }();
  return specs;
}

const KeyRow* find_row(const std::string& name) {
  const auto& all = key_rows();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const KeyRow& row) { return row.spec.key == name; });
  return it == all.end() ? nullptr : &*it;
}

bool is_property(const std::string& key) {
  return key.starts_with(property_prefix);
}

bool is_table(const std::string& path) {
  const std::string prefix = path + ".";
  if (std::string(property_prefix).starts_with(prefix) || is_property(prefix)) return true;
  const auto& all = key_rows();
  return std::any_of(all.begin(), all.end(),
                     [&](const KeyRow& row) { return row.spec.key.starts_with(prefix); });
}

bool is_secret_property(const std::string& key) {
  constexpr std::array words{"password", "secret", "token", "key", "jaas", "oauthbearer.config"};
  return is_property(key) && std::any_of(words.begin(), words.end(), [&](const char* word) {
           return key.find(word, std::string(property_prefix).size()) != std::string::npos;
         });
}

}  // namespace rivulet::runtime
