#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "runtime/cli/output.h"

using namespace rivulet::runtime::cli;

namespace {

/// A pipe whose reader never waits.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_NONBLOCK) == 0);
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close_reader();
    ::close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_reader() {
    if (read >= 0) ::close(read);
    read = -1;
  }
  [[nodiscard]] std::string taken() const {
    std::array<char, 4096> bytes{};
    const auto n = ::read(read, bytes.data(), bytes.size());
    return n > 0 ? std::string(bytes.data(), static_cast<std::size_t>(n)) : "";
  }
  int read = -1;
  int write = -1;
};

}  // namespace

TEST_CASE("Output: what moves a cursor is shown, lines stay lines, drawings are as they are drawn") {
  const Pipe pipe;
  Output output(pipe.write);
  output.text() << "a\x1b[2J\r\tb\xc2\x9b\n";
  output.screen() << "\x1b[1m";
  output.text() << "bold\n";
  CHECK(output.flush());
  CHECK(pipe.taken() == "a\\u001b[2J\\r\tb\\u009b\n\x1b[1mbold\n");
}

TEST_CASE(
    "Output: a letter that comes in two pieces is one letter, a half one at the end is shown as bytes") {
  const Pipe pipe;
  {
    Output output(pipe.write);
    output.text() << "\xc3" << std::flush;
    CHECK(pipe.taken().empty());
    output.text() << "\xa4" << std::flush;
    CHECK(pipe.taken() == "\xc3\xa4");
    output.text() << "x\xe2\x80";
  }
  CHECK(pipe.taken() == "x\\xe2\\x80");
}

TEST_CASE("Output: errors leave at once") {
  const Pipe pipe;
  Output errors(pipe.write, true);
  errors.text() << "error: " << 7;
  CHECK(pipe.taken() == "error: 7");
}

TEST_CASE("Output: a reader that went away is told from a disk that is full") {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  Output output(pipe.write);
  pipe.close_reader();
  output.text() << "nobody reads this\n" << std::flush;
  CHECK_FALSE(output.text().good());
  CHECK_FALSE(output.flush());
  CHECK(output.reader_is_gone());
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  Output disk(full);
  disk.text() << "x";
  CHECK_FALSE(disk.flush());
  CHECK_FALSE(disk.reader_is_gone());
  ::close(full);
}
