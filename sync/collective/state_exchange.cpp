#include "sync/collective/state_exchange.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "core/digest.h"
#include "sync/transport/barrier.h"

namespace rivulet::sync {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are sent in host order");

constexpr std::uint64_t magic = 0x3145544154535652;  // "RVSTATE1"
constexpr std::size_t header_bytes = 64;
constexpr std::size_t piece_bytes = std::size_t{1} << 20U;
using Header = std::array<std::byte, header_bytes>;
constexpr std::size_t word_bytes = 8;

void put(std::span<std::byte> at, std::size_t index, std::uint64_t value) {
  std::memcpy(at.data() + index * sizeof value, &value, sizeof value);
}
std::uint64_t get(std::span<const std::byte> at, std::size_t index) {
  std::uint64_t value = 0;
  std::memcpy(&value, at.data() + index * sizeof value, sizeof value);
  return value;
}

std::size_t pieces_of(std::size_t bytes) {
  return (bytes + piece_bytes - 1) / piece_bytes;
}

/// magic | token | length | low half of XXH3-128 of these three; zeros.
Header header_of(std::uint64_t token, std::size_t length) {
  Header header{};
  put(header, 0, magic);
  put(header, 1, token);
  put(header, 2, length);
  put(header, 3, digest_of(std::span(header).first(24)).low);
  return header;
}

std::vector<std::byte> sums_of(std::span<const std::byte> bytes) {
  std::vector<std::byte> sums(8 * pieces_of(bytes.size()));
  for (std::size_t i = 0; i < pieces_of(bytes.size()); ++i) {
    const std::size_t first = i * piece_bytes;
    put(sums, i, digest_of(bytes.subspan(first, std::min(piece_bytes, bytes.size() - first))).low);
  }
  return sums;
}

enum class Stage : std::uint8_t { resting, header, body, taken, settling, confirmed, failed };

}  // namespace

struct StateExchange::State {
  State(Transport& t, const ViewSpec& v, std::size_t most, TimePoint end)
      : transport(t), view(v), bytes_max(most), give_up_at(end) {
    for (std::uint32_t rank = 0; rank < view.world(); ++rank)
      if (!has_state(rank)) lacking.push_back(rank);
    // A state in flight fills the link, so the barrier then uses messages, which queue behind it. Receives
    // are posted here, before a peer can be slow: waiting for peers does not count for the progress deadline.
    confirmed.emplace(t, Lane::confirmed, word_bytes,
                      lacking.empty() ? Barrier::Means::any : Barrier::Means::messages);
    confirmed->be_patient();
  }

  // constant
  Transport& transport;
  const ViewSpec view;
  const std::size_t bytes_max;
  const TimePoint give_up_at;
  std::vector<std::uint32_t> lacking;

  // train thread
  Stage stage = Stage::resting;
  Header header{};
  std::vector<std::byte> sums;
  std::vector<std::byte> bytes;
  std::optional<Barrier> confirmed;
  std::vector<Ticket> pending;
  Error error;

  [[nodiscard]] bool has_state(std::uint32_t rank) const {
    return std::binary_search(view.holders.begin(), view.holders.end(), rank);
  }
  [[nodiscard]] std::uint32_t donor_of(std::size_t index) const {
    return view.holders[index % view.holders.size()];
  }
  [[nodiscard]] std::uint32_t my_donor() const {
    const auto at = std::find(lacking.begin(), lacking.end(), view.rank);
    return donor_of(static_cast<std::size_t>(at - lacking.begin()));
  }
  Progress fail(Error e) {
    stage = Stage::failed;
    error = std::move(e);
    return Progress::failed;
  }
  Error not_a_state(const std::string& why) {
    return {ErrorCode::protocol, "the state from " + rank_name(view, my_donor()) + " " + why, {my_donor()}};
  }
  Progress poll_pending() {
    Progress p = finish_all(transport, pending);
    if (p == Progress::done && stage == Stage::settling) p = confirmed->poll();
    return p == Progress::failed ? fail(error_of(transport)) : p;
  }
  Progress read_header();
  Progress check_body();
};

