#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace rivulet::testing {

/// True if `body` ends its process by SIGABRT. Runs it in a child without output.
template <class Body>
bool aborts(Body body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    std::fclose(stderr);
    std::signal(SIGABRT, SIG_DFL);
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace rivulet::testing
