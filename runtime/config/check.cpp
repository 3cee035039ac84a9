#include "runtime/config/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "devices/trainer.h"
#include "runtime/config/check_rows.h"
#include "runtime/config/check_training.h"
#include "runtime/config/coerce.h"
#include "sync/message/facts.h"
#include "sync/policy/sync_cost.h"

namespace rivulet::runtime {

namespace {

using Names = std::vector<std::string>;

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

using sync::policy::Role;

class Checks {
 public:
  Checks(const Checked& checked, const CatalogNames& catalog, Problems& problems)
      : input_(checked.input),
        c_(checked.config),
        written_(checked.written),
        failed_(checked.failed),
        catalog_(catalog),
        problems_(problems) {}

  void run() {
    names();
    from_catalogs();
    stream();
    decode();
    batch();
    model();
    network();
  }

 private:
  /// Reports a problem at the first of the keys that was set explicitly.
  void wrong(const Names& keys, std::string message, bool warning = false) {
    if (std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return failed_.contains(key); })) return;
    const auto it =
        std::find_if(keys.begin(), keys.end(), [&](const auto& key) { return written_.contains(key); });
    Setting at = it != keys.end() ? written_.at(*it) : Setting{keys.front(), {}, {}, input_.file, ""};
    if (at.value.place.line > 0) at.place = at.value.place;
    report_error(problems_, at, std::move(message));
    problems_.back().warning = warning;
  }

  void name(const std::string& key, const std::string& value, std::size_t most) {
    constexpr auto allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (!value.empty() && value.size() <= most && value.find_first_not_of(allowed) == std::string::npos)
      return;
    wrong({key},
          fmt::format("'{}' is '{}', must be 1 to {} letters, digits, '.', '_' or '-'", key, value, most));
  }

  void names() {
    if (c_.job.name.empty()) {
      wrong({"job.name"}, "'job.name' is required");
    } else {
      name("job.name", c_.job.name, 128);
    }
    name("device.id", c_.device.id, 64);
    if (c_.device.data_dir.empty()) wrong({"device.data_dir"}, "'device.data_dir' must not be empty");
  }

  void catalog_name(const std::string& key, const std::string& value, const Names& known) {
    if (contains(known, value) || contains(find_row(key)->spec.later, value)) return;
    wrong({key}, fmt::format("'{}' is '{}', must be one of: {}{}", key, value, joined(known),
                             did_you_mean(value, known)));
  }

  void from_catalogs() {
    catalog_name("decode.format", c_.decode.format, catalog_.decoders);
    catalog_name("sync.policy", c_.sync.policy, catalog_.syncs);
    catalog_name("batch.policy", c_.batch.policy, catalog_.policies);
    catalog_name("train.optimizer.name", c_.train.optimizer, catalog_.optimizers);
    catalog_name("train.lr_schedule.policy", c_.train.lr_schedule, catalog_.schedules);
    injection();
    compression();
    const auto of_torch = devices::models_of_torch();
    if (std::ranges::find(of_torch, c_.model.name) != of_torch.end() &&
        !contains(catalog_.models, c_.model.name)) {
      wrong({"model.name"}, fmt::format("'model.name' = '{}': this build has no LibTorch; available: {}",
                                        c_.model.name, joined(catalog_.models)));
    } else {
      catalog_name("model.name", c_.model.name, catalog_.models);
    }
  }

  void injection() { catalog_name("inject.policy", c_.inject.policy, catalog_.injections); }

  void compression() {
    catalog_name("compression.policy", c_.compression.policy, catalog_.compressions);
    const std::string& policy = c_.compression.policy;
    const bool joint = policy == sync::policy::decided_jointly;
    const auto* when = sync::policy::controller_named(Role::when, c_.sync.policy);
    const bool decided = joint && when != nullptr && when->joint;
    if (joint && !decided && when != nullptr && written_.contains("compression.policy"))
      wrong({"compression.policy"},
            fmt::format("'compression.policy' is '{}', but 'sync.policy' = '{}' does not decide the "
                        "compression: set a compression policy, or none",
                        policy, c_.sync.policy));
    const bool whole = policy == "none" || (joint && !decided);
    std::string_view compressor = sync::policy::compressor_for(whole ? 1 : 0);
    const auto* fixed = sync::policy::controller_named(Role::compression, policy);
    if (fixed != nullptr && fixed->compressor != nullptr) compressor = fixed->compressor(c_.settings);
    collective(compressor);
    if (policy != "none")
      catalog_name("compression.compressor", c_.settings.text("compression.compressor"),
                   catalog_.compressors);
  }

  /// Warns if the collective is redundant because nothing is compressed; rejects one that cannot sum what the
  /// compressor sends.
  void collective(std::string_view compressor) {
    catalog_name("sync.collective", c_.sync.collective, catalog_.collectives);
    const auto* how = sync::policy::collective_named(c_.sync.collective);
    const auto* small = sync::policy::compressor_named(compressor);
    if (how == nullptr || small == nullptr || sync::policy::can_sum(*how, *small)) return;
    const std::string_view other = sync::policy::stand_in_for(*small).name;
    if (!small->keeps_residual)
      wrong({"sync.collective", "compression.policy"},
            fmt::format("'sync.collective' is '{}', which equals '{}' if contributions are not compressed",
                        c_.sync.collective, other),
            true);
    else
      wrong(
          {"sync.collective", "compression.policy"},
          fmt::format("'sync.collective' is '{}', which cannot sum the payloads of compressor '{}'; '{}' can",
                      c_.sync.collective, compressor, other));
  }

