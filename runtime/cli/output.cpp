#include "runtime/cli/output.h"

#include <unistd.h>

#include <cerrno>

#include "core/printable.h"

namespace rivulet::runtime::cli {
namespace {

constexpr std::size_t most_waiting = 8192;

}  // namespace

Output::Output(int descriptor, bool prompt) : descriptor_(descriptor), by_line_(::isatty(descriptor) == 1) {
  if (prompt) text_.setf(std::ios_base::unitbuf);
}

Output::~Output() {
  static_cast<void>(flush());
}

bool Output::flush() {
  return write_waiting(true) && !failed_;
}

bool Output::add(std::string_view piece, bool escapes) {
  if (!escapes) return write_waiting(true) && write_bytes(piece);
  waiting_ += piece;
  const bool line_ended = by_line_ && piece.find('\n') != std::string_view::npos;
  return line_ended || waiting_.size() >= most_waiting ? write_waiting(false) : !failed_;
}

/// `whole`: also writes an incomplete UTF-8 character at the end.
bool Output::write_waiting(bool whole) {
  const std::size_t kept = whole ? 0 : unfinished_tail(waiting_);
  const std::string tail = waiting_.substr(waiting_.size() - kept);
  waiting_.erase(waiting_.size() - kept);
  const bool written = waiting_.empty() || write_bytes(printable_lines(waiting_));
  waiting_ = tail;
  return written;
}

bool Output::write_bytes(std::string_view bytes) {
  while (!bytes.empty() && !failed_) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      reader_gone_ = errno == EPIPE;
      failed_ = true;
    }
  }
  return !failed_;
}

std::streambuf::int_type Output::Buffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return output_.add({&one, 1}, escapes_) ? c : traits_type::eof();
}

std::streamsize Output::Buffer::xsputn(const char* data, std::streamsize size) {
  return output_.add({data, static_cast<std::size_t>(size)}, escapes_) ? size : 0;
}

int Output::Buffer::sync() {
  return output_.write_waiting(false) ? 0 : -1;
}

}  // namespace rivulet::runtime::cli
