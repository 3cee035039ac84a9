#include "runtime/process/signals.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/check.h"
#include "runtime/process/exit_code.h"

namespace rivulet::runtime {
namespace {

// The program's only globals: a signal handler has no user argument, so it uses them to reach the waiting
// thread. Lock-free, as signal handlers require.
std::atomic<StopRequest*> target{nullptr};
std::atomic<bool> second_exits{true};
static_assert(std::atomic<StopRequest*>::is_always_lock_free && StopRequest::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

void on_signal(int) {
  const int saved = errno;
  if (StopRequest* stop = target.load()) {
    int none = 0;
    if (!stop->compare_exchange_strong(none, 1)) {
      if (second_exits.load()) _exit(static_cast<int>(ExitCode::failure));
      stop->store(2);
    }
  }
  errno = saved;
}

void install(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  RIVULET_CHECK(sigaction(signal, &action, nullptr) == 0, "cannot install a signal handler");
}

bool is_ignored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalHandlers::SignalHandlers(StopRequest& stop, Second second) {
  StopRequest* nobody = nullptr;
  RIVULET_CHECK(target.compare_exchange_strong(nobody, &stop),
                "only one object at a time may receive signals");
  second_exits.store(second == Second::exits);
  install(SIGTERM, on_signal);
  install(SIGINT, on_signal);
  if (!is_ignored(SIGHUP)) install(SIGHUP, on_signal);  // terminal hang-up; ignored under nohup
  install(SIGPIPE, SIG_IGN);
}

// Handlers stay installed but do nothing: a signal during library unload must not make a clean exit look like
// a kill. SIGPIPE stays ignored.
SignalHandlers::~SignalHandlers() {
  target.store(nullptr);
}

}  // namespace rivulet::runtime
