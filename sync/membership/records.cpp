#include "sync/membership/records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

/// Reads fields and remembers the first that is missing or wrong, so that readers need no branches.
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

json to_json(const Hello& r) {
  return {{"type", "hello"},
          {"device", r.device},
          {"nonce", r.nonce},
          {"host", r.host},
          {"pid", r.pid},
          {"devices", r.devices},
          {"config_hash", r.config_hash},
          {"config", r.config},
          {"partitions", r.partitions}};
}
json to_json(const Ready& r) {
  return {{"type", "ready"},    {"device", r.device},         {"session", r.session},
          {"view", r.view},     {"lineage", r.stamp.lineage}, {"step", r.stamp.step},
          {"digest", r.digest}, {"reason", r.reason}};
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
  r.devices = static_cast<std::uint32_t>(f.number("devices", group_max));
  if (r.devices == 0) f.fail("devices");
  r.config_hash = f.text("config_hash", text_max);
  r.config = f.map("config");
  r.partitions = f.texts("partitions");
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

Error refused(const std::string& why) {
  return {ErrorCode::protocol, "control record: " + why};
}

std::string type_of(const json& object) {
  const auto it = object.find("type");
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// Empty when the envelope is ours.
std::string wrong_envelope(const json& object, const std::string& job) {
  const auto version = object.find("version");
  if (version == object.end() || !version->is_number_unsigned()) return "no version";
  if (*version != protocol_version)
    return "version " + version->dump() + ", this build speaks " + std::to_string(protocol_version);
  const auto name = object.find("job");
  if (name == object.end() || !name->is_string()) return "no job";
  return *name == job ? "" : "it is of another job";
}

}  // namespace

Result<std::vector<std::byte>> encode(const ControlRecord& record, const std::string& job) {
  json object = std::visit([](const auto& r) { return to_json(r); }, record);
  object["version"] = protocol_version;
  object["job"] = job;
  // A host name or a reason may hold bytes that are no UTF-8: they become replacement characters.
  const std::string text = object.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > record_max_bytes) {
    return refused(std::to_string(text.size()) + " bytes are too long, at most " +
                   std::to_string(record_max_bytes));
  }
  const auto bytes = std::as_bytes(std::span(text));
  // What no reader would take must not be written: its sender would wait for ever to read it back.
  if (const auto back = decode(bytes, job); !back) return back.error();
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<ControlRecord> decode(std::span<const std::byte> bytes, const std::string& job) {
  if (bytes.size() > record_max_bytes) return refused("too long");
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  const json object = json::parse(begin, begin + bytes.size(), nullptr, false);
  if (!object.is_object()) return refused("not a JSON object");
  if (const std::string why = wrong_envelope(object, job); !why.empty()) return refused(why);
  const std::string type = type_of(object);
  Fields fields(object);
  ControlRecord record;
  if (type == "hello") {
    record = read_hello(fields);
  } else if (type == "ready") {
    record = read_ready(fields);
  } else if (type == "close") {
    record = read_close(fields);
  } else if (type == "saved") {
    record = read_saved(fields);
  } else if (type == "addr") {
    record = read_addr(fields);
  } else {
    return refused("unknown type '" + type.substr(0, id_max) + "'");
  }
  if (fields.bad()) return refused("field '" + fields.wrong() + "' of " + type + " is missing or not valid");
  return record;
}

}  // namespace rivulet::sync::membership
