#include "sync/transport/gloo/quiet_stdout.h"

#include <iostream>
#include <streambuf>

namespace rivulet::sync::gloo_door {
namespace {

// The only static state here: std::cout is global, so its filter must be global, too; quietness is per
// thread.
thread_local int quiet_depth = 0;

class Filter final : public std::streambuf {
 public:
  explicit Filter(std::streambuf* target) : target_(target) {}

 protected:
  int_type overflow(int_type c) override {
    if (quiet_depth > 0) return traits_type::not_eof(c);
    return traits_type::eq_int_type(c, traits_type::eof()) ? c : target_->sputc(traits_type::to_char_type(c));
  }
  std::streamsize xsputn(const char* text, std::streamsize n) override {
    return quiet_depth > 0 ? n : target_->sputn(text, n);
  }
  int sync() override { return quiet_depth > 0 ? 0 : target_->pubsync(); }

 private:
  std::streambuf* target_;
};

}  // namespace

QuietStdout::QuietStdout() noexcept {
  ++quiet_depth;
}
QuietStdout::~QuietStdout() {
  --quiet_depth;
}

void QuietStdout::install() {
  static Filter* const filter = [] {
    // Never deleted: std::cout is flushed after our last destructor.
    auto* const made = new Filter(std::cout.rdbuf());
    std::cout.rdbuf(made);
    return made;
  }();
  static_cast<void>(filter);
}

}  // namespace rivulet::sync::gloo_door
