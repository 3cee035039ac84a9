#include "runtime/wiring/simulation_faults.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

#include "runtime/process/whole_file.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t script_max = std::size_t{1} << 20U;

Error usage_error(std::string message) {
  return {ErrorCode::usage, std::move(message)};
}

/// Parses a number at the front of `text` and removes it.
std::optional<double> take_number(std::string& text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || !std::isfinite(out) || out < 0) return std::nullopt;
  text.erase(0, static_cast<std::size_t>(end - text.data()));
  return out;
}

/// Returns the device index, from 0, for a number, letter or id.
Result<std::size_t> device_of(const std::string& word, std::size_t devices) {
  const std::string id = "device-";
  std::string rest = word.rfind(id, 0) == 0 ? word.substr(id.size()) : word;
  std::optional<double> number;
  if (word.size() == 1 && word[0] >= 'a' && word[0] <= 'z')
    number = word[0] - 'a' + 1;
  else if (rest.find_first_not_of("0123456789") == std::string::npos)
    number = take_number(rest);
  if (!number || *number < 1)
    return usage_error(fmt::format(
        "'{}' is not a device; give its number, letter or id (the second device is 2, b or device-02)",
        word));
  if (*number > static_cast<double>(devices))
    return usage_error(fmt::format("no device '{}' in a group of {}", word, devices));
  return static_cast<std::size_t>(*number) - 1;
}

Result<Fault> parse_fault(const std::vector<std::string>& words, std::size_t devices) {
  static const char* const form =
      "expected: at SECOND kill|start|stop DEVICE, or at SECOND link DEVICE RATE "
      "[LATENCY]";
  if (words.size() < 4 || words[0] != "at") return usage_error(form);
  Fault fault;
  std::string second = words[1];
  const auto at = take_number(second);
  if (!at || !second.empty()) return usage_error(fmt::format("'{}' is not a time in seconds", words[1]));
  fault.at_s = *at;
  const std::string& verb = words[2];
  const auto device = device_of(words[3], devices);
  if (!device) return device.error();
  fault.device = device.value();
  const bool link = verb == "link";
  if (words.size() < (link ? 5 : 4) || words.size() > (link ? 6 : 4)) return usage_error(form);
  if (verb == "kill") {
    fault.kind = Fault::Kind::kill;
  } else if (verb == "start") {
    fault.kind = Fault::Kind::start;
  } else if (verb == "stop") {
    fault.kind = Fault::Kind::stop;
  } else if (link) {
    fault.kind = Fault::Kind::link;
    const auto bandwidth = parse_bandwidth(words[4]);
    if (!bandwidth) return bandwidth.error();
    fault.link.bytes_per_second = bandwidth.value();
    const auto latency = words.size() > 5 ? parse_duration(words[5]) : Duration(0);
    if (!latency) return latency.error();
    fault.link.latency = latency.value();
  } else {
    return usage_error(fmt::format("'{}' must be one of: kill, start, stop, link", verb));
  }
  return fault;
}

/// State of a device after the script lines so far.
enum class Now : std::uint8_t { running, killed, stopped };

/// Checks that the script lines so far allow this one.
Status check_order(const Fault& fault, double last_s, std::vector<Now>& now) {
  if (fault.at_s < last_s) return usage_error("the lines of a script must be in chronological order");
  if (fault.kind == Fault::Kind::link) return ok();
  Now& device = now[fault.device];
  if (device == Now::stopped) return usage_error("the device has been stopped and cannot return");
  if (fault.kind == Fault::Kind::start && device != Now::killed)
    return usage_error("only a killed device can be started");
  if (fault.kind != Fault::Kind::start && device == Now::killed)
    return usage_error("the device has been killed and not restarted");
  device = fault.kind == Fault::Kind::kill   ? Now::killed
           : fault.kind == Fault::Kind::stop ? Now::stopped
                                             : Now::running;
  return ok();
}

}  // namespace

Result<double> parse_bandwidth(const std::string& text) {
  if (text == "free") return 0.0;
  std::string unit = text;
  const auto amount = take_number(unit);
  double bits = 0;
  if (unit == "kbit") bits = 1e3;
  if (unit == "mbit") bits = 1e6;
  if (unit == "gbit") bits = 1e9;
  if (!amount || !(*amount > 0) || bits == 0)
    return usage_error(fmt::format("'{}' is not a bandwidth such as 250kbit, 1mbit, 1gbit or free", text));
  return *amount * bits / 8;
}

Result<std::vector<Fault>> parse_faults(const std::string& text, const std::string& name,
                                        std::size_t devices) {
  std::vector<Fault> faults;
  std::vector<Now> now(devices, Now::running);
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream in(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words.empty()) continue;
    auto fault = parse_fault(words, devices);
    const Status fits =
        fault ? check_order(fault.value(), faults.empty() ? 0 : faults.back().at_s, now) : fault.error();
    const std::string place = fmt::format("{}:{}", name, number);
    if (!fits) return usage_error(fmt::format("{}: {}", place, fits.error().message));
    faults.push_back(std::move(fault).value());
    faults.back().place = place;
  }
  return faults;
}

Result<std::vector<Fault>> load_faults(const std::string& path, std::size_t devices) {
  const auto bytes = read_whole_file(path, script_max);
  if (!bytes) return usage_error("--faults: " + bytes.error().message);
  const std::string text(reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size());
  return parse_faults(text, path, devices);
}

}  // namespace rivulet::runtime
