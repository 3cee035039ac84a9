#include <fmt/format.h>

#include "devices/optimizer.h"
#include "devices/trainer.h"
#include "runtime/config/key_row_parts.h"
#include "sync/policy/controller.h"

/// Keys of training, synchronization and operation.
namespace rivulet::runtime {
namespace {

using sync::policy::Role;

template <class Entries>
std::string names_of(const Entries& entries) {
  std::string text;
  for (const auto* entry : entries) text += (text.empty() ? "" : " | ") + std::string(entry->name);
  return text;
}

/// Returns "gather (everyone gets every payload) | sum (...)".
template <class Entries>
std::string explained(const Entries& entries) {
  std::string text;
  for (const auto* entry : entries)
    text += fmt::format("{}{} ({})", text.empty() ? "" : " | ", entry->name, entry->help);
  return text;
}

}  // namespace

std::string controllers_of(Role role) {
  std::vector<const sync::policy::ControllerEntry*> own;
  for (const auto* entry : sync::policy::builtin_controllers())
    if (entry->role == role && !(role == Role::collective && sync::policy::collective_named(entry->name)))
      own.push_back(entry);
  return explained(own);
}

std::vector<KeyRow> model_rows() {
  return {
      {spec("model.name", kind::text, "\"lenet5\"", names_of(devices::builtin_models()).c_str(),
            {.later = {"gru", "tcn", "autoencoder"}}),
       {},
       [](Config& c, const Value& v) { c.model.name = str(v); }},
      {spec("model.classes", kind::integer, "10",
            "number of classes (classification); labels are 0 to classes - 1"),
       {1, 1e6},
       [](Config& c, const Value& v) { c.model.classes = whole<std::uint32_t>(v); }},
      {spec("model.outputs", kind::integer, "1",
            "number of predicted values per row (regression); must be 1, since decoders provide one target",
            {.sample = "#1"}),
       {1, 1},
       [](Config& c, const Value& v) { c.model.outputs = whole<std::uint32_t>(v); }},
      {spec("model.dtype", kind::text, "\"float32\"",
            "floating-point type of parameters and features: float32 | float64",
            {.choices = {"float32", "float64"}}),
       {},
       [](Config& c, const Value& v) { c.model.dtype = str(v); }},
      {spec("model.memory_format", kind::text, "\"channels_last\"",
            "memory layout of images during computation in float32: channels_last | contiguous",
            {.choices = {"channels_last", "contiguous"}}),
       {},
       [](Config& c, const Value& v) { c.model.memory_format = str(v); }},
      {spec("model.autocast", kind::text, "\"off\"",
            "mixed-precision training: off | bfloat16 (convolutions and matrix products, on processors that "
            "support it)",
            {.choices = {"off", "bfloat16"}}),
       {},
       [](Config& c, const Value& v) { c.model.autocast = str(v); }},
  };
}

std::vector<KeyRow> train_rows() {
  return {
      {spec("train.loss", kind::text, "\"cross_entropy\"",
            "loss function: cross_entropy (classification) | mse (regression)",
            {.choices = {"cross_entropy", "mse"}}),
       {},
       [](Config& c, const Value& v) { c.train.loss = str(v); }},
      {spec("train.optimizer.name", kind::text, "\"sgd\"", names_of(devices::builtin_optimizers()).c_str()),
       {},
       [](Config& c, const Value& v) { c.train.optimizer = str(v); }},
      {spec("train.optimizer.lr", kind::number, "0.05",
            "learning rate of steps with train.lr_scaling.base_rows rows per device; train.lr_scaling adapts "
            "it to other step sizes"),
       positive, [](Config& c, const Value& v) { c.train.lr = real(v); }},
      {spec("train.optimizer.weight_decay", kind::number, "0.0",
            "coefficient of weight decay: decoupled for adamw, L2 penalty otherwise"),
       not_negative, [](Config& c, const Value& v) { c.train.weight_decay = real(v); }},
      {spec("train.lr_schedule.policy", kind::text, "\"constant\"",
            ("learning-rate schedule as a function of the rows trained by the group: " +
             controllers_of(Role::learning_rate))
                .c_str()),
       {},
       [](Config& c, const Value& v) { c.train.lr_schedule = str(v); }},
      {spec("train.clip_grad_norm", kind::numbers, "\"auto\"",
            "maximum norm of the group's gradient; larger gradients are scaled down: auto (ten times the "
            "usual norm) | a number; 0 = off",
            {.choices = {"auto"}}),
       not_negative,
       [](Config& c, const Value& v) {
         const auto all = numbers(v);
         c.train.clip_usual = all.empty();
         c.train.clip_grad_norm = all.empty() ? 0 : all.front();
       }},
      {spec("train.class_weights", kind::numbers, "\"none\"",
            "weight of each class in the gradient: none (equal) | auto (1 / sqrt of the class's share of the "
            "rows trained by the group) | [..] (one number per class)",
            {.choices = {"none", "auto"}}),
       {0, 1e6},
       [](Config& c, const Value& v) {
         c.train.class_weights = numbers(v);
         c.train.balanced = v.text() != nullptr && *v.text() == "auto";
       }},
      {spec("train.average", kind::integer, "4000",
            "window of the parameter average for evaluation, prediction and export, in rows of the group; 0 "
            "= latest parameters"),
       {0, 1e12},
       [](Config& c, const Value& v) { c.train.average = whole<std::uint64_t>(v); }},
      {spec("train.on_nonfinite", kind::text, "\"skip\"",
            "reaction to a gradient or loss that is not finite or has exploded: skip (drop and count its "
            "rows) | stop (with an error)",
            {.choices = {"skip", "stop"}}),
       {},
       [](Config& c, const Value& v) { c.train.on_nonfinite = str(v); }},
      {spec("train.on_divergence", kind::text, "\"roll_back\"",
            "reaction to a diverged model: roll_back (to the newest checkpoint of a good model, with a "
            "quarter of the learning rate) | ignore",
            {.choices = {"roll_back", "ignore"}}),
       {},
       [](Config& c, const Value& v) { c.train.on_divergence = str(v); }},
  };
}

std::vector<KeyRow> sync_and_checkpoint_rows() {
  return {
      {spec("sync.policy", kind::text, "\"auto\"",
            ("schedule of synchronizations: " + controllers_of(Role::when)).c_str()),
       {},
       [](Config& c, const Value& v) { c.sync.policy = str(v); }},
      {spec("sync.deadline", kind::duration, "\"5s\"",
            "maximum time without progress of a peer, after which it is considered lost"),
       some_time, [](Config& c, const Value& v) { c.sync.deadline = time(v); }},
      {spec("sync.collective", kind::text, "\"auto\"",
            ("algorithm that sums contributions: " + explained(sync::builtin_aggregations()) + " | " +
             controllers_of(Role::collective))
                .c_str()),
       {},
       [](Config& c, const Value& v) { c.sync.collective = str(v); }},
      {spec("sync.speculate", kind::boolean, "true",
            "whether contributions are sent before the plan is computed, while it is predictable; saves one "
            "exchange per round"),
       {},
       [](Config& c, const Value& v) { c.sync.speculate = std::get<bool>(v.data); }},
      {spec("sync.digest_every", kind::integer, "1", "rounds between digest comparisons"),
       {1, 1e6},
       [](Config& c, const Value& v) { c.sync.digest_every = whole<std::uint32_t>(v); }},
      {spec("sync.bind", kind::text, "\"auto\"",
            "interface or address for peer traffic; auto: the one with a route to the advertised brokers; "
            "all interfaces at once are not allowed"),
       {},
       [](Config& c, const Value& v) { c.sync.bind = str(v); }},
      {spec("sync.advertise", kind::text, "\"\"",
            "address at which peers reach this device, if it differs from the bound address (NAT)",
            {.sample = "#\"10.8.0.3\""}),
       {},
       [](Config& c, const Value& v) { c.sync.advertise = str(v); }},
      {spec("sync.port", kind::integer, "0",
            "port for peer traffic, if a firewall requires a fixed one; groups that change their size also "
            "use "
            "the next; 0 = any free port"),
       {0, 65534},
       [](Config& c, const Value& v) { c.sync.port = whole<int>(v); }},
      {spec("sync.on_peer_loss", kind::text, "\"reform\"",
            "reaction to a lost peer: reform (wait for it, if job.devices is fixed) | shrink (resume with at "
            "least "
            "checkpoint.quorum devices) | exit (with code 75)",
            {.choices = {"reform", "shrink", "exit"}}),
       {},
       [](Config& c, const Value& v) { c.sync.on_peer_loss = str(v); }},
      {spec("compression.policy", kind::text, "\"auto\"",
            ("choice of compressor and keep ratio: none | " + controllers_of(Role::compression) +
             " | auto (chosen by sync.policy)")
                .c_str()),
       {},
       [](Config& c, const Value& v) { c.compression.policy = str(v); }},
      {spec("checkpoint.every.rounds", kind::integer, "500", "applied rounds between checkpoints"),
       {1, 1e9},
       [](Config& c, const Value& v) { c.checkpoint.every_rounds = whole<std::uint64_t>(v); }},
      {spec("checkpoint.every.interval", kind::duration, "\"30s\"",
            "maximum time between checkpoints; the first of both limits applies"),
       some_time, [](Config& c, const Value& v) { c.checkpoint.every_interval = time(v); }},
      {spec("checkpoint.keep", kind::integer, "3",
            "number of newest checkpoints to keep; older ones that the group still needs are also kept"),
       {1, 1000},
       [](Config& c, const Value& v) { c.checkpoint.keep = whole<std::uint32_t>(v); }},
      {spec("checkpoint.quorum", kind::integer, "2",
            "number of devices that must have saved a checkpoint before it is committed; maximum "
            "job.devices.max"),
       {1, 10'000},
       [](Config& c, const Value& v) { c.checkpoint.quorum = whole<std::uint32_t>(v); }},
  };
}

std::vector<KeyRow> operation_rows() {
  return {
      {spec("evaluate.prequential.window", kind::integer, "1000",
            "window of the prequential (test-then-train) accuracy, in rows"),
       {1, 1e9},
       [](Config& c, const Value& v) { c.evaluate.prequential_window = whole<std::uint32_t>(v); }},
      {spec("evaluate.held_out.source", kind::text, "\"file\"", "source of held-out rows: file",
            {.choices = {"file"}, .sample = "#\"file\""})},
      {spec("evaluate.held_out.path", kind::text, "\"\"",
            "directory or file with held-out rows; empty = no held-out evaluation",
            {.sample = "#\"examples/mnist/data\""}),
       {},
       [](Config& c, const Value& v) { c.evaluate.held_out_path = str(v); }},
      {spec("evaluate.held_out.every", kind::duration, "\"5s\"", "time between held-out evaluations",
            {.sample = "#\"5s\""}),
       some_time, [](Config& c, const Value& v) { c.evaluate.held_out_every = time(v); }},
      {spec("http.listen", kind::text, "\"127.0.0.1:9464\"",
            "address of the status page, /metrics, /livez, /readyz and /api/v1/status; \"off\" = none"),
       {},
       [](Config& c, const Value& v) { c.http.listen = str(v); }},
      {spec("http.token_file", kind::text, "\"\"",
            "file with the token that HTTP clients must send; required unless http.listen is a loopback "
            "address",
            {.sample = "#\"/run/secrets/rivulet_http\""}),
       {},
       [](Config& c, const Value& v) { c.http.token_file = str(v); }},
      {spec("log.level", kind::text, "\"info\"", "minimum level of log lines: debug | info | warn | error",
            {.choices = {"debug", "info", "warn", "error"}}),
       {},
       [](Config& c, const Value& v) { c.log.level = str(v); }},
      {spec("log.format", kind::text, "\"auto\"",
            "format of log lines: auto (pretty on a terminal, else logfmt) | pretty | logfmt | json",
            {.choices = {"auto", "pretty", "logfmt", "json"}}),
       {},
       [](Config& c, const Value& v) { c.log.format = str(v); }},
      {spec("log.decisions", kind::text, "\"full\"",
            "content of decisions.jsonl: full (every round, about 2 KB each) | views (only the members of "
            "each view) | off",
            {.choices = {"full", "views", "off"}}),
       {},
       [](Config& c, const Value& v) { c.log.decisions = str(v); }},
      {spec("log.decisions_max", kind::size, "\"64 MiB\"",
            "maximum total size of decisions.jsonl and its rotated files"),
       {1024 * 1024, 1e12},
       [](Config& c, const Value& v) { c.log.decisions_max = whole<std::uint64_t>(v); }},
      {spec("watchdog.deadline", kind::duration, "\"30s\"",
            "maximum time without progress of a thread, after which the process exits with code 70; minimum "
            "1s"),
       {1, 86'400},
       [](Config& c, const Value& v) { c.watchdog.deadline = time(v); }},
  };
}

}  // namespace rivulet::runtime
