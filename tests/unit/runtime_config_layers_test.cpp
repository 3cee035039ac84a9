#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "runtime/config/config.h"
#include "tests/support/config_text.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

using Claims = std::vector<std::pair<std::string, int>>;
using Properties = std::vector<std::pair<std::string, std::string>>;

}  // namespace

TEST_CASE("Config layers: defaults < file < environment < --set < flag, and the origin tells which won") {
  Files files;
  auto input =
      input_of(files.write("d.toml",
                           "[job]\nname = \"f\"\n[batch]\nrows = 2\nmin = 2\nmax = 200\n[source]\ntopics = "
                           "[\"t\"]\n[source.kafka.properties]\nbootstrap.servers = \"a:1\"\n"));
  input.environment = {{"RIVULET_SET_BATCH__MIN", "3"}, {"RIVULET_SET_BATCH__MAX", "300"},
                       {"RIVULET_ID", "env-id"},        {"RIVULET_SET_DEVICE__ID", "less"},
                       {"RIVULET_BROKERS", "b:2"},      {"RIVULET_DEVICES", "9"}};
  input.sets = {"batch.max=400", "job.devices=8", "batch.max_wait=300ms"};
  input.flags = {{"job.devices", "7"}};
  const auto loaded = load_config(input);
  REQUIRE(texts(loaded) == Lines{});
  const Config& c = loaded.config;
  CHECK(c.buffer.rows == 8192);
  CHECK(c.batch.rows == 2);
  CHECK(c.batch.min == 3);
  CHECK(c.batch.max == 400);
  CHECK(c.batch.max_wait == 300ms);
  CHECK(c.job.devices == 7);
  CHECK(c.device.id == "env-id");
  CHECK(c.source.kafka_properties == Properties{{"bootstrap.servers", "b:2"}});
  CHECK(loaded.origin.at("buffer.rows") == "default");
  CHECK(loaded.origin.at("batch.rows") == input.file + ":4");
  CHECK(loaded.origin.at("batch.min") == "environment RIVULET_SET_BATCH__MIN");
  CHECK(loaded.origin.at("batch.max") == "--set");
  CHECK(loaded.origin.at("job.devices") == "flag");
  CHECK(loaded.origin.at("device.id") == "environment RIVULET_ID");
}

TEST_CASE(
    "Config layers: a shell does not export HOSTNAME, and the device is called after its machine all the "
    "same") {
  Files files;
  auto input = input_of(files.write("d.toml", "[job]\nname = \"f\"\n"));
  input.variable = nullptr;
  std::array<char, 256> name{};
  REQUIRE(gethostname(name.data(), name.size() - 1) == 0);
  ::unsetenv("HOSTNAME");  // NOLINT(concurrency-mt-unsafe): no thread reads it
  CHECK(load_config(input).config.device.id == name.data());
  input.environment["HOSTNAME"] = "edge-9";
  CHECK(load_config(input).config.device.id == "edge-9");
}

TEST_CASE("Config layers: every variable of a flag reaches its key, and every key has a variable") {
  auto input = input_of();
  input.environment = {{"RIVULET_ID", "x"},
                       {"RIVULET_BROKERS", "h:1"},
                       {"RIVULET_TOPIC", "a,b"},
                       {"RIVULET_PARTITIONS", "0-2"},
                       {"RIVULET_DEVICES", "3"},
                       {"RIVULET_DATA_DIR", "/tmp/x"},
                       {"RIVULET_HTTP", "off"},
                       {"RIVULET_PEER_BIND", "wg0"},
                       {"RIVULET_ADVERTISE", "10.8.0.3"},
                       {"RIVULET_CONFIG", "d.toml"},
                       {"RIVULET_CACHE", "/c"},
                       {"RIVULET_FULL", "1"},
                       {"RIVULET_SET_JOB__NAME", "j"},
                       {"RIVULET_SET_TRAIN__OPTIMIZER__LR", "0.5"},
                       {"RIVULET_SET_SOURCE__KAFKA__PROPERTIES__SESSION_TIMEOUT_MS", "45000"}};
  const auto loaded = load_config(input);
  REQUIRE(texts(loaded) == Lines{});
  const Config& c = loaded.config;
  CHECK(c.source.topics == Lines{"a", "b"});
  CHECK(c.source.claims == Claims{{"a", 0}, {"a", 1}, {"a", 2}});
  CHECK(c.job.devices == 3);
  CHECK(c.device.data_dir == "/tmp/x");
  CHECK(c.http.listen == "off");
  CHECK(c.sync.bind == "wg0");
  CHECK(c.sync.advertise == "10.8.0.3");
  CHECK(c.train.lr == 0.5);
  CHECK(c.source.kafka_properties ==
        Properties{{"bootstrap.servers", "h:1"}, {"session.timeout.ms", "45000"}});
}

