#pragma once
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace rivulet::runtime::cli {

/// One descriptor of this process as a place for text: standard output, or standard error. What is written
/// to text() leaves through printable_lines(), so no record, name or error can move a cursor; screen() is for
/// what this program draws itself, and who puts a text of others into a drawing escapes it first. Both keep
/// their order. One thread; the descriptor stays the caller's.
class Output {
 public:
  /// `prompt`: every piece leaves at once, as errors must; otherwise at the end of a line on a terminal, and
  /// in pieces of some kilobytes elsewhere.
  explicit Output(int descriptor, bool prompt = false);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  [[nodiscard]] std::ostream& text() noexcept { return text_; }
  [[nodiscard]] std::ostream& screen() noexcept { return screen_; }
  /// Writes what waits. False: not everything could be written, now or before.
  bool flush();
  /// Nobody reads on: the other end of the pipe was closed, as by `| head`.
  [[nodiscard]] bool reader_is_gone() const noexcept { return reader_gone_; }

 private:
  /// Collects what is written to one of the two streams.
  class Buffer final : public std::streambuf {
   public:
    Buffer(Output& output, bool escapes) : output_(output), escapes_(escapes) {}

   protected:
    int_type overflow(int_type c) override;
    std::streamsize xsputn(const char* data, std::streamsize size) override;
    int sync() override;

   private:
    Output& output_;
    bool escapes_;
  };

  bool add(std::string_view piece, bool escapes);
  bool write_waiting(bool whole);
  bool write_bytes(std::string_view bytes);

  const int descriptor_;
  const bool by_line_;
  std::string waiting_;  ///< of text(), not yet escaped
  bool failed_ = false;
  bool reader_gone_ = false;
  Buffer text_buffer_{*this, true};
  Buffer screen_buffer_{*this, false};
  std::ostream text_{&text_buffer_};
  std::ostream screen_{&screen_buffer_};
};

}  // namespace rivulet::runtime::cli
