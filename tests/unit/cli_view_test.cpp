#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "runtime/cli/live_view.h"
#include "runtime/status/node_status.h"
#include "runtime/status/status_json.h"
#include "tests/support/text.h"

using namespace rivulet::runtime;
using namespace rivulet::runtime::cli;
using namespace rivulet::testing;

namespace {

GroupView canned() {
  GroupView group;
  group.title = "2 devices train lenet5 on MNIST through Kafka";
  group.seconds = 12;
  group.duration = 35;
  group.devices.resize(2);
  DeviceView& first = group.devices[0];
  first.id = "device-1";
  first.state = "training";
  first.stream_rate = 800.2;
  first.batch_rows = 80;
  first.rows_waiting = 1234;
  first.rows_trained = 9840;
  first.rows_per_s = 795.4;
  first.loss = 0.3121;
  first.held_out_accuracy = 0.941;
  first.steps = 120;
  first.bytes_sent = 5'000'000;
  first.bytes_received = 6'000'000;
  DeviceView& second = group.devices[1];
  second = first;
  second.id = "device-2";
  second.state = "waiting";
  second.phrase = "waiting for device-1";
  second.rows_waiting = 3;
  second.loss = 0.5;
  second.held_out_accuracy.reset();
  second.bytes_sent = 1'000'000;
  second.bytes_received = 2'000'000;
  group.curve = {{5, 0.5}, {10, 0.941}};
  return group;
}

NodeReport page_of(const NodeStatus& status) {
  return read_node_report(status_json(status, {"device-1", "demo", "lenet5"}), "{}").value();
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + '\n';
  return text;
}

int columns_of(const std::string& line) {
  return static_cast<int>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

TEST_CASE("Live view: a line per device says rate, batch, waiting rows, rows/s, loss and state") {
  const auto lines = render_screen(canned(), {false, true, 100});
  const auto line =
      std::find_if(lines.begin(), lines.end(), [](const auto& l) { return contains(l, "device-1"); });
  REQUIRE(line != lines.end());
  for (const char* part : {"800", "80", "1 234", "795", "0.3121", "training"}) {
    CAPTURE(part);
    CHECK(contains(*line, part));
  }
  const auto text = joined(lines);
  CHECK(contains(text, "  waiting for device-1"));
  CHECK(contains(text, "12 of 35 s"));
  CHECK(contains(text, "accuracy on held-out images: 94.1 %"));
  CHECK(contains(text, "6.0 MB sent, 8.0 MB received"));
  CHECK(contains(text, "120 rounds"));
}

TEST_CASE("Live view: the accuracy is drawn over time and the future is blank") {
  const auto lines = render_screen(canned(), {false, false, 82});
  const auto bottom =
      std::find_if(lines.begin(), lines.end(), [](const auto& l) { return contains(l, "  0 % |"); });
  REQUIRE(bottom != lines.end());
  const auto curve = bottom->substr(bottom->find('|') + 1);
  REQUIRE(curve.size() == 64);
  CHECK(curve[2] == ' ');                           // second 1: not measured yet
  CHECK(curve[10] == '#');                          // second 5.5
  CHECK(curve[20] == '#');                          // second 11
  CHECK(curve.substr(24) == std::string(40, ' '));  // after second 13
  const auto top =
      std::find_if(lines.begin(), lines.end(), [](const auto& l) { return contains(l, "100 % |"); });
  REQUIRE(top != lines.end());
  CHECK(top->substr(top->find('|') + 1)[10] == ' ');  // 50 % does not reach the top line
  CHECK(top->substr(top->find('|') + 1)[20] != ' ');  // 94 % does
}

TEST_CASE("Live view: nothing is wider than the terminal, and there is no escape without colour") {
  for (const int width : {20, 40, 79, 200}) {
    for (const bool unicode : {false, true}) {
      CAPTURE(width);
      for (const auto& line : render_screen(canned(), {false, unicode, width})) {
        CAPTURE(line);
        CHECK(columns_of(line) <= width);
        CHECK_FALSE(contains(line, "\x1b"));
      }
    }
  }
  CHECK(contains(joined(render_screen(canned(), {true, true, 100})), "\x1b[32mtraining\x1b[0m"));
}

TEST_CASE("Live view: in a pipe the same is said in one plain line") {
  const auto line = render_line(canned());
  CHECK_FALSE(contains(line, "\x1b"));
  CHECK_FALSE(contains(line, "\n"));
  for (const char* part : {"12.0 s", "94.1 %", "device-1 training", "batch 80", "device-2", "sent 6.0 MB"}) {
    CAPTURE(part);
    CHECK(contains(line, part));
  }
  GroupView nothing_yet = canned();
  nothing_yet.curve.clear();
  CHECK(contains(render_line(nothing_yet), "held-out accuracy -"));
  nothing_yet.seconds = 0;
  CHECK(render_line(nothing_yet) == "forming:  device-1 training;  device-2 waiting for device-1");
}

TEST_CASE(
    "Live view: a group that forms again in the middle says for whom it waits, on the screen and in a pipe") {
  GroupView group = canned();
  group.devices[0].state = "forming";
  group.devices[0].phrase = "forming: waiting for device-2";
  CHECK(contains(render_line(group), "| device-1 forming: waiting for device-2: 795 rows/s"));
  CHECK(contains(joined(render_screen(group, {false, true, 120})), "  forming: waiting for device-2"));
  for (const char* state : {"joining", "cooling down", "paused"}) {
    group.devices[0].state = state;
    group.devices[0].phrase = std::string(state) + ": waiting for device-2";
    CHECK(forming_phrase(group) == group.devices[0].phrase);
  }
  group.devices[0].state = "forming";
  group.devices[0].phrase = "forming: waiting for device-2";
  // A narrow terminal has no room for it on the device's line, so it is on the last line.
  CHECK(render_screen(group, {false, true, 70}).back() == "  forming: waiting for device-2");
}

TEST_CASE("Live view: it shows the process of each device, what one can do to it, and what became of it") {
  GroupView group = canned();
  group.devices[0].pid = 4711;
  group.hint = "pull a plug";
  const auto before = render_screen(group, {false, true, 100});
  CHECK(contains(joined(before), "  device-1      4711 "));
  CHECK(before.back() == "  pull a plug");
  group.devices[0].state = "killed";
  group.devices[0].phrase = "";
  group.devices[1].state = "forming";
  group.devices[1].phrase = "forming: waiting for device-1";
  group.event = "device-1 (pid 4711) was killed; restarting it";
  const auto after = render_screen(group, {false, true, 100});
  CHECK(after.size() == before.size());  // each frame overwrites the last
  CHECK(contains(joined(after), "  device-1 (pid 4711) was killed; restarting it\n"));
  CHECK(after.back() == "  forming: waiting for device-1");
  CHECK(forming_phrase(group) == "forming: waiting for device-1");
  group.seconds = 0;
  CHECK(forming_phrase(group).empty());  // the first forming is not reported
}

TEST_CASE("Live view: before the first round there is no loss") {
  GroupView group = canned();
  group.devices = {DeviceView(page_of(NodeStatus()))};
  CHECK(contains(render_line(group), "waiting 0, loss -  |"));
  CHECK(contains(render_screen(group, {false, false, 100}).at(2), "       -  starting"));
}

TEST_CASE("Live view: it reads what the status page writes") {
  NodeStatus status;
  status.state = NodeState::training;
  status.stream_rate = 812.5;
  status.batch_rows = 81;
  status.rows_waiting = 7;
  status.rows_trained += 4321;
  status.loss = 0.25;
  status.steps = 99;
  status.bytes_sent += 1000;
  status.bytes_received += 2000;
  status.rows_consumed += 5000;
  status.batches += 100;
  status.compute_s += 1.5;
  status.first_step_s = 0.5;
  status.seconds_training = 12;
  status.rows_dropped[rivulet::DropReason{0}] += 3;
  status.set_digest("abc");
  status.set_phrase("all well");
  const NodeReport page = page_of(status);
  CHECK(page.id == "device-1");
  CHECK(page.state == "training");
  CHECK(page.phrase == "all well");
  CHECK(page.stream_rate == 812.5);
  CHECK(page.batch_rows == 81);
  CHECK(page.rows_waiting == 7);
  CHECK(page.rows_trained == 4321);
  CHECK(page.loss == 0.25);
  CHECK(page.steps == 99);
  CHECK(page.bytes_sent == 1000);
  CHECK(page.bytes_received == 2000);
  CHECK_FALSE(page.held_out_accuracy);
  CHECK(page.rows_consumed == 5000);
  CHECK(page.batches == 100);
  CHECK(page.compute_s == 1.5);
  CHECK(page.first_step_s == 0.5);
  CHECK(page.seconds_training == 12);
  CHECK(refused_rows(page) == 3);
  CHECK(page.digest == "abc");
  status.held_out_accuracy = 0.97;
  CHECK(page_of(status).held_out_accuracy == 0.97);
}

TEST_CASE("Live view: what is not a status page is not taken for one") {
  for (const char* other : {"", "not found", "{\"name\": \"a\"}", "[1, 2]"})
    CHECK_FALSE(read_node_report(other, "{}"));
  // A field of a wrong type is treated as missing; the others are read.
  const auto odd = read_node_report(R"({"id": "a", "state": "training", "loss": "low", "steps": 4})", "{}");
  REQUIRE(odd);
  CHECK_FALSE(odd->loss);
  CHECK(odd->steps == 4);
}

TEST_CASE("Live view: a second picture is drawn over the first, and the cursor comes back") {
  std::ostringstream out;
  {
    ScreenPainter painter(out);
    painter.paint({"one", "two"});
    CHECK_FALSE(contains(out.str(), "\x1b[2A"));
    painter.paint({"three", "four"});
    CHECK(contains(out.str(), "\x1b[2A"));
    CHECK(contains(out.str(), "\x1b[?25l"));
    CHECK_FALSE(contains(out.str(), "\x1b[?25h"));
  }
  CHECK(contains(out.str(), "\x1b[?25h"));
}

TEST_CASE("Live view: a device that waits for rows or rests is as green as one that trains") {
  GroupView group = canned();
  const auto colour_in = [&](const std::string& state) {
    group.devices[0].state = state;
    const auto text = joined(render_screen(group, {true, true, 100}));
    const auto end = text.find("m" + state + "\x1b");
    REQUIRE(end != std::string::npos);
    return text.substr(end - 2, 2);
  };
  for (const char* well : {"training", "waiting", "idle"}) CHECK(colour_in(well) == "32");
  for (const char* changing : {"forming", "connecting", "stopping"}) CHECK(colour_in(changing) == "33");
  for (const char* bad : {"failed", "killed"}) CHECK(colour_in(bad) == "31");
}

TEST_CASE("Live view: what a device says moves no cursor") {
  GroupView group = canned();
  group.devices[1].phrase = "waiting for \x1b[2J\r\n";
  for (const auto& line : render_screen(group, {false, true, 200}))
    CHECK_MESSAGE(line.find_first_of("\x1b\r\n") == std::string::npos, line);
}