TEST_CASE("Config layers: unknown variables, keys and texts name where they came from") {
  auto input = input_of();
  input.environment = {
      {"RIVULET_BROKER", "h:1"}, {"RIVULET_SET_BATCH__TIK", "5s"}, {"RIVULET_SET_BATCH__TICK", "soon"}};
  input.sets = {"job.name=j", "nothing", "batch=5", "sync.deadlin=5s"};
  input.flags = {{"job.devices", "many"}};
  CHECK(
      texts(load_config(input)) ==
      Lines{"environment RIVULET_SET_BATCH__TIK: error: unknown key 'batch.tik' - did you mean 'tick'?",
            "--set nothing: error: expected key=value",
            "--set batch: error: 'batch' is a table: set it to { key = value, ... }, or set one of its keys",
            "--set sync.deadlin: error: unknown key 'sync.deadlin' - did you mean 'deadline'?",
            "flag for job.devices: error: 'job.devices' is 'many', must be a number from 1 to 10000, or a "
            "range "
            "such as \"2-16\"",
            "environment RIVULET_SET_BATCH__TICK: error: 'batch.tick' must be a duration such as "
            "\"100ms\", not the string \"soon\"",
            "environment RIVULET_BROKER: warning: unknown variable - did you mean 'RIVULET_BROKERS'?\n"
            "        hint: any key can be set as RIVULET_SET_<TABLE>__<KEY>"});
}

TEST_CASE("Config layers: --set takes TOML, bare strings, bare lists and inline tables") {
  const auto loaded =
      with_sets({"device.id='a-1'", "device.data_dir=/tmp/with space", "decode.raw.shape=[2, 3]",
                 "train.optimizer={ lr = 0.25, momentum = 0.5 }", "batch.tick=\"50ms\"", "source.start=120",
                 "model.mlp.hidden=8,16", "train.clip_grad_norm=2", "source.repeat=true",
                 "evaluate.held_out={ source = \"file\", path = \"/x y\", every = \"7s\" }"});
  REQUIRE(texts(loaded) == Lines{});
  const Config& c = loaded.config;
  CHECK(c.device.id == "a-1");
  CHECK(c.device.data_dir == "/tmp/with space");
  CHECK(c.decode.shape == std::vector<std::int64_t>{2, 3});
  CHECK(c.train.lr == 0.25);
  CHECK(c.settings.number("train.optimizer.momentum") == 0.5);
  CHECK(c.batch.tick == 50ms);
  CHECK(c.source.start == "120");
  CHECK(c.settings.integers("model.mlp.hidden") == std::vector<std::int64_t>{8, 16});
  CHECK(c.train.clip_grad_norm == 2.0);
  CHECK(c.source.repeat);
  CHECK(c.evaluate.held_out_path == "/x y");
  CHECK(c.evaluate.held_out_every == 7s);
}

TEST_CASE("Config claims: topics and partitions in every way of writing") {
  const auto claims = [](Lines sets) {
    const auto loaded = with_sets(std::move(sets));
    CHECK(texts(loaded) == Lines{});
    return loaded.config.source.claims;
  };
  CHECK(claims({"source.topics=m"}) == Claims{{"m", 0}});
  CHECK(claims({"source.partitions=[2, 1]", "source.topics=m"}) == Claims{{"m", 1}, {"m", 2}});
  CHECK(claims({"source.topics=m:0-3"}) == Claims{{"m", 0}, {"m", 1}, {"m", 2}, {"m", 3}});
  CHECK(claims({"source.topics=m:1,2"}) == Claims{{"m", 1}, {"m", 2}});
  CHECK(claims({"source.topics=[\"m:1,2\", \"n\"]"}) == Claims{{"m", 1}, {"m", 2}});
  CHECK(claims({"source.partitions=m:3,a:0-1", "source.topics=m,a"}) == Claims{{"a", 0}, {"a", 1}, {"m", 3}});
  CHECK(claims({"source.partitions=4", "source.topics=z,a"}) == Claims{{"z", 4}});
  CHECK(with_sets({"source.topics=z,a"}).config.source.topics == Lines{"a", "z"});
  CHECK(with_sets({"source.partitions=0-2", "source.topics=z,a:5"}).config.source.partitions ==
        std::vector<int>{0, 1, 2});
  const auto wrong = [](Lines sets) { return texts(with_sets(std::move(sets))); };
  CHECK(wrong({"source.partitions=b:1", "source.topics=a"})[0] ==
        "--set source.partitions: error: 'source.partitions' claims b:1, but b is not in source.topics");
  CHECK(wrong({"source.topics=a:3-1"})[0] ==
        "--set source.topics: error: 'source.topics': '3-1' is not a partition, a range such as 0-3 or a "
        "list such as 1,2");
  CHECK(wrong({"source.topics=a,a"}) == Lines{"--set source.topics: error: 'source.topics' names a twice"});
  CHECK(wrong({"source.topics=a b"})[0] ==
        "--set source.topics: error: 'source.topics': 'a b' is not a topic name (1 to 249 letters, digits, "
        "'.', '_' or '-')");
  CHECK(wrong({"source.partitions=[]", "source.topics=a"}) ==
        Lines{"--set source.partitions: error: 'source.partitions' claims no partition"});
  CHECK(wrong({"source.partitions=[-1]", "source.topics=a"}).size() == 2);
}

