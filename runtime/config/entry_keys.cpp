// Configuration keys of catalog entries: one list of all, and their values.
#include <algorithm>
#include <set>

#include "devices/optimizer.h"
#include "devices/trainer.h"
#include "runtime/config/coerce.h"
#include "runtime/config/key_row_parts.h"
#include "stream/decoder.h"
#include "sync/policy/controller.h"

namespace rivulet::runtime {
namespace {

const char* kind_of(KeyType type) {
  switch (type) {
    case KeyType::text: return kind::text;
    case KeyType::integer: return kind::integer;
    case KeyType::number: return kind::number;
    case KeyType::boolean: return kind::boolean;
    case KeyType::duration: return kind::duration;
    case KeyType::texts: return kind::texts;
    case KeyType::integers: return kind::integers;
    case KeyType::numbers: return kind::numbers;
  }
  return kind::text;
}

std::vector<std::string> choices_of(std::string_view text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(" | ", at), text.size());
    all.emplace_back(text.substr(at, end - at));
    at = end + 3;
  }
  return all;
}

KeyRow row_of(const Key& key) {
  const char* between = key.choices.empty() || key.help.empty() ? "" : ": ";
  const std::string help = std::string(key.choices) + between + std::string(key.help);
  KeyRow row{spec(std::string(key.name).c_str(), kind_of(key.type), std::string(key.text).c_str(),
                  help.c_str(), {.choices = choices_of(key.choices), .sample = std::string(key.sample)}),
             {key.least, key.most, key.above}};
  row.of_entry = true;
  row.spec.group = row.spec.group && !key.of_device;
  row.fits = key.fits;
  row.form = key.form;
  row.or_number = key.or_number;
  return row;
}

template <class Entries>
void add_rows(std::vector<KeyRow>& all, std::set<std::string_view>& seen, const Entries& entries) {
  for (const auto* entry : entries)
    for (const Key& key : entry->keys)
      if (seen.insert(key.name).second) all.push_back(row_of(key));
}

}  // namespace

std::vector<KeyRow> entry_rows() {
  std::vector<KeyRow> all;
  std::set<std::string_view> seen;  // entries of one family share keys
  add_rows(all, seen, stream::builtin_decoders());
  add_rows(all, seen, devices::builtin_models());
  add_rows(all, seen, devices::builtin_optimizers());
  add_rows(all, seen, sync::policy::builtin_controllers());
  add_rows(all, seen, sync::builtin_compressors());
  add_rows(all, seen, sync::builtin_aggregations());
  return all;
}

Settings::Value setting_of(const KeyRow& row, const Value& value) {
  if (row.spec.type == kind::duration) return time(value);
  if (row.spec.type == kind::number) return real(value);
  if (row.spec.type == kind::integer) return whole<std::int64_t>(value);
  if (row.spec.type == kind::boolean) return std::get<bool>(value.data);
  if (row.spec.type == kind::texts) return texts(value);
  if (row.spec.type == kind::integers) return integers(value);
  if (row.spec.type == kind::numbers) return numbers(value);
  return str(value);
}

Settings Config::default_settings() {
  static const Settings defaults = [] {
    Settings all;
    Problems ignored;
    for (const KeyRow& row : entry_rows())
      if (const auto value = coerce(row, default_setting(row), ignored))
        all.set(row.spec.key, setting_of(row, *value));
    return all;
  }();
  return defaults;
}

}  // namespace rivulet::runtime
