#include "buffer/row_buffer.h"

#include <unistd.h>

#include <algorithm>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>

#include "core/check.h"

namespace rivulet::buffer {
namespace {

constexpr std::size_t cache_line = 64;

using Ring = boost::lockfree::spsc_queue<SlotIndex>;

std::size_t round_up(std::size_t bytes) {
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

std::size_t physical_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
}

/// Sizes of the slab's parts, each rounded up to whole cache lines.
struct SlabSizes {
  std::size_t tags;
  std::size_t features;
  std::size_t targets;
  [[nodiscard]] std::size_t all() const noexcept { return tags + features + targets; }
};

SlabSizes slab_sizes(std::size_t slots, const RowShape& shape) {
  return {round_up(slots * sizeof(RowTag)), round_up(slots * shape.columns() * sizeof(float)),
          round_up(slots * shape.targets * sizeof(float))};
}

struct FreeMemory {
  void operator()(void* p) const noexcept { std::free(p); }
};

}  // namespace

/// The slab is [tags | features | targets], each part on its own cache line. Its pages are first touched when
/// rows arrive, so a large buffer uses memory only as it fills.
struct RowBuffer::State {
  State(std::size_t rows, const RowShape& row_shape);

  // constant
  RowShape shape;
  std::size_t rows;  ///< slots, including the spare one
  std::size_t columns;
  std::size_t targets;
  std::size_t slab_bytes = 0;
  std::unique_ptr<void, FreeMemory> slab;  ///< null if the allocation failed
  RowTag* tags = nullptr;
  float* feature_rows = nullptr;
  float* target_rows = nullptr;

  // ingest thread
  alignas(cache_line) std::vector<SlotIndex> free;  ///< the next slot to write is at the end
  bool claimed = false;                             ///< free.back() is being written
  bool flushed = false;                             ///< since the last gather_free()
  std::vector<SlotIndex> pending;                   ///< published, not flushed

  // train thread
  alignas(cache_line) std::vector<SlotIndex> front;  ///< put back, newest first: the oldest row is at the end
  std::uint32_t generation = 0;                      ///< older rows are released by take()

