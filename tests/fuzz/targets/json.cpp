// Records of one object, an array of objects, or lines of objects.
#include <array>

#include "tests/fuzz/bytes.h"
#include "tests/fuzz/decoding.h"

namespace rivulet::fuzz {
namespace {

constexpr std::uint32_t classes = 3;

constexpr std::array names{"ok", "2", "true"};

std::string object_of(const std::vector<float>& row) {
  return R"({"temp":)" + text_of_number(row[0]) + R"(,"current":[)" + text_of_number(row[1]) + "," +
         text_of_number(row[2]) + R"(],"a":{"b":[0,)" + text_of_number(row[3]) + R"(]},"label":)" +
         text_of_number(row[4]) + "}\n";
}

/// The same with the label as text.
std::string named_object_of(const std::vector<float>& row) {
  const std::string object = object_of(row);
  return object.substr(0, object.rfind(':') + 1) + '"' + names.at(static_cast<std::size_t>(row[4])) + "\"}\n";
}

void run(Input input) {
  static const auto decoder = make_decoder({.format = "json",
                                            .classes = classes,
                                            .features = {"temp", "current[0:2]", "a.b[1]"},
                                            .target = "label"});
  const auto steps = read_record(*decoder, classes, input);
  check_rows_survive(*decoder, classes, steps, object_of);
  static const auto naming = make_decoder({.format = "json",
                                           .classes = classes,
                                           .features = {"temp", "current[0:2]", "a.b[1]"},
                                           .target = "label",
                                           .class_names = {names.begin(), names.end()}});
  check_rows_survive(*naming, classes, read_record(*naming, classes, input), named_object_of);
}

/// Rows of one kind, with codes, last values and lists that may be missing; tracks narrowing.
void run_as_they_come(Input input) {
  static const auto decoder = [] {
    stream::DecodeConfig config{
        .format = "json", .features = {"temp", "current[0:2]", "a.b[0:2].c"}, .target = "label"};
    config.decimal = ',';
    config.where = "kind = r";
    config.normalizes = true;
    config.missing = {-999};
    config.fill = {stream::Fill::Kind::last};
    auto made = make_decoder(config);
    made->watch_narrowing(true);
    return made;
  }();
  read_record(*decoder, {.classes = 0, .columns_missing = 5}, input);
}

void run_all(Input input) {
  run(input);
  run_as_they_come(input);
}

std::vector<Bytes> seeds() {
  const std::string one = object_of({1.5F, 2, -3, 4e-5F, 1});
  const std::string two = object_of({0, 1e20F, 3, 7, 2});
  const std::string bad = R"({"temp":"warm","current":[1],"a":null,"label":9})";
  return {
      bytes_of(one),
      bytes_of(one + two),
      bytes_of("[" + one + "," + two + "," + bad + "]"),
      bytes_of(one + "{ broken\n\n" + bad + "\n" + two),
      bytes_of(R"({"temp":1e999,"current":[1,2,3],"a":{"b":[7,8]},"label":true})"),
      bytes_of(named_object_of({1, 2, 3, 4, 0}) + named_object_of({1, 2, 3, 4, 2}) +
               R"({"temp":1,"current":[1,2],"a":{"b":[7,8]},"label":"\u006fk"})"),
      bytes_of("\xEF\xBB\xBF"
               R"({"kind":"r","temp":"23,5","current":[null,true],"a":{"b":[{"c":-999}, {}]},"label":"1"})"),
      bytes_of(R"([{"kind":"r","temp":{"x":["}"]},"label":1},{"kind":"x"},{"kind":"r","temp":1,"label":2}])"),
      bytes_of(std::string("\0\0\0\0\7", 5) + R"({"kind":"r","temp":1,"label":0})"),
      bytes_of(R"(["\u00e9\ud83d\ude00", [], {}, 1])")};
}

}  // namespace

extern const Target target_json;
const Target target_json{"json", run_all, seeds};

}  // namespace rivulet::fuzz
