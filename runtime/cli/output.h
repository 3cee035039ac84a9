#pragma once
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace rivulet::runtime::cli {

/// Text output to one descriptor: standard output or standard error. text() passes through printable_lines(),
/// so no record, name or error can move the cursor. screen() is for this program's own drawing; callers must
/// escape foreign text first. Both streams keep their relative order. One thread; the caller owns the
/// descriptor.
class Output {
 public:
  /// `prompt`: writes every piece immediately, for errors. Otherwise writes at line ends on a terminal, and
  /// in blocks of some kilobytes elsewhere.
  explicit Output(int descriptor, bool prompt = false);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  [[nodiscard]] std::ostream& text() noexcept { return text_; }
  [[nodiscard]] std::ostream& screen() noexcept { return screen_; }
  /// Writes buffered text. Returns false if any output has been lost so far.
  bool flush();
  /// True if the reader closed the pipe, as `| head` does.
  [[nodiscard]] bool reader_is_gone() const noexcept { return reader_gone_; }

 private:
  /// Collects writes to one of the two streams.
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
  std::string waiting_;  ///< unescaped output of text()
  bool failed_ = false;
  bool reader_gone_ = false;
  Buffer text_buffer_{*this, true};
  Buffer screen_buffer_{*this, false};
  std::ostream text_{&text_buffer_};
  std::ostream screen_{&screen_buffer_};
};

}  // namespace rivulet::runtime::cli