TEST_CASE("Config claims: places are those of the item") {
  Files files;
  const auto file =
      files.write("d.toml",
                  "[job]\nname = \"j\"\n[source]\ntopics = [\"a\", \"b c\"]\npartitions = [0, \"x:1\"]\n"
                  "kafka.properties.bootstrap.servers = \"h:1\"\n");
  const auto problems = texts(load_config(input_of(file)));
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].starts_with(file + ":4:16: error: 'source.topics': 'b c' is not a topic name"));
  CHECK(problems[1] == file + ":5:18: error: 'source.partitions' claims x:1, but x is not in source.topics");
}

TEST_CASE("Config properties: dotted and quoted names come back flat, every scalar as text, with its place") {
  Files files;
  const auto file = files.write("d.toml", R"([job]
name = "j"
[source]
topics = ["t"]
[source.kafka.properties]
bootstrap.servers = "k1:9093,k2:9093"
"max.in.flight" = 5
max.in.flight.requests.per.connection = 4
session.timeout.ms = 45000
enable.idempotence = true
  sasl.password = "p$$w"
"ssl.ca.location" = ""
)");
  const auto loaded = load_config(input_of(file));
  REQUIRE(loaded.usable());
  CHECK(loaded.config.source.kafka_properties == Properties{{"bootstrap.servers", "k1:9093,k2:9093"},
                                                            {"enable.idempotence", "true"},
                                                            {"max.in.flight", "5"},
                                                            {"max.in.flight.requests.per.connection", "4"},
                                                            {"sasl.password", "p$$w"},
                                                            {"session.timeout.ms", "45000"},
                                                            {"ssl.ca.location", ""}});
  const auto place = loaded.places.at("source.kafka.properties.sasl.password");
  CHECK(place.line == 11);
  CHECK(place.column == 3);
  CHECK(loaded.places.at("source.kafka.properties.max.in.flight").line == 7);
  CHECK(loaded.origin.at("source.kafka.properties.session.timeout.ms") == file + ":9");
}

TEST_CASE("Config interpolation: variables, defaults, files, and what is missing") {
  const auto id = [](const std::string& text) {
    const auto loaded = with_sets({"device.id=" + text});
    return loaded.problems.empty() ? loaded.config.device.id : texts(loaded)[0];
  };
  CHECK(id("${SITE}-1") == "plant-1");
  CHECK(id("${NOPE:-x}") == "x");
  CHECK(id("${EMPTY:-x}") == "x");
  CHECK(id("a${EMPTY}b") == "ab");
  const std::string prefix = "--set device.id: error: ";
  CHECK(id("${NOPE}") == prefix + "${NOPE} is not set and has no default (${NOPE:-default})");
  CHECK(id("${file:/nowhere/x}") ==
        prefix + "${file:/nowhere/x}: the file does not exist or is not readable");
  CHECK(id("${SITE") == prefix + "'${' without '}'");
  CHECK(id("${A B}") == prefix + "${A B}: expected a name, NAME:-default or file:PATH");
  const auto rows =
      with_sets({"batch.rows=${ROWS}", "batch.tick=${NOPE:-70ms}", "device.data_dir=/a/$${SITE}"});
  REQUIRE(texts(rows) == Lines{});
  CHECK(rows.config.batch.rows == 77);
  CHECK(rows.config.batch.tick == 70ms);
  CHECK(rows.config.device.data_dir == "/a/${SITE}");
  Files files;
  const auto file = files.write("d.toml", "[job]\nname = \"j\"\n[device]\nid   = \"${NOPE}\"\n");
  CHECK(texts(load_config(input_of(file)))[0] ==
        file + ":4:8: error: ${NOPE} is not set and has no default (${NOPE:-default})");
}

