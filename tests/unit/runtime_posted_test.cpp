// A value published to readers without its writer ever waiting for them.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/posted.h"

using namespace rivulet;

namespace {

/// The test controls how long a copy takes.
struct Slow {
  Slow() = default;
  explicit Slow(int n) : number(n) {}
  Slow(const Slow& other) : number(other.number), gate(other.gate) {
    if (gate == nullptr) return;
    copying = true;
    while (!gate->load()) std::this_thread::yield();
  }
  Slow& operator=(const Slow&) = default;
  Slow(Slow&&) = default;
  Slow& operator=(Slow&&) = default;
  ~Slow() = default;
  int number = 0;
  std::atomic<bool>* gate = nullptr;
  static std::atomic<bool> copying;
};
std::atomic<bool> Slow::copying{false};

}  // namespace

TEST_CASE("Posted: what is posted while somebody copies is shown afterwards, and the writer went on") {
  std::atomic<bool> gate{false};
  Posted<Slow> posted;
  Slow first(1);
  first.gate = &gate;
  posted.post(std::move(first));
  int seen = 0;
  std::thread reader([&] { seen = posted.read().number; });
  while (!Slow::copying) std::this_thread::yield();
  posted.post(Slow(2));  // would never return if it waited
  CHECK_FALSE(posted.publish());
  gate = true;
  reader.join();
  CHECK(seen == 1);
  CHECK(posted.publish());
  CHECK(posted.read().number == 2);
}

TEST_CASE("Posted: readers see whole values, in the order in which they were posted") {
  Posted<std::vector<int>> posted;
  posted.post(std::vector<int>(100, 0));
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      int last = 0;
      while (!done) {
        const auto value = posted.read();
        for (const int n : value)
          if (n != value.front()) std::abort();
        if (value.front() < last) std::abort();
        last = value.front();
      }
    });
  for (int i = 1; i <= 20'000; ++i) posted.post(std::vector<int>(100, i));
  done = true;
  for (auto& reader : readers) reader.join();
  CHECK(posted.publish());
  CHECK(posted.read().front() == 20'000);
}
