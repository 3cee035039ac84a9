#include "runtime/config/check_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "stream/decoder/json_path.h"
#include "stream/decoder/where.h"

namespace rivulet::runtime {
namespace {

std::string key_of(const Config& config, const char* name) {
  return "decode." + config.decode.format + "." + name;
}

void check_fill(const Config& config, const SettingsByKey& written, const Complain& wrong) {
  const std::string key = key_of(config, "fill");
  if (config.decode.fill != "mean" || config.decode.normalize || !written.contains(key)) return;
  wrong({key}, fmt::format("'{}' is 'mean', which requires '{}' = 'auto': use that, a number, 'last' or "
                           "'drop'",
                           key, key_of(config, "scale")));
}

void check_decimal(const Config& config, const Complain& wrong) {
  const std::string delimiter = key_of(config, "delimiter");
  if (!config.settings.has<std::string>(delimiter)) return;
  const std::string sign(1, config.decode.decimal);
  if (config.settings.text(delimiter) != sign) return;
  const std::string decimal = key_of(config, "decimal");
  wrong({decimal, delimiter}, fmt::format("'{}' and '{}' are both '{}': numbers would be split at the "
                                          "decimal separator; use a different delimiter, such as ';'",
                                          decimal, delimiter, sign));
}

/// For formats with columns: a column name or a number.
std::string unknown_column(const Config& config, const std::string& column) {
  const std::string key = key_of(config, "columns");
  if (!config.settings.has<Settings::Texts>(key)) return {};
  const auto& names = config.settings.texts(key);
  const bool number = column.find_first_not_of("0123456789") == std::string::npos;
  if (std::ranges::find(names, column) != names.end()) return {};
  if (!number) return fmt::format("is not in '{}'", key);
  const bool beyond = !names.empty() && (column.size() > 6 || std::stoul(column) >= names.size());
  return beyond ? fmt::format("is beyond the last column of '{}'", key) : "";
}

void check_where(const Config& config, const Complain& wrong) {
  const auto where = stream::parse_where(config.decode.where);
  if (config.decode.where.empty() || !where) return;  // already reported by coerce()
  const std::string key = key_of(config, "where");
  const std::string& field = where.value().field;
  if (config.decode.format == "json") {
    if (const auto path = stream::parse_json_path(field); !path)
      wrong({key}, fmt::format("'{}': {}", key, path.error().message));
  } else if (const auto why = unknown_column(config, field); !why.empty()) {
    wrong({key}, fmt::format("'{}' is '{}', but column '{}' {}", key, config.decode.where, field, why));
  }
}

}  // namespace

void check_rows(const Config& config, const SettingsByKey& written, const Complain& wrong) {
  check_fill(config, written, wrong);
  check_decimal(config, wrong);
  check_where(config, wrong);
}

}  // namespace rivulet::runtime
