// Records of lines.
#include <array>

#include "tests/fuzz/bytes.h"
#include "tests/fuzz/decoding.h"

namespace rivulet::fuzz {
namespace {

constexpr std::uint32_t classes = 3;

void run(Input input) {
  static const auto decoder =
      make_decoder({.format = "csv", .classes = classes, .features = {"0", "2:4"}, .target = "1"});
  const auto steps = read_record(*decoder, classes, input);
  check_rows_survive(*decoder, classes, steps, [](const std::vector<float>& row) {
    return text_of_number(row[0]) + ",\"" + text_of_number(row[3]) + "\"," + text_of_number(row[1]) + ", " +
           text_of_number(row[2]) + "\r\n";
  });
}

/// With labels as text.
void run_named(Input input) {
  static const std::vector<std::string> names{"ok", "6\" pipe", "2"};
  static const auto decoder = make_decoder(
      {.format = "csv", .classes = classes, .features = {"0", "2:4"}, .target = "1", .class_names = names});
  const auto steps = read_record(*decoder, classes, input);
  check_rows_survive(*decoder, classes, steps, [](const std::vector<float>& row) {
    const std::array quoted{"ok", "\"6\"\" pipe\"", " 2 "};
    return text_of_number(row[0]) + "," + quoted.at(static_cast<std::size_t>(row[3])) + "," +
           text_of_number(row[1]) + "," + text_of_number(row[2]) + "\n";
  });
}

/// Rows of one kind, with a decimal comma, codes and means.
void run_as_they_come(Input input) {
  static const auto decoder = [] {
    stream::DecodeConfig config{.format = "csv", .features = {"1", "2:4"}, .target = "4"};
    config.settings.set("decode.csv.delimiter", std::string(";"));
    config.decimal = ',';
    config.where = "0 = r";
    config.normalizes = true;
    config.missing = {-999};
    config.fill = {stream::Fill::Kind::mean};
    return make_decoder(config);
  }();
  read_record(*decoder, {.classes = 0, .columns_missing = 3}, input);
}

void run_all(Input input) {
  run(input);
  run_named(input);
  run_as_they_come(input);
}

std::vector<Bytes> seeds() {
  return {bytes_of("1.5,2,3,4\n"),
          bytes_of("1,0,-3e-4,0.25\r\n\r\n7,1,8,9,10\n"),
          bytes_of("\"1\", \"2\" ,\"3\",4\n1,\"a \"\"quoted\"\" text\",3,4\n"),
          bytes_of("nan,0,1,2\ninf,0,1,2\n1e999,0,1,2\n1,3,1,2\n1,,1,2\n"),
          bytes_of("1,ok,2,3\n1,\"6\"\" pipe\",2,3\n1,\"ok\"\"\",2,3\n"),
          bytes_of("\xEF\xBB\xBFr;1,5;-999;;2\nx;1\nr;1;2;3;4\nr;;;;1\nr;true;1.5;2;3\n"),
          bytes_of(std::string("\0\0\0\0\7r;1,5;1;2;3\n", 17)),
          bytes_of(std::string("\0\0\0\0\7\2\4\6", 8)),
          bytes_of("1,2\n\"1,2,3,4\n1,\"2\"x,3,4\n\n")};
}

}  // namespace

extern const Target target_csv;
const Target target_csv{"csv", run_all, seeds};

}  // namespace rivulet::fuzz
