// librdkafka uses C11 threads and locks, which GCC 12's ThreadSanitizer does not intercept: a thread created
// that way crashes in its allocator. In builds with it, these functions replace them and call the intercepted
// POSIX functions. glibc's C11 types have the same layout as the POSIX ones.
#include <pthread.h>
#include <threads.h>

#include <cerrno>
#include <cstdint>

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t));

namespace {

struct Start {
  thrd_start_t body;
  void* argument;
};

void* run(void* given) {
  const Start start = *static_cast<Start*>(given);
  delete static_cast<Start*>(given);
  const std::intptr_t result = start.body(start.argument);
  return reinterpret_cast<void*>(result);
}

pthread_mutex_t* posix(mtx_t* mutex) {
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}

pthread_cond_t* posix(cnd_t* condition) {
  return reinterpret_cast<pthread_cond_t*>(condition);
}

int answer(int error) {
  if (error == 0) return thrd_success;
  if (error == EBUSY) return thrd_busy;
  return error == ETIMEDOUT ? thrd_timedout : thrd_error;
}

}  // namespace

extern "C" {

int thrd_create(thrd_t* thread, thrd_start_t body, void* argument) {
  return answer(pthread_create(thread, nullptr, run, new Start{body, argument}));
}
int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  const int error = pthread_join(thread, &value);
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  return answer(error);
}
int thrd_detach(thrd_t thread) {
  return answer(pthread_detach(thread));
}
int mtx_init(mtx_t* mutex, int kind) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if ((kind & mtx_recursive) != 0) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  const int error = pthread_mutex_init(posix(mutex), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return answer(error);
}
void mtx_destroy(mtx_t* mutex) {
  pthread_mutex_destroy(posix(mutex));
}
int mtx_lock(mtx_t* mutex) {
  return answer(pthread_mutex_lock(posix(mutex)));
}
int mtx_trylock(mtx_t* mutex) {
  return answer(pthread_mutex_trylock(posix(mutex)));
}
int mtx_unlock(mtx_t* mutex) {
  return answer(pthread_mutex_unlock(posix(mutex)));
}
int cnd_init(cnd_t* condition) {
  return answer(pthread_cond_init(posix(condition), nullptr));
}
void cnd_destroy(cnd_t* condition) {
  pthread_cond_destroy(posix(condition));
}
int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return answer(pthread_cond_wait(posix(condition), posix(mutex)));
}
int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return answer(pthread_cond_timedwait(posix(condition), posix(mutex), until));
}
int cnd_signal(cnd_t* condition) {
  return answer(pthread_cond_signal(posix(condition)));
}
int cnd_broadcast(cnd_t* condition) {
  return answer(pthread_cond_broadcast(posix(condition)));
}

}  // extern "C"