Progress StateExchange::State::read_header() {
  const std::size_t length = get(header, 2);
  if (get(header, 0) != magic || get(header, 3) != digest_of(std::span(header).first(24)).low)
    return fail(not_a_state("has an invalid header"));
  if (get(header, 1) != view.token) return fail(not_a_state("belongs to a different view"));
  if (length == 0 || length > bytes_max)
    return fail(not_a_state("has " + std::to_string(length) + " bytes, at most " + std::to_string(bytes_max) +
                            " are allowed"));
  bytes.resize(length);
  sums.resize(8 * pieces_of(length));
  pending = {transport.receive(my_donor(), Lane::state, sums),
             transport.receive(my_donor(), Lane::state, bytes)};
  stage = Stage::body;
  return Progress::pending;
}

Progress StateExchange::State::check_body() {
  if (sums_of(bytes) != sums) return fail(not_a_state("was damaged in transit"));
  stage = Stage::taken;
  return Progress::done;
}

StateExchange::StateExchange(Transport& transport, const ViewSpec& view, std::size_t bytes_max,
                             TimePoint give_up_at)
    : state_(std::make_unique<State>(transport, view, bytes_max, give_up_at)) {
  RIVULET_CHECK(!view.holders.empty(), "no member has the target of the view");
}

StateExchange::~StateExchange() = default;

bool StateExchange::has_state() const {
  return state_->has_state(state_->view.rank);
}

bool StateExchange::gives() const {
  const State& s = *state_;
  for (std::size_t i = 0; i < s.lacking.size(); ++i)
    if (s.donor_of(i) == s.view.rank) return true;
  return false;
}

void StateExchange::give(std::vector<std::byte> bytes) {
  State& s = *state_;
  s.bytes = std::move(bytes);
  s.header = header_of(s.view.token, s.bytes.size());
  s.sums = sums_of(s.bytes);
  for (std::size_t i = 0; i < s.lacking.size(); ++i) {
    if (s.donor_of(i) != s.view.rank) continue;
    const std::uint32_t to = s.lacking[i];
    s.pending.push_back(s.transport.send(to, Lane::state, s.header));
    s.pending.push_back(s.transport.send(to, Lane::state, s.sums));
    s.pending.push_back(s.transport.send(to, Lane::state, s.bytes));
  }
}

void StateExchange::take() {
  State& s = *state_;
  s.pending = {s.transport.receive(s.my_donor(), Lane::state, s.header)};
  s.stage = Stage::header;
}

std::span<const std::byte> StateExchange::taken() const {
  RIVULET_CHECK(state_->stage == Stage::taken, "taken() before the state arrived");
  return state_->bytes;
}

void StateExchange::confirm() {
  State& s = *state_;
  s.stage = Stage::settling;
  s.confirmed->enter();
}

Progress StateExchange::poll(TimePoint now) {
  State& s = *state_;
  if (s.stage == Stage::failed) return Progress::failed;
  if (s.stage == Stage::taken || s.stage == Stage::confirmed) return Progress::done;
  if (!s.transport.healthy()) return s.fail(error_of(s.transport));
  const Progress p = s.poll_pending();
  if (p == Progress::failed) return p;
  if (p == Progress::pending) {
    if (now < s.give_up_at) return p;
    return s.fail({ErrorCode::timed_out, "the view's state did not reach all devices in time"});
  }
  RIVULET_CHECK(s.stage != Stage::resting, "poll() before take() or confirm()");
  if (s.stage == Stage::header) return s.read_header();
  if (s.stage == Stage::body) return s.check_body();
  s.stage = Stage::confirmed;
  return Progress::done;
}

const Error& StateExchange::error() const {
  return state_->error;
}

}  // namespace rivulet::sync