  void stream() {
    start_offset();
    if (c_.source.type == "file" && c_.source.path.empty()) {
      wrong({"source.path", "source.type"}, "'source.path' is required for source.type = 'file'");
    }
    const bool any = std::any_of(written_.begin(), written_.end(),
                                 [](const auto& s) { return s.first.starts_with("source."); });
    if (!input_.needs_stream || (input_.file.empty() && !any)) return;
    if (c_.source.topics.empty()) wrong({"source.topics"}, "'source.topics' is required");
    if (!c_.source.topics.empty() && c_.source.claims.empty()) {
      wrong({"source.partitions"}, "'source.partitions' claims no partition");
    }
    if (c_.source.claims.size() > sync::facts_partitions_max) {
      wrong({"source.partitions"}, fmt::format("'source.partitions' claims {} partitions, must claim at most "
                                               "{} (the limit of a device's facts)",
                                               c_.source.claims.size(), sync::facts_partitions_max));
    }
    brokers();
    isolation();
  }

  void start_offset() {
    const std::string& start = c_.source.start;
    const Names words{"checkpoint", "earliest", "latest"};
    std::int64_t offset = -1;
    const auto end = start.data() + start.size();
    const auto parsed = std::from_chars(start.data(), end, offset);
    if (contains(words, start) || (parsed.ec == std::errc() && parsed.ptr == end && offset >= 0)) return;
    wrong({"source.start"},
          fmt::format("'source.start' is '{}', must be checkpoint, earliest, latest or an offset{}", start,
                      did_you_mean(start, words)));
  }

  /// Warns if rows of aborted transactions would be trained.
  void isolation() {
    const std::string name = "isolation.level";
    for (const auto& [key, value] : c_.source.kafka_properties)
      if (key == name && value != "read_committed")
        wrong({"source.kafka.properties." + name},
              "'isolation.level' is '" + value +
                  "': rows of aborted transactions would be trained; use 'read_committed' (the default)",
              true);
  }

  void brokers() {
    const Names keys{"source.kafka.properties.bootstrap.servers",
                     "source.kafka.properties.metadata.broker.list"};
    const auto& properties = c_.source.kafka_properties;
    const bool named = std::any_of(properties.begin(), properties.end(), [](const auto& p) {
      return (p.first == "bootstrap.servers" || p.first == "metadata.broker.list") && !p.second.empty();
    });
    if (named) return;
    if (c_.source.type == "kafka") {
      wrong({keys[0]}, "'" + keys[0] + "' is required for source.type = 'kafka'");
    } else if (c_.job.devices.max > 1) {
      wrong({keys[0]}, fmt::format("'{}' is required: a group of {} devices forms through a broker", keys[0],
                                   text_of(c_.job.devices)));
    }
  }

  void decode() {
    const auto& d = c_.decode;
    double columns = 1;
    for (const auto axis : d.shape) columns *= static_cast<double>(axis);
    const std::string table = "decode." + d.format;
    if (columns > 1e7)
      wrong({table + ".shape"},
            fmt::format("'{}.shape' describes {:.0f} values per row, must be at most 10000000", table,
                        columns));
    if (!contains(catalog_.decoders, d.format)) return;
    const bool listed = c_.settings.has<Settings::Texts>(table + ".features");
    const bool named = c_.settings.has<std::string>(table + ".target");
    if (!listed && d.shape.empty())
      wrong({table + ".shape"}, fmt::format("'{}.shape' must not be empty", table));
    if (c_.settings.has<std::string>(table + ".label") && c_.settings.text(table + ".label") == "none")
      wrong({table + ".label"}, fmt::format("'{}.label' is none, but training needs a target", table));
    if (listed && d.features.empty())
      wrong({table + ".features", "decode.format"},
            fmt::format("'{}.features' is required for decode.format = '{}'", table, d.format));
    if (named && d.target.empty())
      wrong({table + ".target", "decode.format"},
            fmt::format("'{}.target' is required for decode.format = '{}'", table, d.format));
    class_list();
    const auto complain_at = [this](const Names& keys, const std::string& message) { wrong(keys, message); };
    const auto warn_at = [this](const Names& keys, const std::string& message) {
      wrong(keys, message, true);
    };
    check_training(c_, written_, complain_at, warn_at);
    check_rows(c_, written_, complain_at);
  }

