#include "runtime/train/state_donor.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/digest.h"

namespace rivulet::runtime {
namespace {

constexpr Duration look_every = std::chrono::milliseconds(20);
constexpr Duration alive_every = std::chrono::seconds(1);
// The receiver steps through rounds and hashes states; on a slow board this may take a while.
constexpr int answer_deadlines = 12;
// A receiver that can catch up in this time may join: the others wait for it as long.
constexpr double catch_up_s = 0.25;

}  // namespace

struct StateDonor::Session {
  enum class Stage : std::uint8_t { connecting, sending };
  std::uint64_t token = 0;
  std::string receiver;
  std::uint32_t rank = 0;  ///< of the receiver
  Stage stage = Stage::connecting;
  std::vector<std::byte> image;
  std::size_t sent = 0;  ///< of the image
  TimePoint began{};
  Duration sending{};  ///< time without pauses
  // Message in flight: the transport may read these until it is closed.
  CopyHead head;
  CopyHeadBytes head_bytes{};
  std::vector<std::byte> body;
  std::array<std::byte, copy_answer_bytes> answer{};
  std::vector<sync::Ticket> pending;
  TimePoint sent_at{};
  TimePoint next_at{};
  std::unique_ptr<sync::Transport> transport;  ///< last: closed before the buffers are freed

