#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/settings.h"
#include "core/time.h"

/// The configuration of one device as plain values: device.toml, the environment, --set and flags, in that
/// order of precedence (defaults < file < RIVULET_* < --set < flag). One table (key_table) drives parsing,
/// defaults, help, `config init`, `config show --origin`, "did you mean" and which keys are the group's.
namespace rivulet::runtime {

/// The optimizer of a proposal whose model makes small steps.
inline constexpr std::string_view optimizer_of_small_steps = "adam";

struct Config {
  struct Job {
    std::string name;
    std::uint32_t devices = 4;
    std::uint64_t seed = 42;
  } job;
  struct DeviceKeys {
    std::string id = "device-1";
    std::string data_dir = "/var/lib/rivulet";
    std::string type = "auto";
    int threads = 1;
    double speed = 0;                                ///< beside that of others; 0: threads
    std::uint64_t memory = std::uint64_t{1} << 30U;  ///< bytes; see memory_plan.h
  } device;
  struct Source {
    std::string type = "kafka";         ///< kafka | file | synthetic
    std::vector<std::string> topics;    ///< group key; sorted names only, "topic:0-3" claims go to `claims`
    std::vector<int> partitions = {0};  ///< bound to this device, of the first topic as written
    std::vector<std::pair<std::string, int>> claims;  ///< resolved: every (topic, partition) of this device
    std::string retention = "persist";
    std::string start = "checkpoint";  ///< checkpoint | earliest | latest | an offset
    std::string on_gap = "stop";       ///< stop | count
    std::vector<std::pair<std::string, std::string>> kafka_properties;
    std::string path;  ///< type file
    double rate = 0;   ///< type file and synthetic: rows/s per partition; 0 = full speed
    bool repeat = false;
  } source;
  struct Decode {
    std::string format = "raw";
    // Keys of the chosen format that several formats have; the others are in `settings`.
    std::vector<std::int64_t> shape = {1, 28, 28};
    std::vector<double> scale = {0.0127288};  ///< one for all features, or one each
    std::vector<double> shift = {-0.4242};
    bool normalize = false;  ///< scale is "auto": the model's features are measured
    std::vector<std::string> features;
    std::string target;
    std::vector<std::string> classes;  ///< labels in the order of their class
    std::vector<double> missing;       ///< numbers that mean that there is no value
    std::string fill = "drop";         ///< what it becomes: mean | last | drop | a number
    std::string where;                 ///< "FIELD = VALUE" of the rows that are meant; empty: all
    char decimal = '.';                ///< of numbers in texts
    std::string on_error = "drop";     ///< drop | stop
    std::size_t max_record_bytes = 1'000'000;
  } decode;
  struct Buffer {
    std::size_t rows = 8192;
  } buffer;
  struct Batch {
    std::string policy = "unified";
    std::uint32_t rows = 64;
    std::uint32_t min = 1;
    std::uint32_t max = 128;
    Duration tick = std::chrono::milliseconds(100);
    Duration max_wait = std::chrono::milliseconds(200);
  } batch;
  struct Inject {
    std::string policy = "auto";  ///< none | random | auto
  } inject;
  struct Normalize {
    std::uint64_t window = 10'000;  ///< rows of the group
    double limit = 8;               ///< deviations
    bool targets = true;
  } normalize;
  struct Model {
    std::string name = "lenet5";                  ///< its keys are in `settings`
    std::uint32_t classes = 10;                   ///< classification
    std::uint32_t outputs = 1;                    ///< regression
    std::string dtype = "float32";                ///< float32 | float64
    std::string memory_format = "channels_last";  ///< channels_last | contiguous
    std::string autocast = "off";                 ///< off | bfloat16
  } model;
  struct Train {
    std::string loss = "cross_entropy";
    std::string optimizer = "sgd";  ///< name of it; its keys are in `settings`
    std::string lr_schedule = "constant";
    double lr = 0.05;
    double weight_decay = 0.0;
    double clip_grad_norm = 0.0;            ///< 0: off
    bool clip_usual = true;                 ///< "auto": in place of it
    std::vector<double> class_weights;      ///< of each class; empty: as balanced says
    bool balanced = false;                  ///< class_weights = "auto"
    std::uint64_t average = 4000;           ///< rows of the group; 0: none
    std::string on_nonfinite = "skip";      ///< skip | stop
    std::string on_divergence = "go_back";  ///< go_back | ignore
  } train;
  struct Sync {
    std::string policy = "auto";
    Duration deadline = std::chrono::seconds(5);
    std::string collective = "auto";
    bool speculate = true;  ///< contributions may leave with the facts; group key
    std::string bind = "auto";
    std::string advertise;
    int port = 0;                         ///< of the peer traffic; 0 = any free one
    std::string on_peer_loss = "reform";  ///< reform | exit
    std::uint32_t digest_every = 1;       ///< K: rounds between digests; group key
  } sync;
  struct Compression {
    std::string policy = "auto";
  } compression;
  struct Checkpoint {
    std::uint64_t every_rounds = 500;
    Duration every_interval = std::chrono::seconds(30);
    std::uint32_t keep = 3;
    std::uint32_t quorum = 2;  ///< read from the HELLO by every fold
  } checkpoint;
  struct Evaluate {
    std::uint32_t prequential_window = 1000;
    std::string held_out_path;  ///< empty = off
    Duration held_out_every = std::chrono::seconds(5);
  } evaluate;
  struct Http {
    std::string listen = "127.0.0.1:9464";  ///< "off" = none
    std::string token_file;  ///< whose first line readers must know; empty = everybody may read
  } http;
  struct Log {
    std::string level = "info";
    std::string format = "auto";                             ///< auto | pretty | logfmt | json
    std::string decisions = "full";                          ///< full | views | off
    std::uint64_t decisions_max = std::uint64_t{64} << 20U;  ///< bytes
  } log;
  struct Watchdog {
    Duration deadline =
        std::chrono::seconds(30);  ///< a thread that does not step for this long ends the process with 70
  } watchdog;
  /// Keys that belong to the parts of the catalogs (core/settings.h).
  Settings settings = default_settings();
  static Settings default_settings();
};

/// One row of the table of keys.
struct KeySpec {
  std::string key;   ///< "batch.max_wait"
  std::string type;  ///< "duration", "integer", "string", "list of strings", "table", ...
  std::string text;  ///< the default, as TOML
  std::string help;
  bool group = false;   ///< must be equal on all devices
  bool secret = false;  ///< never printed
  std::string since;    ///< empty = works now; else accepted with its default only ("not in this version")
  std::vector<std::string> choices;  ///< the values it may have; empty = any of its type
  std::vector<std::string> later;    ///< values that are planned: refused with "not in this version"
  std::string sample;  ///< what `config init` writes instead of an empty default; "#..." = as a comment
};
const std::vector<KeySpec>& key_table();

/// One complaint, with a place if there is one: "device.toml:34:1: error: unknown key 'decode.frmat' - did
/// you mean 'format'?"
struct Problem {
  std::string file;
  int line = 0;
  int column = 0;
  bool warning = false;
  std::string message;
  std::string hint;
  [[nodiscard]] std::string text() const;
};

/// Names that the catalogs of this build offer; [decode] format, [model] name, [batch] policy, the optimizer
/// and the compressor must be among them.
struct CatalogNames {
  std::vector<std::string> decoders;
  std::vector<std::string> models;
  std::vector<std::string> policies;
  std::vector<std::string> optimizers;
  std::vector<std::string> compressions = {"none", "fixed"};
  std::vector<std::string> compressors = {"dense"};
  std::vector<std::string> syncs = {"every", "periodic"};
  std::vector<std::string> schedules = {"constant"};
  std::vector<std::string> injections = {"none", "auto"};
  std::vector<std::string> collectives = {"gather", "auto"};
};
CatalogNames builtin_catalog_names();

struct ConfigInput {
  std::string file;                                ///< empty = none
  std::map<std::string, std::string> environment;  ///< RIVULET_* only
  std::vector<std::string> sets;                   ///< key=value, TOML values, quotes optional for strings
  std::vector<std::pair<std::string, std::string>>
      flags;                            ///< key and TOML-ish value, from command-line flags
  bool needs_stream = true;             ///< false: topics and brokers may be missing
  std::optional<CatalogNames> catalog;  ///< empty = builtin_catalog_names()
  /// Value of any variable, for ${VAR}; empty = `environment`, then the process's own.
  std::function<std::optional<std::string>(const std::string&)> variable;
};

/// Line and column of a key in the file, from 1.
struct KeyPlace {
  int line = 0;
  int column = 0;
};

/// A value that must not be shown, and what is shown instead of it.
struct Secret {
  std::string value;
  std::string shown = "***";
};

struct LoadedConfig {
  Config config;
  /// Every key -> value as TOML text for people: secrets masked, ${...} as it was written.
  std::map<std::string, std::string> effective;
  /// Keys that must be equal on all devices -> value as TOML text; what came out of a file as its digest.
  std::map<std::string, std::string> group_values;
  std::map<std::string, std::string>
      origin;                   ///< key -> default | file:line | environment NAME | --set | flag
  std::vector<Secret> secrets;  ///< as masked() takes them
  std::map<std::string, KeyPlace>
      places;                     ///< of the keys that the file sets, each property of the client included
  std::vector<Problem> problems;  ///< errors first; usable only if none is an error
  [[nodiscard]] bool usable() const;
};

/// Never fails as a whole: every problem is collected, so that one run shows all of them.
LoadedConfig load_config(const ConfigInput& input);

/// The group keys with their values as text, and a hash over them and the protocol version.
std::map<std::string, std::string> group_keys(const LoadedConfig& loaded);
std::string group_hash(const std::map<std::string, std::string>& keys);

/// An annotated device.toml with every key that works now.
std::string config_template();

/// "100ms", "5s", "2m" to Duration; "1 MiB" to bytes. Errors: invalid_config.
Result<Duration> parse_duration(const std::string& text);
Result<std::uint64_t> parse_bytes(const std::string& text);

}  // namespace rivulet::runtime
