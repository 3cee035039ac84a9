#include "sync/membership/records.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sync/membership/base64.h"

namespace rivulet::sync::membership {

namespace {

using nlohmann::json;

constexpr std::size_t id_max = 64;
constexpr std::size_t text_max = 1024;
constexpr std::size_t value_max = 8192;
constexpr std::size_t config_keys_max = 512;
constexpr std::size_t partitions_max = 4096;
constexpr std::size_t address_max = std::size_t{16} * 1024;
constexpr std::uint64_t number_max = std::uint64_t{1} << 62U;
constexpr std::uint32_t group_max = 100'000;

bool is_id(const std::string& text) {
  return !text.empty() && text.size() <= id_max && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

/// Reads fields and remembers the first missing or invalid one, so that callers need no branches.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}

  std::string text(const char* name, std::size_t max) {
    const json* field = find(name);
    if (field == nullptr || !field->is_string()) return fail(name), std::string();
    const auto& value = field->get_ref<const std::string&>();
    if (value.size() > max) return fail(name), std::string();
    return value;
  }
  std::string id(const char* name) {
    std::string value = text(name, id_max);
    if (!is_id(value)) fail(name);
    return value;
  }
  std::uint64_t number(const char* name, std::uint64_t max = number_max) {
    const json* field = find(name);
    if (field == nullptr || !field->is_number_unsigned() || field->get<std::uint64_t>() > max)
      return fail(name), 0;
    return field->get<std::uint64_t>();
  }
  std::vector<std::string> texts(const char* name) {
    const json* field = find(name);
    if (field == nullptr || !field->is_array() || field->size() > partitions_max)
      return fail(name), std::vector<std::string>();
    std::vector<std::string> values;
    for (const auto& item : *field) {
      if (!item.is_string() || item.get_ref<const std::string&>().size() > text_max) fail(name);
      if (bad()) return {};
      values.push_back(item.get<std::string>());
    }
    return values;
  }
  std::map<std::string, std::string> map(const char* name) {
    const json* field = find(name);
    if (field == nullptr || !field->is_object() || field->size() > config_keys_max)
      return fail(name), std::map<std::string, std::string>();
    std::map<std::string, std::string> values;
    for (const auto& [key, item] : field->items()) {
      if (!item.is_string() || key.size() > text_max || item.get_ref<const std::string&>().size() > value_max)
        fail(name);
      if (bad()) return {};
      values.emplace(key, item.get<std::string>());
    }
    return values;
  }
  /// A missing field counts as false.
  bool flag(const char* name) {
    const json* field = find(name);
    if (field == nullptr) return false;
    if (!field->is_boolean()) return fail(name), false;
    return field->get<bool>();
  }
  /// Sorted, without duplicates; empty if missing.
  std::vector<std::string> ids(const char* name) {
    if (!has(name)) return {};
    std::vector<std::string> values = texts(name);
    const bool ascending = std::ranges::adjacent_find(values, std::ranges::greater_equal()) == values.end();
    if (!ascending || !std::ranges::all_of(values, is_id)) fail(name);
    return values;
  }
  /// A HELLO without sizes is of a group of fixed size.
  GroupSizes sizes() {
    const GroupSizes fixed(static_cast<std::uint32_t>(number("devices", group_max)));
    if (!fixed.is_valid()) fail("devices");
    const json* field = find("sizes");
    if (field == nullptr) return fixed;
    if (!field->is_object()) return fail("sizes"), fixed;
    Fields fields(*field);
    const auto size = [&](const char* name) {
      return static_cast<std::uint32_t>(fields.number(name, group_max));
    };
    const GroupSizes sizes(size("min"), fixed.wanted, size("max"));
    if (fields.bad() || !sizes.is_valid() || sizes.is_fixed()) fail("sizes");
    return sizes;
  }
  std::int64_t offset(const char* name) { return static_cast<std::int64_t>(number(name)); }
  [[nodiscard]] bool has(const char* name) const { return find(name) != nullptr; }
  /// A state within a record.
  Stamp stamp(const char* name) {
    const json* field = find(name);
    if (field == nullptr || !field->is_object()) return fail(name), Stamp{};
    Fields fields(*field);
    const std::uint64_t lineage = fields.number("lineage");
    const Stamp stamp{lineage, fields.number("step")};
    if (fields.bad()) fail(name);
    return stamp;
  }
  Copying copying(const char* name) {
    const json* field = find(name);
    if (!field->is_object()) return fail(name), Copying{};
    Fields fields(*field);
    Copying copy{.bytes = fields.number("bytes"), .failed = fields.number("failed")};
    if (fields.has("donor")) copy.donor = fields.id("donor");
    if (fields.bad() || copy.bytes == 0) fail(name);
    return copy;
  }
  void fail(const char* name) {
    if (wrong_.empty()) wrong_ = name;
  }
  [[nodiscard]] bool bad() const { return !wrong_.empty(); }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  const json* find(const char* name) const {
    const auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }
  const json& object_;
  std::string wrong_;
};

// Values that later builds add to these have no effect here.
constexpr const char* ends_device = "device";
constexpr const char* ends_group = "group";

json to_json(const Hello& r) {
  json object = {{"type", "hello"},
                 {"device", r.device},
                 {"nonce", r.nonce},
                 {"host", r.host},
                 {"pid", r.pid},
                 {"devices", r.devices.wanted},
                 {"config_hash", r.config_hash},
                 {"config", r.config},
                 {"partitions", r.partitions}};
  if (!r.devices.is_fixed()) object["sizes"] = {{"min", r.devices.min}, {"max", r.devices.max}};
  if (r.new_run) object["new_run"] = true;
  if (r.has_state) object["holds"] = {{"lineage", r.has_state->lineage}, {"step", r.has_state->step}};
  if (r.unheard_since >= 0) object["unheard_since"] = r.unheard_since;
  return object;
}
json to_json(const Ready& r) {
  json object = {{"type", "ready"},    {"device", r.device},         {"session", r.session},
                 {"view", r.view},     {"lineage", r.stamp.lineage}, {"step", r.stamp.step},
                 {"digest", r.digest}, {"reason", r.reason},         {"rows", r.rows}};
  if (r.limited) object["limited"] = true;
  if (r.rolls_back) object["goes_back"] = true;
  if (!r.lost.empty()) object["lost"] = r.lost;
  if (!r.unreached.empty()) object["unreached"] = r.unreached;
  if (!r.accuses.empty()) object["accuses"] = r.accuses;
  if (r.copy.bytes > 0) {
    object["copy"] = {{"bytes", r.copy.bytes}, {"failed", r.copy.failed}};
    if (!r.copy.donor.empty()) object["copy"]["donor"] = r.copy.donor;
  }
  if (!r.copied.empty()) object["copied"] = r.copied;
  return object;
}
json to_json(const Saved& r) {
  return {{"type", "saved"},    {"device", r.device},         {"session", r.session},
          {"view", r.view},     {"lineage", r.stamp.lineage}, {"step", r.stamp.step},
          {"digest", r.digest}, {"file_hash", r.file_hash}};
}
json to_json(const Close& r) {
  return {{"type", "close"}, {"device", r.device}, {"session", r.session}, {"view", r.view}};
}
json to_json(const Addr& r) {
  return {{"type", "addr"},   {"device", r.device}, {"session", r.session},
          {"token", r.token}, {"key", r.key},       {"value", to_base64(r.value)}};
}
json to_json(const Leave& r) {
  json object = {{"type", "leave"}, {"device", r.device}, {"session", r.session}, {"reason", r.reason}};
  if (r.cause != WhyNot::none) object["cause"] = name_of(r.cause);
  if (r.ends == Ends::device) object["ends"] = ends_device;
  if (r.ends == Ends::group) object["ends"] = ends_group;
  return object;
}
json to_json(const Stop& r) {
  return {{"type", "stop"}, {"nonce", r.nonce}, {"host", r.host}, {"pid", r.pid}};
}
json to_json(const Snap& r) {
  return {{"type", "snap"},     {"device", r.device}, {"session", r.session},
          {"covers", r.covers}, {"hash", r.hash},     {"fold", r.fold}};
}

Stamp read_stamp(Fields& f) {
  const std::uint64_t lineage = f.number("lineage");
  return {lineage, f.number("step")};
}
ControlRecord read_hello(Fields& f) {
  Hello r;
  r.device = f.id("device");
  r.nonce = f.id("nonce");
  r.host = f.text("host", text_max);
  r.pid = static_cast<std::int64_t>(f.number("pid"));
  r.devices = f.sizes();
  r.config_hash = f.text("config_hash", text_max);
  r.config = f.map("config");
  r.partitions = f.texts("partitions");
  r.new_run = f.flag("new_run");
  if (f.has("holds")) r.has_state = f.stamp("holds");
  if (f.has("unheard_since")) r.unheard_since = f.offset("unheard_since");
  return r;
}
ControlRecord read_ready(Fields& f) {
  Ready r;
  r.device = f.id("device");
  r.session = static_cast<std::int64_t>(f.number("session"));
  r.view = f.number("view");
  r.stamp = read_stamp(f);
  r.digest = f.text("digest", text_max);
  r.reason = f.text("reason", text_max);
  r.rows = f.number("rows");
  r.limited = f.flag("limited");
  r.rolls_back = f.flag("goes_back");
  r.lost = f.ids("lost");
  r.unreached = f.ids("unreached");
  r.accuses = f.ids("accuses");
  if (f.has("copy")) r.copy = f.copying("copy");
  r.copied = f.ids("copied");
  return r;
}
ControlRecord read_saved(Fields& f) {
  Saved r;
  r.device = f.id("device");
  r.session = static_cast<std::int64_t>(f.number("session"));
  r.view = f.number("view");
  r.stamp = read_stamp(f);
  r.digest = f.text("digest", text_max);
  r.file_hash = f.text("file_hash", text_max);
  return r;
}
ControlRecord read_close(Fields& f) {
  Close r;
  r.device = f.id("device");
  r.session = static_cast<std::int64_t>(f.number("session"));
  r.view = f.number("view");
  return r;
}
ControlRecord read_addr(Fields& f) {
  Addr r;
  r.device = f.id("device");
  r.session = static_cast<std::int64_t>(f.number("session"));
  r.token = f.number("token");
  r.key = f.text("key", text_max);
  const auto value = from_base64(f.text("value", (address_max + 2) / 3 * 4));
  if (value) r.value = *value;
  if (!value || r.value.size() > address_max) f.fail("value");
  return r;
}
ControlRecord read_leave(Fields& f) {
  Leave r;
  r.device = f.id("device");
  r.session = f.offset("session");
  r.reason = f.text("reason", text_max);
  if (f.has("cause")) r.cause = why_not_of(f.text("cause", text_max));
  const std::string ends = f.has("ends") ? f.text("ends", text_max) : std::string();
  if (ends == ends_device) r.ends = Ends::device;
  if (ends == ends_group) r.ends = Ends::group;
  return r;
}
ControlRecord read_stop(Fields& f) {
  Stop r;
  r.nonce = f.id("nonce");
  r.host = f.text("host", text_max);
  r.pid = f.offset("pid");
  return r;
}
ControlRecord read_snap(Fields& f) {
  Snap r;
  r.device = f.id("device");
  r.session = f.offset("session");
  r.covers = f.offset("covers");
  r.hash = f.text("hash", text_max);
  r.fold = f.text("fold", record_max_bytes);
  return r;
}

struct Kind {
  std::string_view type;
  ControlRecord (*read)(Fields& fields);
};
constexpr Kind kinds[] = {{"hello", read_hello}, {"ready", read_ready}, {"close", read_close},
                          {"saved", read_saved}, {"addr", read_addr},   {"leave", read_leave},
                          {"stop", read_stop},   {"snap", read_snap}};

Error refused(const std::string& why, Ignored reason, Ignored* out) {
  if (out != nullptr) *out = reason;
  return {ErrorCode::protocol, "control record: " + why};
}

std::string type_of(const json& object) {
  const auto it = object.find("type");
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// Empty if the envelope is valid.
std::optional<std::pair<Ignored, std::string>> wrong_envelope(const json& object, const std::string& job) {
  const auto version = object.find("version");
  if (version == object.end() || !version->is_number_unsigned()) return {{Ignored::unreadable, "no version"}};
  if (*version != protocol_version)
    return {{Ignored::unknown,
             "version " + version->dump() + ", this build supports " + std::to_string(protocol_version)}};
  const auto name = object.find("job");
  if (name == object.end() || !name->is_string()) return {{Ignored::unreadable, "no job"}};
  if (*name != job) return {{Ignored::foreign, "it belongs to a different job"}};
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Ignored reason) noexcept {
  switch (reason) {
    case Ignored::unreadable: return "unreadable";
    case Ignored::oversized: return "oversized";
    case Ignored::unknown: return "unknown";
    case Ignored::foreign: return "foreign";
    case Ignored::replayed: return "replayed";
    case Ignored::stale_session: return "stale_session";
    case Ignored::wrong_view: return "wrong_view";
    case Ignored::impossible: return "impossible";
    case Ignored::refused: return "refused";
    case Ignored::full: return "full";
  }
  return "other";
}

Result<std::vector<std::byte>> encode(const ControlRecord& record, const std::string& job) {
  json object = std::visit([](const auto& r) { return to_json(r); }, record);
  object["version"] = protocol_version;
  object["job"] = job;
  // Host names and reasons may contain invalid UTF-8, which becomes replacement characters.
  const std::string text = object.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > record_max_bytes) {
    return refused(
        std::to_string(text.size()) + " bytes, more than the maximum of " + std::to_string(record_max_bytes),
        Ignored::oversized, nullptr);
  }
  const auto bytes = std::as_bytes(std::span(text));
  // Never writes a record that readers reject: its sender would wait forever to read it back.
  if (const auto back = decode(bytes, job); !back) return back.error();
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<ControlRecord> decode(std::span<const std::byte> bytes, const std::string& job, Ignored* reason) {
  if (bytes.size() > record_max_bytes) return refused("too long", Ignored::oversized, reason);
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  const json object = json::parse(begin, begin + bytes.size(), nullptr, false);
  if (!object.is_object()) return refused("not a JSON object", Ignored::unreadable, reason);
  if (const auto wrong = wrong_envelope(object, job)) return refused(wrong->second, wrong->first, reason);
  const std::string type = type_of(object);
  const auto kind =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind& k) { return k.type == type; });
  if (kind == std::end(kinds))
    return refused("unknown type '" + type.substr(0, id_max) + "'", Ignored::unknown, reason);
  Fields fields(object);
  ControlRecord record = kind->read(fields);
  if (!fields.bad()) return record;
  return refused("field '" + fields.wrong() + "' of " + type + " is missing or invalid", Ignored::unreadable,
                 reason);
}

}  // namespace rivulet::sync::membership
