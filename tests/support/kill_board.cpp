#include "tests/support/kill_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "core/check.h"

namespace rivulet::testing {

Result<std::shared_ptr<KillPage>> KillBoard::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Error{ErrorCode::io, "cannot open " + path};
  const bool sized = ::ftruncate(fd, sizeof(KillPage)) == 0;
  void* at =
      sized ? ::mmap(nullptr, sizeof(KillPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (at == MAP_FAILED) return Error{ErrorCode::io, "cannot map " + path};
  return std::shared_ptr<KillPage>(static_cast<KillPage*>(at),
                                   [](KillPage* page) { ::munmap(page, sizeof(KillPage)); });
}

std::shared_ptr<KillPage> KillBoard::of_this_process() {
  const char* path = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody changes it
  if (path == nullptr) return std::make_shared<KillPage>();
  auto board = open(path);
  RIVULET_CHECK(board, "the file of TALLY_BOARD cannot be mapped");
  return std::move(board).value();
}

}  // namespace rivulet::testing
