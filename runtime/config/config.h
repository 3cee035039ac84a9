#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/group_sizes.h"
#include "core/result.h"
#include "core/settings.h"
#include "core/time.h"

/// The configuration of one device as plain values. Sources in increasing precedence: defaults < file <
/// RIVULET_* < --set < flag. One table (key_table) drives parsing, defaults, help, `config init`, `config
/// show --origin`, "did you mean" and the choice of group keys.
namespace rivulet::runtime {

/// The optimizer proposed for a model that needs small steps.
inline constexpr std::string_view optimizer_of_small_steps = "adam";

struct Config {
  struct Job {
    std::string name;
    GroupSizes devices = 4;
    std::uint64_t seed = 42;
  } job;
  struct DeviceKeys {
    std::string id = "device-1";
    std::string data_dir = "/var/lib/rivulet";
    std::string type = "auto";
    int threads = 1;
    double speed = 0;                                ///< relative to the other devices; 0 = device.threads
    std::uint64_t memory = std::uint64_t{1} << 30U;  ///< bytes; see memory_plan.h
  } device;
  struct Source {
    std::string type = "kafka";         ///< kafka | file | synthetic
    std::vector<std::string> topics;    ///< group key; sorted names only, "topic:0-3" claims go to `claims`
    std::vector<int> partitions = {0};  ///< claimed by this device, of the first topic as written
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
    // Keys of the chosen format that several formats share; the others are in `settings`.
    std::vector<std::int64_t> shape = {1, 28, 28};
    std::vector<double> scale = {0.0127288};  ///< one for all features, or one per feature
    std::vector<double> shift = {-0.4242};
    bool normalize = false;  ///< scale is "auto": normalizes by measured statistics
    std::vector<std::string> features;
    std::string target;
    std::vector<std::string> classes;  ///< labels in class order
    std::vector<double> missing;       ///< numbers that stand for a missing value
    std::string fill = "drop";         ///< replacement of a missing value: mean | last | drop | a number
    std::string where;                 ///< "FIELD = VALUE" that selects rows; empty = all rows
    char decimal = '.';                ///< decimal separator of numbers in text
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
    double limit = 8;               ///< standard deviations
    bool targets = true;
  } normalize;
  struct Model {
    std::string name = "lenet5";                  ///< name of the model; the model's keys are in `settings`
    std::uint32_t classes = 10;                   ///< classification
    std::uint32_t outputs = 1;                    ///< regression
    std::string dtype = "float32";                ///< float32 | float64
    std::string memory_format = "channels_last";  ///< channels_last | contiguous
    std::string autocast = "off";                 ///< off | bfloat16
  } model;
  struct Train {
    std::string loss = "cross_entropy";
    std::string optimizer = "sgd";  ///< name of the optimizer; the optimizer's keys are in `settings`
    std::string lr_schedule = "constant";
    double lr = 0.05;
    double weight_decay = 0.0;
    double clip_grad_norm = 0.0;              ///< 0 = off
    bool clip_usual = true;                   ///< "auto": used instead of clip_grad_norm
    std::vector<double> class_weights;        ///< one per class; if empty, `balanced` applies
    bool balanced = false;                    ///< class_weights = "auto"
    std::uint64_t average = 4000;             ///< rows of the group; 0 = no averaging
    std::string on_nonfinite = "skip";        ///< skip | stop
    std::string on_divergence = "roll_back";  ///< roll_back | ignore
  } train;
  struct Sync {
    std::string policy = "auto";
    Duration deadline = std::chrono::seconds(5);
    std::string collective = "auto";
    bool speculate = true;  ///< contributions may be sent with the facts; group key
    std::string bind = "auto";
    std::string advertise;
    int port = 0;                         ///< port of peer traffic; 0 = any free one
    std::string on_peer_loss = "reform";  ///< reform | shrink | exit
    std::uint32_t digest_every = 1;       ///< rounds between digests; group key
  } sync;
  struct Compression {
    std::string policy = "auto";
  } compression;
  struct Checkpoint {
    std::uint64_t every_rounds = 500;
    Duration every_interval = std::chrono::seconds(30);
    std::uint32_t keep = 3;
    std::uint32_t quorum = 2;  ///< every fold reads it from the HELLO
  } checkpoint;
  struct Evaluate {
    std::uint32_t prequential_window = 1000;
    std::string held_out_path;  ///< empty = off
    Duration held_out_every = std::chrono::seconds(5);
  } evaluate;
  struct Http {
    std::string listen = "127.0.0.1:9464";  ///< "off" = none
    std::string token_file;                 ///< its first line is the required token; empty = no token
  } http;
  struct Log {
    std::string level = "info";
    std::string format = "auto";                             ///< auto | pretty | logfmt | json
    std::string decisions = "full";                          ///< full | views | off
    std::uint64_t decisions_max = std::uint64_t{64} << 20U;  ///< bytes
  } log;
  struct Watchdog {
    Duration deadline =
        std::chrono::seconds(30);  ///< exit with code 70 if a thread makes no step for this long
  } watchdog;
  /// Keys of catalog entries (core/settings.h).
  Settings settings = default_settings();
  static Settings default_settings();
};

/// As in a configuration: "4", "2-16", "{ min = 2, wanted = 8, max = 16 }".
std::string text_of(const GroupSizes& sizes);

/// One row of the key table.
struct KeySpec {
  std::string key;   ///< "batch.max_wait"
  std::string type;  ///< "duration", "integer", "string", "list of strings", "table", ...
  std::string text;  ///< the default, as TOML
  std::string help;
  bool group = false;   ///< must be equal on all devices
  bool secret = false;  ///< never printed
  std::string since;    ///< empty = supported; else only its default is accepted ("not in this version")
  std::vector<std::string> choices;  ///< allowed values; empty = any of its type
  std::vector<std::string> later;    ///< planned values, rejected with "not in this version"
  std::string sample;  ///< text that `config init` writes for an empty default; "#..." = commented out
};
const std::vector<KeySpec>& key_table();

/// One problem, with its place in the file if known: "device.toml:34:1: error: unknown key 'decode.frmat' -
/// did you mean 'format'?"
struct Problem {
  std::string file;
  int line = 0;
  int column = 0;
  bool warning = false;
  std::string message;
  std::string hint;
  [[nodiscard]] std::string text() const;
};

/// Names that the catalogs of this build offer. [decode] format, [model] name, [batch] policy, the optimizer
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
      flags;                            ///< key and value in relaxed TOML, from command-line flags
  bool needs_stream = true;             ///< if false, topics and brokers may be missing
  std::optional<CatalogNames> catalog;  ///< empty = builtin_catalog_names()
  /// Looks up a variable for ${VAR}. If empty, looks in `environment`, then in the process's environment.
  std::function<std::optional<std::string>(const std::string&)> variable;
};