TEST_CASE("Config group: the hash follows the group keys only, in one form of writing") {
  const auto hash = [](Lines sets) { return group_hash(group_keys(with_sets(std::move(sets)))); };
  const auto standard = hash({});
  CHECK(standard.size() == 32);
  for (const char* own : {"device.id=x", "device.threads=2", "source.partitions=3", "buffer.rows=4096",
                          "sync.bind=wg0", "sync.advertise=h", "sync.port=7400", "http.listen=off",
                          "log.level=warn", "source.kafka.properties.client.id=x"}) {
    CHECK_MESSAGE(hash({own}) == standard, own);
  }
  for (const char* group :
       {"job.devices=5", "job.seed=1", "batch.tick=50ms", "model.name=linear", "train.optimizer.lr=0.1",
        "sync.deadline=6s", "decode.raw.scale=1.0", "source.topics=u", "sync.collective=sum"}) {
    CHECK_MESSAGE(hash({group}) != standard, group);
  }
  CHECK(hash({"batch.tick=0.1s", "train.optimizer.lr=5e-2", "source.topics=t:0-3"}) == standard);
  const auto keys = group_keys(with_sets({}));
  CHECK(keys.at("batch.tick") == "100ms");
  CHECK(keys.at("job.devices") == "4");
  CHECK(keys.at("source.topics") == "[\"t\"]");
  CHECK_FALSE(keys.contains("device.id"));
}

TEST_CASE(
    "Config: a collective that cannot sum what is sent is refused, and one that comes to the same is said") {
  const auto problems = [](const testing::Lines& sets) {
    auto input = input_of();
    input.catalog = runtime::builtin_catalog_names();
    input.sets = {"job.name=j", "source.kafka.properties.bootstrap.servers=h:1", "source.topics=t",
                  "model.name=linear"};
    input.sets.insert(input.sets.end(), sets.begin(), sets.end());
    std::string all;
    for (const auto& problem : load_config(input).problems) all += problem.message + "\n";
    return all;
  };
  const testing::Lines low_rank{"compression.policy=fixed", "compression.compressor=low_rank"};
  const auto with = [](testing::Lines lines, const char* collective) {
    lines.push_back(std::string("sync.collective=") + collective);
    return lines;
  };
  for (const char* fits : {"gather", "low_rank", "auto", "learned"})
    CHECK(problems(with(low_rank, fits)).empty());
  CHECK(contains(problems(with(low_rank, "two_sided")),
                 "'two_sided', which cannot sum the payloads of compressor 'low_rank'; 'low_rank' can"));
  CHECK(contains(problems(with({"compression.policy=fixed", "compression.compressor=topk"}, "low_rank")),
                 "which cannot sum the payloads of compressor 'topk'; 'gather' can"));
  CHECK(contains(problems(with({"compression.policy=gravac"}, "ring")), "'ring', which cannot sum"));
  CHECK(contains(problems(with({"compression.policy=none"}, "shared_index")),
                 "which equals 'sum' if contributions are not compressed"));
  CHECK(contains(problems({"sync.collective=two_sidde"}), "did you mean 'two_sided'"));
}

TEST_CASE("Config: a compression that no policy decides is refused where somebody asks for it") {
  const auto problems = [](const testing::Lines& sets) {
    auto input = input_of();
    input.catalog = runtime::builtin_catalog_names();
    input.sets = {"job.name=j", "source.kafka.properties.bootstrap.servers=h:1", "source.topics=t",
                  "model.name=linear"};
    input.sets.insert(input.sets.end(), sets.begin(), sets.end());
    std::string all;
    for (const auto& problem : load_config(input).problems) all += problem.message + "\n";
    return all;
  };
  CHECK(contains(
      problems({"sync.policy=every", "compression.policy=auto"}),
      "'compression.policy' is 'auto', but 'sync.policy' = 'every' does not decide the compression"));
  for (const char* policy : {"every", "periodic", "selsync", "auto"})
    CHECK(problems({std::string("sync.policy=") + policy}).empty());
  CHECK(problems({"sync.policy=auto", "compression.policy=auto"}).empty());
}

