#include "runtime/config/key_rows.h"

#include <algorithm>
#include <array>

namespace rivulet::runtime {

namespace {

// Read by setters: coerce() has made the alternative certain.
const std::string& str(const Value& v) {
  return std::get<std::string>(v.data);
}
double real(const Value& v) {
  return std::get<double>(v.data);
}
template <class T>
T whole(const Value& v) {
  return static_cast<T>(std::get<std::int64_t>(v.data));
}
Duration time(const Value& v) {
  return parse_duration(str(v)).value();
}

/// Equal on all devices, or they would not train one model (architecture: group keys).
bool is_group_key(const std::string& key) {
  if (key == "source.topics") return true;
  if (key == "sync.bind" || key == "sync.advertise" || key == "model.file") return false;
  constexpr std::array tables{"job.",   "decode.",      "batch.",      "model.",
                              "train.", "compression.", "checkpoint.", "sync."};
  return std::any_of(tables.begin(), tables.end(), [&](const char* table) { return key.starts_with(table); });
}

struct Extra {
  std::vector<std::string> choices;
  std::vector<std::string> later;
  std::string since;
  std::string sample;
};
KeySpec spec(const char* key, const char* type, const char* text, const char* help, const Extra& extra = {}) {
  return {key,   type,        text,          help,        is_group_key(key),
          false, extra.since, extra.choices, extra.later, extra.sample};
}

constexpr Bounds positive{0, 1e300, true};
constexpr Bounds not_negative{0, 1e300, false};
constexpr Bounds some_time{0, 86'400, true};
constexpr Bounds rows{1, 1'000'000, false};

std::vector<KeyRow> job_and_device() {
  return {
      {spec("version", kind::integer, "1", "of this schema"), {1, 1}},
      {spec("job.name", kind::text, "\"\"", "required; the control topic is rivulet.<name>.control",
            {.sample = "\"mnist\""}),
       {},
       [](Config& c, const Value& v) { c.job.name = str(v); }},
      {spec("job.devices", kind::integer, "4", "size of the group: run waits until so many are there",
            {.sample = "1"}),
       {1, 10'000},
       [](Config& c, const Value& v) { c.job.devices = whole<std::uint32_t>(v); }},
      {spec("job.seed", kind::integer, "42", "everything random derives from it"), not_negative,
       [](Config& c, const Value& v) { c.job.seed = whole<std::uint64_t>(v); }},
      {spec("device.id", kind::text, "\"${HOSTNAME:-device-1}\"", "name of this device, unique in the job"),
       {},
       [](Config& c, const Value& v) { c.device.id = str(v); }},
      {spec("device.data_dir", kind::text, "\"/var/lib/rivulet\"", "the only path it writes to",
            {.sample = "\"/tmp/rivulet\""}),
       {},
       [](Config& c, const Value& v) { c.device.data_dir = str(v); }},
      {spec("device.type", kind::text, "\"auto\"", "cpu | cuda | auto: a GPU if there is one",
            {.choices = {"cpu", "cuda", "auto"}}),
       {},
       [](Config& c, const Value& v) { c.device.type = str(v); }},
      {spec("device.threads", kind::integer, "1", "threads of one computation"),
       {1, 1024},
       [](Config& c, const Value& v) { c.device.threads = whole<int>(v); }},
      {spec("device.memory", kind::size, "\"1 GiB\"",
            "hard cap of buffers, client queue, payloads and states; the program itself comes on top"),
       {1, 1e15},
       [](Config& c, const Value& v) { c.device.memory = whole<std::uint64_t>(v); }},
  };
}

std::vector<KeyRow> source() {
  return {
      {spec("source.type", kind::text, "\"kafka\"", "kafka | file | synthetic",
            {.choices = {"kafka", "file", "synthetic"}}),
       {},
       [](Config& c, const Value& v) { c.source.type = str(v); }},
      {spec("source.topics", kind::texts, "[]", "topics of the job; \"topic:0-3\" also claims partitions",
            {.sample = "[\"mnist\"]"})},
      {spec("source.partitions", kind::partitions, "[0]",
            "of the first topic, bound to this device; several topics: \"topic:0-3\"")},
      {spec("source.start", kind::offset, "\"checkpoint\"",
            "where a partition begins that no state knows: checkpoint (= earliest) | earliest | latest | an "
            "offset"),
       {},
       [](Config& c, const Value& v) { c.source.start = str(v); }},
      {spec("source.on_gap", kind::text, "\"stop\"",
            "rows deleted before they were read (retention): stop that partition, or count the gap and go on",
            {.choices = {"stop", "count"}}),
       {},
       [](Config& c, const Value& v) { c.source.on_gap = str(v); }},
      {spec("source.retention", kind::text, "\"persist\"", "what happens to rows that do not fit",
            {.choices = {"persist"},
             .later = {"truncate-newest", "truncate-oldest", "spool"},
             .since = "truth"})},
      {spec("source.path", kind::text, "\"\"", "type file: folder or file of a data set",
            {.sample = "#\"examples/mnist/data\""}),
       {},
       [](Config& c, const Value& v) { c.source.path = str(v); }},
      {spec("source.rate", kind::number, "0.0",
            "type file: rows/s of a partition, 0 = full speed; synthetic: 0 = 1000", {.sample = "#100.0"}),
       not_negative, [](Config& c, const Value& v) { c.source.rate = real(v); }},
      {spec("source.repeat", kind::boolean, "false", "type file: begin again at its end",
            {.sample = "#true"}),
       {},
       [](Config& c, const Value& v) { c.source.repeat = std::get<bool>(v.data); }},
  };
}

/// decode.raw, decode.json and decode.csv: load.cpp takes those of the chosen format.
std::vector<KeyRow> decode() {
  return {
      {spec("decode.format", kind::text, "\"raw\"", "raw | csv | json",
            {.later = {"avro", "protobuf", "image", "auto"}}),
       {},
       [](Config& c, const Value& v) { c.decode.format = str(v); }},
      {spec("decode.raw.label", kind::text, "\"u8\"", "u8 | i32 | i64 | f32",
            {.choices = {"none", "u8", "i32", "i64", "f32"}}),
       {},
       [](Config& c, const Value& v) { c.decode.raw_label = str(v); }},
      {spec("decode.raw.features", kind::text, "\"u8\"", "u8 | i16 | f32", {.choices = {"u8", "i16", "f32"}}),
       {},
       [](Config& c, const Value& v) { c.decode.raw_features = str(v); }},
      {spec("decode.raw.shape", kind::integers, "[1, 28, 28]", "of one row"), {1, 1e7}},
      {spec("decode.raw.scale", kind::number, "0.0127288", "x * scale + shift")},
      {spec("decode.raw.shift", kind::number, "-0.4242", "MNIST: mean 0.1307, deviation 0.3081")},
      {spec("decode.json.features", kind::texts, "[]",
            "paths to numbers: a.b, a[2], a[0:3] (without the end)",
            {.sample = "#[\"temp\", \"vibration.rms\", \"current[0:3]\"]"})},
      {spec("decode.json.target", kind::text, "\"\"", "path to one number; classes: a whole number from 0 on",
            {.sample = "#\"label\""})},
      {spec("decode.json.shape", kind::integers, "[]", "empty = one axis", {.sample = "#[]"}), {1, 1e7}},
      {spec("decode.json.scale", kind::numbers, "1.0", "x * scale + shift; [one each]", {.sample = "#1.0"})},
      {spec("decode.json.shift", kind::numbers, "0.0", "", {.sample = "#0.0"})},
      {spec("decode.csv.features", kind::texts, "[]", "names of columns, or their numbers from 0",
            {.sample = "#[\"temp\", \"rms\"]"})},
      {spec("decode.csv.target", kind::text, "\"\"", "name or number of a column", {.sample = "#\"label\""})},
      {spec("decode.csv.columns", kind::texts, "[]", "names of all columns, in order",
            {.sample = "#[\"time\", \"temp\", \"rms\", \"label\"]"})},
      {spec("decode.csv.delimiter", kind::text, "\",\"", "one character", {.sample = "#\",\""})},
      {spec("decode.csv.shape", kind::integers, "[]", "empty = one axis", {.sample = "#[]"}), {1, 1e7}},
      {spec("decode.csv.scale", kind::numbers, "1.0", "x * scale + shift; [one each]", {.sample = "#1.0"})},
      {spec("decode.csv.shift", kind::numbers, "0.0", "", {.sample = "#0.0"})},
      {spec("decode.on_error", kind::text, "\"drop\"", "drop (counted by reason) | stop",
            {.choices = {"drop", "stop"}, .later = {"dead_letter"}}),
       {},
       [](Config& c, const Value& v) { c.decode.on_error = str(v); }},
      {spec("decode.max_record_bytes", kind::size, "1000000", "longer records are dropped"),
       {1, 1e9},
       [](Config& c, const Value& v) { c.decode.max_record_bytes = whole<std::size_t>(v); }},
      {spec("dead_letter.topic", kind::text, "\"{topic}.dlq\"", "where broken records go",
            {.since = "streams"})},
  };
}

std::vector<KeyRow> buffer_and_batch() {
  return {
      {spec("buffer.rows", kind::integer, "8192", "rows that may wait"),
       {1, 1 << 24},
       [](Config& c, const Value& v) { c.buffer.rows = whole<std::size_t>(v); }},
      {spec("batch.policy", kind::text, "\"stream\"", "stream (as many rows as arrive in a tick) | fixed",
            {.later = {"throughput", "unified"}}),
       {},
       [](Config& c, const Value& v) { c.batch.policy = str(v); }},
      {spec("batch.rows", kind::integer, "64", "of policy fixed"), rows,
       [](Config& c, const Value& v) { c.batch.rows = whole<std::uint32_t>(v); }},
      {spec("batch.min", kind::integer, "1", "rows of a batch, at least"), rows,
       [](Config& c, const Value& v) { c.batch.min = whole<std::uint32_t>(v); }},
      {spec("batch.max", kind::integer, "1024", "rows of a batch, at most"), rows,
       [](Config& c, const Value& v) { c.batch.max = whole<std::uint32_t>(v); }},
      {spec("batch.tick", kind::duration, "\"100ms\"", "T of b = S * T"), some_time,
       [](Config& c, const Value& v) { c.batch.tick = time(v); }},
      {spec("batch.max_wait", kind::duration, "\"200ms\"",
            "after the previous round ended, with or without rows: below batch.tick it cuts ticks"),
       some_time, [](Config& c, const Value& v) { c.batch.max_wait = time(v); }},
  };
}

std::vector<KeyRow> model() {
  return {
      {spec("model.name", kind::text, "\"lenet5\"", "linear | mlp | lenet5 | cnn | torchscript",
            {.later = {"gru", "tcn", "autoencoder"}}),
       {},
       [](Config& c, const Value& v) { c.model.name = str(v); }},
      {spec("model.mlp.hidden", kind::integers, "[64, 64]", "widths of mlp's hidden layers",
            {.sample = "#[64, 64]"}),
       {1, 1e6}},
      {spec("model.mlp.activation", kind::text, "\"relu\"", "relu | tanh",
            {.choices = {"relu", "tanh"}, .sample = "#\"relu\""}),
       {},
       [](Config& c, const Value& v) { c.model.activation = str(v); }},
      {spec("model.classes", kind::integer, "10", "classification: labels are 0 to classes - 1"),
       {1, 1e6},
       [](Config& c, const Value& v) { c.model.classes = whole<std::uint32_t>(v); }},
      {spec("model.outputs", kind::integer, "1",
            "regression: numbers to predict for a row; 1 is all that decoders give", {.sample = "#1"}),
       {1, 1},
       [](Config& c, const Value& v) { c.model.outputs = whole<std::uint32_t>(v); }},
      {spec("model.dtype", kind::text, "\"float32\"", "float32 | float64",
            {.choices = {"float32", "float64"}}),
       {},
       [](Config& c, const Value& v) { c.model.dtype = str(v); }},
      {spec("model.memory_format", kind::text, "\"channels_last\"",
            "channels_last | contiguous: how images lie while they are computed on (float32)",
            {.choices = {"channels_last", "contiguous"}}),
       {},
       [](Config& c, const Value& v) { c.model.memory_format = str(v); }},
      {spec("model.autocast", kind::text, "\"off\"",
            "off | bfloat16: convolutions and products of training in half the bits, where the processor is "
            "made for it",
            {.choices = {"off", "bfloat16"}}),
       {},
       [](Config& c, const Value& v) { c.model.autocast = str(v); }},
      {spec("model.file", kind::text, "\"\"",
            "of name torchscript: saved by torch.jit, a copy on every device", {.sample = "#\"\""}),
       {},
       [](Config& c, const Value& v) { c.model.file = str(v); }},
      {spec("model.sha256", kind::text, "\"\"", "of model.file, as `model inspect` says",
            {.sample = "#\"\""}),
       {},
       [](Config& c, const Value& v) { c.model.sha256 = str(v); }},
  };
}

std::vector<KeyRow> train() {
  return {
      {spec("train.loss", kind::text, "\"cross_entropy\"", "cross_entropy | mse",
            {.choices = {"cross_entropy", "mse"}}),
       {},
       [](Config& c, const Value& v) { c.train.loss = str(v); }},
      {spec("train.optimizer.name", kind::text, "\"sgd\"", "sgd", {.choices = {"sgd"}})},
      {spec("train.optimizer.lr", kind::number, "0.05",
            "learning rate; steps of few rows want less: 0.01 or 0.02"),
       positive, [](Config& c, const Value& v) { c.train.lr = real(v); }},
      {spec("train.optimizer.momentum", kind::number, "0.9", "below 1"),
       {0, 0.999999},
       [](Config& c, const Value& v) { c.train.momentum = real(v); }},
      {spec("train.optimizer.weight_decay", kind::number, "0.0", "L2"), not_negative,
       [](Config& c, const Value& v) { c.train.weight_decay = real(v); }},
      {spec("train.lr_scaling.rule", kind::text, "\"none\"", "how lr follows the rows of a step",
            {.choices = {"none"}, .later = {"linear", "sqrt"}, .since = "streams"})},
      {spec("train.lr_scaling.base_rows", kind::integer, "64", "rows that lr is meant for",
            {.since = "streams"})},
      {spec("train.lr_scaling.cap", kind::number, "4.0", "", {.since = "streams"})},
      {spec("train.lr_scaling.warmup_rounds", kind::integer, "20", "", {.since = "streams"})},
      {spec("train.clip_grad_norm", kind::number, "0.0", "0 = off"), not_negative,
       [](Config& c, const Value& v) { c.train.clip_grad_norm = real(v); }},
      {spec("train.on_nonfinite", kind::text, "\"skip\"", "skip (counted) | stop",
            {.choices = {"skip", "stop"}, .later = {"rollback"}}),
       {},
       [](Config& c, const Value& v) { c.train.on_nonfinite = str(v); }},
  };
}

std::vector<KeyRow> sync_and_checkpoint() {
  return {
      {spec("sync.policy", kind::text, "\"every\"", "when devices agree",
            {.choices = {"every"}, .later = {"selsync", "periodic", "auto"}, .since = "streams"})},
      {spec("sync.deadline", kind::duration, "\"5s\"", "a peer that makes no progress for so long is lost"),
       some_time, [](Config& c, const Value& v) { c.sync.deadline = time(v); }},
      {spec("sync.reduction", kind::text, "\"gather\"", "gather (same bits everywhere) | sum | auto",
            {.choices = {"gather", "sum", "auto"}}),
       {},
       [](Config& c, const Value& v) { c.sync.reduction = str(v); }},
      {spec("sync.foresee", kind::boolean, "true",
            "contributions leave before the plan is known while it is foreseen: one exchange a round"),
       {},
       [](Config& c, const Value& v) { c.sync.foresee = std::get<bool>(v.data); }},
      {spec("sync.digest_every", kind::integer, "1", "rounds between comparisons of the state"),
       {1, 1e6},
       [](Config& c, const Value& v) { c.sync.digest_every = whole<std::uint32_t>(v); }},
      {spec("sync.bind", kind::text, "\"127.0.0.1\"", "interface or address of the peer traffic; never all"),
       {},
       [](Config& c, const Value& v) { c.sync.bind = str(v); }},
      {spec("sync.advertise", kind::text, "\"\"", "what peers dial if it differs (NAT)",
            {.sample = "#\"10.8.0.3\""}),
       {},
       [](Config& c, const Value& v) { c.sync.advertise = str(v); }},
      {spec("sync.on_peer_loss", kind::text, "\"reform\"", "reform (wait for it and go on) | exit (with 75)",
            {.choices = {"reform", "exit"}}),
       {},
       [](Config& c, const Value& v) { c.sync.on_peer_loss = str(v); }},
      {spec("compression.policy", kind::text, "\"none\"", "how payloads shrink", {.since = "communication"})},
      {spec("checkpoint.every.rounds", kind::integer, "500", "applied rounds, or"),
       {1, 1e9},
       [](Config& c, const Value& v) { c.checkpoint.every_rounds = whole<std::uint64_t>(v); }},
      {spec("checkpoint.every.interval", kind::duration, "\"30s\"", "time: whichever comes first"), some_time,
       [](Config& c, const Value& v) { c.checkpoint.every_interval = time(v); }},
      {spec("checkpoint.keep", kind::integer, "3", "files; those that the group still needs stay besides"),
       {1, 1000},
       [](Config& c, const Value& v) { c.checkpoint.keep = whole<std::uint32_t>(v); }},
      {spec("checkpoint.quorum", kind::integer, "2",
            "disks that must have a state before it counts; at most job.devices"),
       {1, 10'000},
       [](Config& c, const Value& v) { c.checkpoint.quorum = whole<std::uint32_t>(v); }},
  };
}

std::vector<KeyRow> operation() {
  return {
      {spec("evaluate.prequential.window", kind::integer, "1000", "rows of test-then-train accuracy"),
       {1, 1e9},
       [](Config& c, const Value& v) { c.evaluate.prequential_window = whole<std::uint32_t>(v); }},
      {spec("evaluate.held_out.source", kind::text, "\"file\"", "file",
            {.choices = {"file"}, .sample = "#\"file\""})},
      {spec("evaluate.held_out.path", kind::text, "\"\"", "empty = off",
            {.sample = "#\"examples/mnist/data\""}),
       {},
       [](Config& c, const Value& v) { c.evaluate.held_out_path = str(v); }},
      {spec("evaluate.held_out.every", kind::duration, "\"5s\"", "", {.sample = "#\"5s\""}), some_time,
       [](Config& c, const Value& v) { c.evaluate.held_out_every = time(v); }},
      {spec("http.listen", kind::text, "\"127.0.0.1:9464\"",
            "status page, /metrics, /livez, /readyz, /api/v1/status; \"off\" = none"),
       {},
       [](Config& c, const Value& v) { c.http.listen = str(v); }},
      {spec("http.token_file", kind::text, "\"\"", "its one line is what readers must say, beyond loopback",
            {.sample = "#\"/run/secrets/rivulet_http\""}),
       {},
       [](Config& c, const Value& v) { c.http.token_file = str(v); }},
      {spec("log.level", kind::text, "\"info\"", "debug | info | warn | error",
            {.choices = {"debug", "info", "warn", "error"}}),
       {},
       [](Config& c, const Value& v) { c.log.level = str(v); }},
      {spec("log.format", kind::text, "\"auto\"",
            "auto (pretty on a terminal, else logfmt) | pretty | logfmt | json",
            {.choices = {"auto", "pretty", "logfmt", "json"}}),
       {},
       [](Config& c, const Value& v) { c.log.format = str(v); }},
      {spec("watchdog.deadline", kind::duration, "\"30s\"",
            "a thread that stands still for so long ends the process with 70"),
       some_time, [](Config& c, const Value& v) { c.watchdog.deadline = time(v); }},
  };
}

std::vector<KeyRow> make_rows() {
  std::vector<KeyRow> all;
  for (auto part :
       {job_and_device, source, decode, buffer_and_batch, model, train, sync_and_checkpoint, operation}) {
    for (auto& row : part()) {
      all.push_back(std::move(row));
    }
  }
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

const KeyRow* find_row(const std::string& key) {
  const auto& all = key_rows();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const KeyRow& row) { return row.spec.key == key; });
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