  ~Session() {
    if (transport) transport->close();
  }
};

StateDonor::StateDonor(Parts parts)
    : parts_(std::move(parts)), queue_bytes_max_(state_array_bytes(parts_.layout) + copy_piece_bytes) {}

StateDonor::~StateDonor() = default;

Status StateDonor::follow(const std::optional<sync::membership::StateRequest>& request,
                          const AgreedState& state) {
  const std::uint64_t wanted = request ? request->link.token : 0;
  if (gives() && wanted != token_.load()) drop();
  if (gives() || wanted == 0 || wanted == last_token_) return ok();
  auto model = devices::ModelState::create(parts_.layout, parts_.device);
  if (!model) return model.error();
  auto copy = std::make_unique<AgreedState>(AgreedState{std::move(model).value(), {}, 0, {}});
  copy->copy_from(state);
  last_token_ = wanted;
  {
    const std::lock_guard lock(mutex_);
    job_ = {};
    job_.request = request;
    job_.state = std::move(copy);
    token_.store(wanted, std::memory_order_release);
  }
  parts_.wake.notify();
  return ok();
}

void StateDonor::applied(const CopiedRound& round, const GradientView& sum) {
  auto bytes = encode_round(round, sum);
  const std::lock_guard lock(mutex_);
  const bool fits = bytes && job_.bytes + bytes.value().size() <= queue_bytes_max_;
  if (!fits || job_.end) {
    job_ = {};
    token_.store(0, std::memory_order_release);
    nearly_done_.store(false, std::memory_order_release);
  } else {
    job_.bytes += bytes.value().size();
    job_.rounds.push_back(std::move(bytes).value());
    note_distance();
  }
  parts_.wake.notify();
}

/// Call with the lock.
void StateDonor::note_distance() {
  const std::size_t rounds = job_.rounds.size() + job_.unconfirmed_rounds;
  const auto bytes = static_cast<double>(job_.bytes + job_.unconfirmed_bytes);
  const bool near = job_.bytes_per_s > 0 && (rounds <= 1 || bytes <= catch_up_s * job_.bytes_per_s);
  nearly_done_.store(near, std::memory_order_release);
}

std::vector<std::string> StateDonor::end(const Stamp& stamp) {
  if (!gives()) return {};
  if (!nearly_done()) {
    drop();
    return {};
  }
  const std::lock_guard lock(mutex_);
  if (job_.end || !job_.request) return {};
  nearly_done_.store(false, std::memory_order_release);
  job_.end = stamp;
  parts_.wake.notify();
  return {job_.request->receiver};
}

void StateDonor::drop() {
  const std::lock_guard lock(mutex_);
  job_ = {};
  token_.store(0, std::memory_order_release);
  nearly_done_.store(false, std::memory_order_release);
  parts_.wake.notify();
}

Turn StateDonor::step() {
  const std::uint64_t token = token_.load(std::memory_order_acquire);
  if (session_ && session_->token != token) session_.reset();
  if (token == 0) return {};
  if (!session_) return begin(token);
  return session_->stage == Session::Stage::connecting ? connect() : send_next();
}

Turn StateDonor::begin(std::uint64_t token) {
  sync::membership::StateRequest request;
  {
    const std::lock_guard lock(mutex_);
    if (token_.load() != token || !job_.request) return {.work = 1};
    request = *job_.request;
  }
  session_ = std::make_unique<Session>();
  session_->token = token;
  session_->receiver = request.receiver;
  session_->rank = 1 - request.link.rank;
  session_->began = parts_.clock.now();
  auto transport = parts_.connect(request.link, parts_.addresses, parts_.wake);
  if (!transport) return failed(transport.error());
  session_->transport = std::move(transport).value();
  return {.work = 1};
}

Turn StateDonor::connect() {
  switch (session_->transport->connected()) {
    case Progress::pending: return {.wake_at = parts_.clock.now() + look_every};
    case Progress::failed: return failed(sync::error_of(*session_->transport));
    case Progress::done: break;
  }
  std::unique_ptr<AgreedState> state;
  {
    const std::lock_guard lock(mutex_);
    if (token_.load() != session_->token) return {.work = 1};
    state = std::move(job_.state);
  }
  const auto digest = digest_of(*state, parts_.device);
  if (!digest) return failed(digest.error());
  session_->image = encode_state(parts_.owner, *state, digest.value());
  session_->stage = Session::Stage::sending;
  parts_.log.write(Level::info, "copying the state to a device that joins",
                   {{"device", session_->receiver},
                    {"state", text_of(state->stamp)},
                    {"bytes", std::to_string(session_->image.size())}});
  return {.work = 1};
}

Turn StateDonor::send_next() {
  Session& s = *session_;
  const TimePoint now = parts_.clock.now();
  if (!s.transport->healthy()) return failed(sync::error_of(*s.transport));
  if (!s.pending.empty()) {
    const Progress p = sync::finish_all(*s.transport, s.pending);
    if (p == Progress::failed) return failed(sync::error_of(*s.transport));
    if (p == Progress::pending) {
      if (now < s.sent_at + answer_deadlines * parts_.peer_deadline) return {.wake_at = now + look_every};
      return failed({ErrorCode::timed_out, "the device has not answered"});
    }
    confirmed();
    if (!session_) return {.work = 1};
  }
  bool ends = false;
  Stamp last;
  {
    const std::lock_guard lock(mutex_);
    ends = job_.end.has_value();
    last = job_.end.value_or(Stamp{});
  }
  if (!ends && now < s.next_at) return {.wake_at = s.next_at};
  if (s.sent < s.image.size()) {
    const std::size_t bytes = std::min(copy_piece_bytes, s.image.size() - s.sent);
    const auto from = s.image.begin() + static_cast<std::ptrdiff_t>(s.sent);
    return send({.part = CopyPart::image, .first = s.sent, .total = s.image.size()},
                {from, from + static_cast<std::ptrdiff_t>(bytes)});
  }
  auto rounds = take_rounds();
  if (!rounds.empty() || (!ends && now >= s.sent_at + alive_every))
    return send({.part = CopyPart::rounds}, std::move(rounds));
  if (ends) return send({.part = CopyPart::end, .first = last.lineage, .total = last.step}, {});
  return {.wake_at = s.sent_at + alive_every};
}

std::vector<std::byte> StateDonor::take_rounds() {
  const std::lock_guard lock(mutex_);
  std::vector<std::byte> taken;
  while (!job_.rounds.empty()) {
    const auto& next = job_.rounds.front();
    if (!taken.empty() && taken.size() + next.size() > copy_piece_bytes) break;
    taken.insert(taken.end(), next.begin(), next.end());
    job_.bytes -= next.size();
    ++job_.unconfirmed_rounds;
    job_.rounds.pop_front();
  }
  job_.unconfirmed_bytes = taken.size();
  return taken;
}

Turn StateDonor::send(CopyHead head, std::vector<std::byte> body) {
  Session& s = *session_;
  s.body = std::move(body);
  s.head = head;
  s.head.token = s.token;
  s.head.bytes = s.body.size();
  s.head.sum = rivulet::digest_of(s.body).low;
  s.head_bytes = encode(s.head);
  s.sent_at = parts_.clock.now();
  s.pending = {s.transport->receive_ahead(s.rank, sync::Lane::confirmed, s.answer),
               s.transport->send(s.rank, sync::Lane::state, s.head_bytes)};
  if (!s.body.empty()) s.pending.push_back(s.transport->send(s.rank, sync::Lane::state, s.body));
  return {.work = 1};
}

/// The receiver has the last message. The pause after it is as long as its transfer.
void StateDonor::confirmed() {
  Session& s = *session_;
  const TimePoint now = parts_.clock.now();
  const Duration took = now - s.sent_at;
  s.next_at = now + took;
  if (s.head.part == CopyPart::end) return finish();
  const std::lock_guard lock(mutex_);
  if (s.head.part == CopyPart::image) {
    s.sent += s.body.size();
    s.sending += took;
    if (s.sent < s.image.size()) return;
    job_.bytes_per_s = static_cast<double>(s.image.size()) / std::max(to_seconds(s.sending), 1e-6);
    s.image = {};
    s.sent = 0;
  }
  job_.unconfirmed_rounds = 0;
  job_.unconfirmed_bytes = 0;
  note_distance();
}

void StateDonor::finish() {
  parts_.log.write(Level::info, "the state was copied",
                   {{"device", session_->receiver},
                    {"seconds", std::to_string(to_seconds(parts_.clock.now() - session_->began))}});
  std::uint64_t token = session_->token;
  session_.reset();
  token_.compare_exchange_strong(token, 0);
}

Turn StateDonor::failed(const Error& error) {
  parts_.log.write(Level::warn, "the state was not copied",
                   {{"device", session_->receiver}, {"why", error.message}});
  const std::uint64_t token = session_->token;
  session_.reset();
  const std::lock_guard lock(mutex_);
  if (token_.load() != token) return {.work = 1};
  job_ = {};
  nearly_done_.store(false, std::memory_order_release);
  token_.store(0, std::memory_order_release);
  return {.work = 1};
}

}  // namespace rivulet::runtime