TEST_CASE("Config group: the hash tells one key from another, and where a value ends") {
  CHECK(group_hash({{"batch.tick", "1"}}) != group_hash({{"batch.rows", "1"}}));
  CHECK(group_hash({{"a", "1"}, {"b", "2"}}) != group_hash({{"a", "2"}, {"b", "1"}}));
  CHECK(group_hash({{"a", "1"}, {"b", "2"}}) != group_hash({{"a", "1"}}));
  CHECK(group_hash({{"a", "12"}}) != group_hash({{"a", "1"}}));
  CHECK(group_hash({{"a", "1"}, {"b", "2"}}) == group_hash({{"b", "2"}, {"a", "1"}}));
}

TEST_CASE("Config formats: decode.json and decode.csv replace what only raw pixels need") {
  const auto json = with_sets({"decode.format=json", "decode.json.features=temp,vibration.rms,current[0:3]",
                               "decode.json.target=label"});
  REQUIRE(texts(json) == Lines{});
  CHECK(json.config.decode.features == Lines{"temp", "vibration.rms", "current[0:3]"});
  CHECK(json.config.decode.target == "label");
  CHECK(json.config.decode.shape.empty());
  CHECK(json.config.decode.scale == std::vector<double>{1.0});
  CHECK(json.config.decode.shift == std::vector<double>{0.0});
  const auto csv =
      with_sets({"decode.format=csv",
                 "decode.csv={ features = [\"a\"], target = \"2\", delimiter = \";\", scale = 2 }"});
  REQUIRE(texts(csv) == Lines{});
  CHECK(csv.config.settings.text("decode.csv.delimiter") == ";");
  CHECK(csv.config.decode.scale == std::vector<double>{2.0});
}

TEST_CASE("Config formats: scale and shift are one number, or a list with one for each feature") {
  using Numbers = std::vector<double>;
  const auto with = [](const std::string& scale) {
    return with_sets(
        {"decode.format=csv", "decode.csv.features=0,1", "decode.csv.target=2", "decode.csv.scale=" + scale});
  };
  CHECK(with("[0.5, 2]").config.decode.scale == Numbers{0.5, 2});
  CHECK(with("0.5,-2e-3").config.decode.scale == Numbers{0.5, -0.002});
  CHECK(with("3").config.decode.scale == Numbers{3});
  CHECK_FALSE(with("3").config.decode.normalize);
  CHECK(with("auto").config.decode.normalize);
  CHECK(with("\"auto\"").config.decode.scale == Numbers{1});
  CHECK(with_sets({"decode.format=csv", "decode.csv.features=0,1", "decode.csv.target=2"})
            .config.decode.normalize);
  CHECK_FALSE(with_sets({"decode.csv.scale=auto"}).config.decode.normalize);  // of another format
  CHECK_FALSE(texts(with_sets({"decode.format=csv", "decode.csv.features=0", "decode.csv.target=2",
                               "decode.csv.shift=auto"}))
                  .empty());
  for (const char* bad : {"[]", "[1, \"a\"]", "[nan, 1]", "big", "[[1], 2]", "true", "\"\""}) {
    CAPTURE(bad);
    const auto wrong = texts(with(bad));
    REQUIRE(wrong.size() == 1);
    CHECK(testing::contains(wrong[0], "'decode.csv.scale' "));
  }
  CHECK(testing::contains(texts(with("big"))[0], "must be a number or list of numbers or 'auto', not"));
  CHECK(texts(with_sets({"decode.raw.scale=[1, 2]"})).size() == 1);
}

TEST_CASE("Config units: durations and sizes") {
  const auto time = [](const std::string& text) {
    const auto d = parse_duration(text);
    return d ? d.value() : Duration(-1);
  };
  CHECK(time("100ms") == 100ms);
  CHECK(time("5s") == 5s);
  CHECK(time("2m") == 2min);
  CHECK(time("1h") == 1h);
  CHECK(time("1.5 s") == 1500ms);
  CHECK(time("250us") == 250us);
  CHECK(time("0s") == 0s);
  for (const char* bad : {"", "5", "s", "-5s", "5 parsecs", "1e3s", "99999999999h", "nans", "5s5s", ".5s"}) {
    CHECK_MESSAGE(time(bad) == Duration(-1), bad);
  }
  CHECK(parse_bytes("1 MiB").value() == 1048576);
  CHECK(parse_bytes("1GiB").value() == 1073741824);
  CHECK(parse_bytes("1000000").value() == 1000000);
  CHECK(parse_bytes("1.5 kB").value() == 1500);
  CHECK_FALSE(parse_bytes("1 mib"));
  CHECK(parse_bytes("x").error().message == "'x' is not a size such as 512 KiB, 1 GiB or 1000000");
}
