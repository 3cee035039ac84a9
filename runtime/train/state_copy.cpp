#include "runtime/train/state_copy.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/digest.h"
#include "runtime/train/copy_message.h"

namespace rivulet::runtime {
namespace {

// A donor that is alive sends something every second, except while it encodes a large state.
constexpr int silent_deadlines = 6;

Error wrong(const std::string& why) {
  return {ErrorCode::protocol, "the donor of the state " + why};
}

}  // namespace

struct StateCopy::Session {
  enum class Stage : std::uint8_t { connecting, head, body, ended };
  std::uint64_t token = 0;
  std::string donor;
  std::uint32_t rank = 0;  ///< of the donor
  Stage stage = Stage::connecting;
  TimePoint heard_at{};
  std::vector<std::byte> image;
  std::size_t received = 0;  ///< of the image
  std::optional<AgreedState> state;
  // Messages in flight: the transport may read and write these until it is closed.
  CopyHead head;
  CopyHeadBytes head_bytes{};
  std::vector<std::byte> body;
  std::array<std::byte, copy_answer_bytes> answer{};
  std::vector<sync::Ticket> pending;
  std::vector<sync::Ticket> answering;
  std::unique_ptr<sync::Transport> transport;  ///< last: closed before the buffers are freed

  ~Session() {
    if (transport) transport->close();
  }
  void expect_head() {
    pending = {transport->receive_ahead(rank, sync::Lane::state, head_bytes)};
    stage = Stage::head;
  }
};

StateCopy::StateCopy(const Parts& parts) : parts_(parts) {}
StateCopy::~StateCopy() = default;

void StateCopy::drop() {
  session_.reset();
}

AgreedState StateCopy::take() {
  AgreedState state = std::move(*session_->state);
  session_.reset();
  return state;
}

std::string StateCopy::phrase() const {
  if (!session_) return "";
  const auto& s = *session_;
  const std::string what = "copying the state from " + s.donor;
  if (s.state) return what + ": following the group, at step " + std::to_string(s.state->stamp.step);
  if (s.image.empty()) return what;
  return what + ", " + std::to_string(100 * s.received / s.image.size()) + " %";
}

Progress StateCopy::step() {
  // Once the view is left, nothing is requested any more, but its last rounds are still on their way.
  if (const auto request = parts_.membership.copy_to_take()) {
    if (session_ && session_->token != request->link.token)
      return failed({ErrorCode::cancelled, "the view of the donor has ended"});
    if (!session_ && request->link.token != last_token_ && begin(*request) == Progress::failed)
      return Progress::failed;
  }
  return session_ ? receive() : Progress::pending;
}

Progress StateCopy::begin(const sync::membership::StateRequest& request) {
  last_token_ = request.link.token;
  session_ = std::make_unique<Session>();
  session_->token = request.link.token;
  session_->donor = request.donor;
  session_->rank = 1 - request.link.rank;
  session_->heard_at = parts_.clock.now();
  auto transport = parts_.connect(request.link, parts_.membership, parts_.wake);
  if (!transport) return failed(transport.error());
  session_->transport = std::move(transport).value();
  return Progress::pending;
}

Progress StateCopy::receive() {
  Session& s = *session_;
  if (s.stage == Session::Stage::connecting) {
    const Progress p = s.transport->connected();
    if (p == Progress::failed) return failed(sync::error_of(*s.transport));
    if (p == Progress::done) s.expect_head();
    return Progress::pending;
  }
  Progress p = sync::finish_all(*s.transport, s.answering);
  // The state is complete; the donor closes the connection when it has the answer.
  if (s.stage == Session::Stage::ended) return p == Progress::pending ? p : Progress::done;
  if (p != Progress::failed && !s.transport->healthy()) p = Progress::failed;
  if (p != Progress::failed) p = sync::finish_all(*s.transport, s.pending);
  if (p == Progress::failed) return failed(sync::error_of(*s.transport));
  const TimePoint now = parts_.clock.now();
  if (p == Progress::pending) {
    const bool silent = now >= s.heard_at + silent_deadlines * parts_.peer_deadline;
    if (s.stage != Session::Stage::head || !silent) return Progress::pending;
    return failed({ErrorCode::timed_out, "the donor " + s.donor + " is silent"});
  }
  s.heard_at = now;
  const Status read = s.stage == Session::Stage::head ? read_head() : read_body();
  return read ? Progress::pending : failed(read.error());
}

Status StateCopy::read_head() {
  Session& s = *session_;
  const auto head = decode_copy_head(s.head_bytes);
  if (!head) return head.error();
  s.head = head.value();
  if (s.head.token != s.token) return wrong("answers another request");
  const std::size_t most = s.head.part == CopyPart::image    ? copy_piece_bytes
                           : s.head.part == CopyPart::rounds ? rounds_bytes_max(parts_.sum)
                                                             : 0;
  if (s.head.bytes > most)
    return wrong("announces " + std::to_string(s.head.bytes) + " bytes, at most " + std::to_string(most) +
                 " are allowed");
  s.body.resize(s.head.bytes);
  if (s.body.empty()) return read_body();
  s.pending = {s.transport->receive(s.rank, sync::Lane::state, s.body)};
  s.stage = Session::Stage::body;
  return ok();
}

Status StateCopy::read_body() {
  Session& s = *session_;
  if (rivulet::digest_of(s.body).low != s.head.sum)
    return wrong("has sent bytes that were damaged in transit");
  Status taken = s.head.part == CopyPart::image    ? add_to_image()
                 : s.head.part == CopyPart::rounds ? apply_rounds()
                                                   : end();
  if (!taken) return taken;
  answer();
  if (s.head.part == CopyPart::end)
    s.stage = Session::Stage::ended;
  else
    s.expect_head();
  return ok();
}

void StateCopy::answer() {
  Session& s = *session_;
  s.answering.push_back(s.transport->send_ahead(s.rank, sync::Lane::confirmed, s.answer));
}

Status StateCopy::add_to_image() {
  Session& s = *session_;
  const std::size_t most = state_image_max(parts_.layout);
  if (s.state || s.head.total == 0 || s.head.total > most)
    return wrong("announces a state of " + std::to_string(s.head.total) + " bytes, at most " +
                 std::to_string(most) + " are allowed");
  if (s.image.empty()) s.image.resize(s.head.total);
  const bool follows = s.head.total == s.image.size() && s.head.first == s.received &&
                       s.head.bytes <= s.image.size() - s.received && !s.body.empty();
  if (!follows) return wrong("has sent a piece of the state that does not follow the last one");
  std::ranges::copy(s.body, s.image.begin() + static_cast<std::ptrdiff_t>(s.received));
  s.received += s.body.size();
  if (s.received < s.image.size()) return ok();
  auto decoded = decode_state(s.image, {parts_.owner, parts_.layout, parts_.device});
  if (!decoded) return wrong("has sent a state that cannot be used: " + decoded.error().message);
  if (auto whole = check_digest(decoded.value(), parts_.device); !whole) return whole;
  s.state = std::move(decoded).value().state;
  s.image = {};
  return ok();
}

Status StateCopy::apply_rounds() {
  Session& s = *session_;
  sync::FieldReader bytes(s.body);
  while (!bytes.empty()) {
    if (!s.state) return wrong("has sent rounds before the state");
    const auto round = read_round(bytes, parts_.sum);
    if (!round) return round.error();
    if (auto made = apply_round(*s.state, round.value(), parts_.sum, parts_.optimizer, parts_.device); !made)
      return made;
  }
  return ok();
}

Status StateCopy::end() {
  const Session& s = *session_;
  const Stamp stamp{s.head.first, s.head.total};
  if (!s.state || s.state->stamp != stamp)
    return wrong("ends with state " + text_of(stamp) + ", the copy is " +
                 (s.state ? text_of(s.state->stamp) : std::string("not complete")));
  return ok();
}

/// Counts also if the view has ended too early: while a group changes faster than states are copied, devices
/// must be able to join, too.
Progress StateCopy::failed(const Error& error) {
  parts_.log.write(Level::warn, "the state of the group could not be copied",
                   {{"from", session_->donor}, {"why", error.message}});
  session_.reset();
  parts_.membership.copy_failed();
  return Progress::failed;
}

}  // namespace rivulet::runtime