  // shared: each ring has one writer and one reader
  Ring free_ring;  ///< train -> ingest
  Ring full_ring;  ///< ingest -> train
};

RowBuffer::State::State(std::size_t row_count, const RowShape& row_shape)
    : shape(row_shape),
      rows(row_count + 1),
      columns(row_shape.columns()),
      targets(row_shape.targets),
      free_ring(row_count + 1),
      full_ring(row_count) {
  static_assert(std::is_trivially_copyable_v<RowTag> && std::is_trivially_destructible_v<RowTag>);
  RIVULET_CHECK(row_count > 0 && rows < std::numeric_limits<SlotIndex>::max(),
                "number of slots out of range");
  const SlabSizes sizes = slab_sizes(rows, shape);
  slab_bytes = sizes.all();
  if (slab_bytes > physical_memory()) return;
  slab.reset(std::aligned_alloc(cache_line, slab_bytes));
  if (slab == nullptr) return;
  auto* bytes = static_cast<std::byte*>(slab.get());
  tags = reinterpret_cast<RowTag*>(bytes);
  feature_rows = reinterpret_cast<float*>(bytes + sizes.tags);
  target_rows = reinterpret_cast<float*>(bytes + sizes.tags + sizes.features);
  // Reserved once, so that publish(), flush() and put_back() never allocate.
  free.reserve(rows);
  pending.reserve(rows);
  front.reserve(rows);
}

std::size_t RowBuffer::bytes_for(std::size_t rows, const RowShape& shape) noexcept {
  // Two rings with one unused element each, and three lists as long as the buffer, all of slot numbers.
  return sizeof(State) + slab_sizes(rows + 1, shape).all() + 5 * (rows + 2) * sizeof(SlotIndex);
}

Result<std::unique_ptr<RowBuffer>> RowBuffer::create(std::size_t rows, const RowShape& shape) {
  auto state = std::make_unique<State>(rows, shape);
  if (state->slab != nullptr) return std::unique_ptr<RowBuffer>(new RowBuffer(std::move(state)));
  const std::string mib = std::to_string(state->slab_bytes >> 20U);
  return Error{ErrorCode::unavailable, "no memory for the row buffer: " + std::to_string(rows) + " rows of " +
                                           std::to_string(shape.columns()) + " values need " + mib +
                                           " MiB; lower buffer.rows"};
}

RowBuffer::RowBuffer(std::size_t rows, const RowShape& shape)
    : RowBuffer(std::make_unique<State>(rows, shape)) {}

RowBuffer::RowBuffer(std::unique_ptr<State> state) : state_(std::move(state)) {
  RIVULET_CHECK(state_->slab != nullptr, "no memory for the row buffer");
  std::vector<SlotIndex> all(state_->rows);
  std::iota(all.begin(), all.end(), SlotIndex{0});
  state_->free_ring.push(all.data(), all.size());
}

RowBuffer::~RowBuffer() = default;

std::size_t RowBuffer::capacity() const noexcept {
  return state_->rows - 1;
}
const RowShape& RowBuffer::shape() const noexcept {
  return state_->shape;
}

// --- ingest thread ---

std::size_t RowBuffer::free_rows() noexcept {
  const State& s = *state_;
  // A claimed slot counts: claim() returns it again. The spare slot stays with the ingest thread.
  return s.free.size() + s.free_ring.read_available() - 1;
}

/// Reuses recently released slots first: they are still in the CPU cache, and a buffer that never fills
/// touches only a part of its memory.
void RowBuffer::gather_free() noexcept {
  State& s = *state_;
  const std::size_t begin = s.free.size();
  s.free.resize(begin + s.free_ring.read_available());
  s.free.resize(begin + s.free_ring.pop(s.free.data() + begin, s.free.size() - begin));
  std::reverse(s.free.begin() + static_cast<std::ptrdiff_t>(begin), s.free.end());
}

RowSlot RowBuffer::claim() noexcept {
  State& s = *state_;
  if (!s.claimed && std::exchange(s.flushed, false)) gather_free();
  if (s.free.empty()) gather_free();
  RIVULET_CHECK(!s.free.empty(), "the spare slot is missing");
  s.claimed = true;
  const std::size_t slot = s.free.back();
  return {{s.feature_rows + slot * s.columns, s.columns}, {s.target_rows + slot * s.targets, s.targets}};
}

void RowBuffer::publish(const RowTag& tag) noexcept {
  State& s = *state_;
  RIVULET_CHECK(s.claimed, "publish() without claim()");
  RIVULET_CHECK(free_rows() > 0, "publish() into a full buffer");
  const SlotIndex slot = s.free.back();
  s.free.pop_back();
  s.claimed = false;
  std::construct_at(s.tags + slot, tag);
  s.pending.push_back(slot);
}

void RowBuffer::amend_newest(const RowCursor& next, std::uint32_t record_bytes) noexcept {
  State& s = *state_;
  if (s.pending.empty()) return;
  s.tags[s.pending.back()].next = next;
  s.tags[s.pending.back()].record_bytes = record_bytes;
}

void RowBuffer::flush() noexcept {
  State& s = *state_;
  s.flushed = true;
  if (s.pending.empty()) return;
  const std::size_t moved = s.full_ring.push(s.pending.data(), s.pending.size());
  RIVULET_CHECK(moved == s.pending.size(), "more full slots than the ring holds");
  s.pending.clear();
  // After the push, with release order: every counted row is already in the ring, so the count never exceeds
  // the ring's content.
  waiting_.fetch_add(moved, std::memory_order_release);
}

// --- train thread ---

std::size_t RowBuffer::take(std::size_t n, std::vector<SlotIndex>& out) {
  const std::size_t begin = out.size();
  while (out.size() - begin < n) {
    const std::size_t end = out.size();
    const std::size_t taken = take_any(n - (end - begin), out);
    if (taken == 0) break;
    const auto is_fresh = [&](SlotIndex slot) { return tag(slot).generation >= state_->generation; };
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(end);
    if (std::all_of(first, out.end(), is_fresh)) continue;  // the common case: stable_partition() allocates
    const auto stale = std::stable_partition(first, out.end(), is_fresh);
    release({stale, out.end()});
    out.erase(stale, out.end());
  }
  return out.size() - begin;
}

std::size_t RowBuffer::discard(const std::function<bool(const RowTag&)>& unwanted) {
  std::vector<SlotIndex> all;
  take(waiting(), all);
  const auto kept =
      std::stable_partition(all.begin(), all.end(), [&](SlotIndex slot) { return !unwanted(tag(slot)); });
  const auto gone = static_cast<std::size_t>(all.end() - kept);
  release({kept, all.end()});
  put_back({all.begin(), kept});
  return gone;
}

void RowBuffer::forget_before(std::uint32_t generation) {
  state_->generation = generation;
  discard([](const RowTag&) { return false; });  // take() has released the stale rows
}

std::size_t RowBuffer::take_any(std::size_t n, std::vector<SlotIndex>& out) {
  State& s = *state_;
  n = std::min(n, waiting_.load(std::memory_order_acquire));
  const std::size_t old = std::min(n, s.front.size());
  out.insert(out.end(), s.front.rbegin(), s.front.rbegin() + static_cast<std::ptrdiff_t>(old));
  s.front.resize(s.front.size() - old);
  const std::size_t begin = out.size();
  out.resize(begin + (n - old));
  const std::size_t moved = s.full_ring.pop(out.data() + begin, n - old);
  RIVULET_CHECK(moved == n - old, "a counted row is missing");
  waiting_.fetch_sub(n, std::memory_order_relaxed);  // relaxed: only this thread takes rows
  return n;
}

void RowBuffer::put_back(std::span<const SlotIndex> slots) {
  State& s = *state_;
  RIVULET_CHECK(s.front.size() + slots.size() <= s.rows, "a slot was put back twice");
  s.front.insert(s.front.end(), slots.rbegin(), slots.rend());
  waiting_.fetch_add(slots.size(), std::memory_order_relaxed);  // relaxed: read back by this thread
}

void RowBuffer::release(std::span<const SlotIndex> slots) {
  const std::size_t moved = state_->free_ring.push(slots.data(), slots.size());
  RIVULET_CHECK(moved == slots.size(), "a slot was released twice");
}

std::span<const float> RowBuffer::features(SlotIndex slot) const noexcept {
  const State& s = *state_;
  RIVULET_CHECK(slot < s.rows, "no such slot");
  return {s.feature_rows + slot * s.columns, s.columns};
}

std::span<const float> RowBuffer::targets(SlotIndex slot) const noexcept {
  const State& s = *state_;
  RIVULET_CHECK(slot < s.rows, "no such slot");
  return {s.target_rows + slot * s.targets, s.targets};
}

const RowTag& RowBuffer::tag(SlotIndex slot) const noexcept {
  RIVULET_CHECK(slot < state_->rows, "no such slot");
  return state_->tags[slot];
}

}  // namespace rivulet::buffer