/// Line and column of a key in the file, from 1.
struct KeyPlace {
  int line = 0;
  int column = 0;
};

/// A secret value and its display text.
struct Secret {
  std::string value;
  std::string shown = "***";
};

struct LoadedConfig {
  Config config;
  /// Every key -> its value as TOML text for display: secrets are masked, and ${...} appears as written.
  std::map<std::string, std::string> effective;
  /// Group keys -> their values as TOML text; a value read from a file appears as a digest.
  std::map<std::string, std::string> group_values;
  std::map<std::string, std::string>
      origin;                              ///< key -> default | file:line | environment NAME | --set | flag
  std::vector<Secret> secrets;             ///< input of masked()
  std::map<std::string, KeyPlace> places;  ///< places of keys set in the file and of client properties
  std::vector<Problem> problems;           ///< errors first; usable only without errors
  [[nodiscard]] bool usable() const;
};

/// Loads the configuration. Collects all problems instead of stopping at the first.
LoadedConfig load_config(const ConfigInput& input);

/// Returns the group keys with their values as text, and a hash over them and the protocol version.
std::map<std::string, std::string> group_keys(const LoadedConfig& loaded);
std::string group_hash(const std::map<std::string, std::string>& keys);

/// Returns an annotated device.toml with every supported key.
std::string config_template();

/// Parse "100ms", "5s", "2m" to a Duration, "1 MiB" to bytes. Errors: invalid_config.
Result<Duration> parse_duration(const std::string& text);
Result<std::uint64_t> parse_bytes(const std::string& text);

}  // namespace rivulet::runtime