  void class_list() {
    const auto& names = c_.decode.classes;
    if (names.empty()) return;
    const std::string key = "decode." + c_.decode.format + ".classes";
    if (c_.train.loss != "cross_entropy") {
      wrong({key}, fmt::format("'{}' has no effect with train.loss = '{}'", key, c_.train.loss), true);
      return;
    }
    if (names.size() < 2)
      wrong({key}, fmt::format("'{}' names one class, must name at least 2", key));
    else if (names.size() != c_.model.classes)
      wrong({"model.classes", key},
            fmt::format("'model.classes' is {}, but '{}' names {}: make both equal, or omit 'model.classes'",
                        c_.model.classes, key, names.size()));
    std::set<std::string> seen;
    for (const auto& name : names)
      if (!seen.insert(name).second) wrong({key}, fmt::format("'{}' names '{}' twice", key, name));
  }

  void batch() {
    const auto& b = c_.batch;
    if (b.min > b.max)
      wrong({"batch.min", "batch.max"},
            fmt::format("'batch.min' is {}, must be at most 'batch.max' = {}", b.min, b.max));
    const auto* policy = sync::policy::controller_named(Role::batch, b.policy);
    if (policy != nullptr && policy->fixed_rows && (b.rows > b.max || b.rows < b.min)) {
      wrong({"batch.rows", "batch.max", "batch.min"},
            fmt::format("'batch.rows' is {}, must be from 'batch.min' = {} to 'batch.max' = {}", b.rows,
                        b.min, b.max));
    }
    if (c_.buffer.rows < b.max) {
      wrong(
          {"buffer.rows", "batch.max"},
          fmt::format("'buffer.rows' is {}, must be at least 'batch.max' = {}: the buffer must hold a batch",
                      c_.buffer.rows, b.max));
    }
    if (policy != nullptr && policy->fills_ticks && b.max_wait < b.tick) {
      wrong({"batch.max_wait", "batch.tick"},
            fmt::format(
                "'batch.max_wait' is {}, below 'batch.tick' = {}: every round ends after {}, before the end "
                "of its tick",
                render_duration(b.max_wait), render_duration(b.tick), render_duration(b.max_wait)),
            true);
    }
    if (c_.sync.deadline <= b.max_wait) {
      wrong({"sync.deadline", "batch.max_wait"},
            fmt::format("'sync.deadline' is {}, must be above 'batch.max_wait' = {}: otherwise a device that "
                        "waits for rows is considered lost",
                        render_duration(c_.sync.deadline), render_duration(b.max_wait)));
    }
  }

  void model() {
    const bool classes = c_.train.loss == "cross_entropy";
    if (classes && c_.model.classes < 2 && c_.decode.classes.empty())
      wrong({"model.classes"}, "'model.classes' is 1, must be at least 2 for train.loss = 'cross_entropy'");
    if (classes && written_.contains("model.outputs")) {
      wrong({"model.outputs"},
            "'model.outputs' has no effect with train.loss = 'cross_entropy'; use model.classes", true);
    }
    if (!classes && written_.contains("model.classes")) {
      wrong({"model.classes"}, "'model.classes' has no effect with train.loss = 'mse'; use model.outputs",
            true);
    }
    if (!classes && !c_.evaluate.held_out_path.empty()) {
      wrong({"evaluate.held_out.path"},
            "'evaluate.held_out.path' has no effect with train.loss = 'mse': held-out evaluation measures "
            "accuracy, which requires classes",
            true);
    }
    for (const devices::ModelEntry* entry : devices::builtin_models())
      if (entry->check != nullptr)
        for (KeyFault& fault : entry->check(c_.settings, c_.model.name))
          wrong(fault.keys, std::move(fault.message));
  }

  void network() {
    const Names all{"", "0.0.0.0", "::", "[::]", "*"};
    if (contains(all, c_.sync.bind)) {
      wrong({"sync.bind"}, fmt::format("'sync.bind' is '{}', must be one interface or address: peer traffic "
                                       "must not be accepted on all interfaces",
                                       c_.sync.bind));
    }
    listen();
  }

  void listen() {
    const std::string& text = c_.http.listen;
    if (text == "off") return;
    const auto colon = text.rfind(':');
    const std::string host = text.substr(0, colon);
    int port = -1;
    if (colon != std::string::npos) {
      const auto end = text.data() + text.size();
      if (std::from_chars(text.data() + colon + 1, end, port).ptr != end) port = -1;
    }
    const bool plain = !host.empty() && host.find_first_of(" []/") == std::string::npos &&
                       host.find(':') == std::string::npos;
    if (port < 0 || port > 65535 || colon + 1 == text.size() || !plain) {
      wrong({"http.listen"},
            fmt::format("'http.listen' is '{}', must be ADDRESS:PORT (an IPv4 address), or off", text));
    } else if (host != "localhost" && !host.starts_with("127.") && c_.http.token_file.empty()) {
      wrong({"http.listen", "http.token_file"},
            fmt::format("'http.listen' is '{}', which other machines can reach: 'http.token_file' must name "
                        "a file with the token that clients must send",
                        text));
    }
  }

  const ConfigInput& input_;
  const Config& c_;
  const SettingsByKey& written_;
  const std::set<std::string>& failed_;
  const CatalogNames& catalog_;
  Problems& problems_;
};

}  // namespace

void check_all(const Checked& checked, const CatalogNames& catalog, Problems& problems) {
  Checks(checked, catalog, problems).run();
}

}  // namespace rivulet::runtime
