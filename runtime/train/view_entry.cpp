#include "runtime/train/view_entry.h"

#include <algorithm>

namespace rivulet::runtime {
namespace {

constexpr Duration forming_step = std::chrono::milliseconds(20);
constexpr Duration forming_pause_first = std::chrono::milliseconds(100);
constexpr Duration forming_pause_last = std::chrono::seconds(2);
constexpr Duration connecting_step = std::chrono::milliseconds(2);
constexpr Duration report_again_after = std::chrono::seconds(30);
// The slowest link that must transfer a state: half of 100 kbit/s. The transport detects silent peers
// earlier.
constexpr double slowest_bytes_per_s = 0.05e6 / 8;

}  // namespace

std::string listed(const std::vector<std::string>& words) {
  constexpr std::size_t named_max = 64;
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), named_max); ++i) text += (i == 0 ? "" : ", ") + words[i];
  if (words.size() > named_max) text += " and " + std::to_string(words.size() - named_max) + " more";
  return text;
}

sync::membership::Departure departure_after(const Error& error, const sync::ViewSpec& spec) {
  sync::membership::Departure departure;
  const bool wrong = error.code == ErrorCode::protocol || error.code == ErrorCode::diverged;
  auto& ids = wrong ? departure.accused : departure.lost;
  for (const std::uint32_t rank : error.blamed)
    if (rank < spec.world() && rank != spec.rank) ids.push_back(spec.members[rank]);
  std::ranges::sort(ids);
  return departure;
}

ViewEntry::Outcome ViewEntry::step(bool was_in_group) {
  switch (stage_) {
    case Stage::forming: return form(was_in_group);
    case Stage::connecting: return connect();
    case Stage::adopting: break;
  }
  return adopt();
}

void ViewEntry::restart(const std::string& why, const sync::membership::Departure& members) {
  drop_view();
  parts_.membership.leave_view(why, members);
}

ViewEntry::Outcome ViewEntry::form(bool was_in_group) {
  const TimePoint now = parts_.clock.now();
  if (now < form_again_at_) return later(forming_step);
  auto polled = parts_.membership.poll(now);
  parts_.metrics.count_ignored(parts_.membership.fold().ignored);
  if (!polled) {
    // A broker that was reachable before will return; without it no view can form.
    const bool was_there = was_in_group && polled.error().code == ErrorCode::unavailable;
    if (was_there || polled.error().code == ErrorCode::source_lost) return later(forming_step);
    return ends(polled.error());
  }
  if (!polled.value()) {
    if (auto copied = copy_state(); !copied) return ends(copied.error());
    report_waiting(now);
    return later(forming_step);
  }
  if (parts_.copy != nullptr) parts_.copy->drop();
  view_ = std::make_unique<View>();
  view_->spec = *polled.value();
  auto transport = parts_.connect(view_->spec, parts_.membership, parts_.wake);
  if (!transport) {
    // An address may be missing for a while: a tunnel is down, or a network comes up late.
    const bool may_come = was_in_group || transport.error().code == ErrorCode::unavailable;
    if (!may_come) return ends(transport.error());
    return not_connected({ErrorCode::unavailable, transport.error().message});
  }
  view_->transport = std::move(transport).value();
  parts_.status.state.store(NodeState::connecting);
  parts_.status.set_phrase("connecting to " + listed(view_->spec.members));
  stage_ = Stage::connecting;
  return again();
}

/// While the group trains without this device, copies its state. The next READY announces it.
Status ViewEntry::copy_state() {
  if (parts_.copy == nullptr) return ok();
  const Progress progress = parts_.copy->step();
  if (progress == Progress::failed) parts_.metrics.states_failed.add(1);
  if (progress != Progress::done) return ok();
  AgreedState state = parts_.copy->take();
  parts_.log.write(Level::info, "the state of the group was copied",
                   {{"had", text_of(parts_.state->stamp)}, {"has", text_of(state.stamp)}});
  return start_at(std::move(state));
}

void ViewEntry::report_waiting(TimePoint now) {
  auto missing = parts_.membership.waiting_for();
  const std::string copying = parts_.copy != nullptr ? parts_.copy->phrase() : "";
  if (!copying.empty()) missing = {"the end of a round, " + copying};
  const bool paused = parts_.membership.below_min();
  const NodeState state = paused                             ? NodeState::paused
                          : parts_.membership.cooling_down() ? NodeState::cooling_down
                          : parts_.membership.joining()      ? NodeState::joining
                                                             : NodeState::forming;
  // The pause may be long, and this may be the only copy of the last steps.
  if (paused && parts_.state->stamp.step > 0)
    parts_.checkpoints.save(*parts_.state, parts_.rows.partitions());
  parts_.status.state.store(state);
  const std::string phrase =
      std::string(name_of(state)) +
      (missing.empty() ? ": confirming membership" : ": waiting for " + listed(missing));
  if (phrase != parts_.status.phrase() || now >= report_again_at_) {
    parts_.log.write(Level::info, phrase);
    report_again_at_ = now + report_again_after;
  }
  parts_.status.set_phrase(phrase);
}

ViewEntry::Outcome ViewEntry::connect() {
  switch (view_->transport->connected()) {
    case Progress::pending: return later(connecting_step);
    case Progress::failed: return not_connected(sync::error_of(*view_->transport));
    case Progress::done: break;
  }
  view_->exchange =
      std::make_unique<sync::StateExchange>(*view_->transport, view_->spec, state_image_max(parts_.layout),
                                            parts_.clock.now() + adoption_patience());
  auto& exchange = *view_->exchange;
  if (exchange.gives()) {
    auto digest = digest_of(*parts_.state, parts_.device);
    if (!digest) return ends(digest.error());
    exchange.give(encode_state(parts_.owner, *parts_.state, digest.value()));
  }
  if (exchange.has_state()) {
    confirm();
  } else {
    exchange.take();
    parts_.status.set_phrase("adopting the state of the group, " + text_of(view_->spec.target));
  }
  stage_ = Stage::adopting;
  return again();
}

/// Maximum time for a state to reach all devices that lack it, over the slowest link.
Duration ViewEntry::adoption_patience() const {
  const std::size_t bytes = state_array_bytes(parts_.layout) + 65'536;
  const std::size_t lacking = view_->spec.world() - view_->spec.holders.size();
  return parts_.peer_deadline + from_seconds(static_cast<double>(bytes * lacking) / slowest_bytes_per_s);
}

void ViewEntry::confirm() {
  view_->exchange->confirm();
  view_->settling = true;
}

ViewEntry::Outcome ViewEntry::adopt() {
  switch (view_->exchange->poll(parts_.clock.now())) {
    case Progress::pending: return later(connecting_step);
    case Progress::failed: return not_adopted(view_->exchange->error());
    case Progress::done: break;
  }
  if (view_->settling) {
    view_->exchange.reset();  // frees its image, too
    forming_pause_ = Duration(0);
    stage_ = Stage::forming;
    return {.turn = {.work = 1}, .entered = std::move(view_)};
  }
  if (auto replaced = replace_state(view_->exchange->taken()); !replaced)
    return not_adopted(replaced.error());
  confirm();
  return again();
}

/// Replaces the state by the view's target and moves the rows to its next offsets.
Status ViewEntry::replace_state(std::span<const std::byte> image) {
  auto decoded = decode_state(image, {parts_.owner, parts_.layout, parts_.device});
  // This includes images of another job: the sender violates the protocol, but this device must not stop.
  if (!decoded)
    return Error{ErrorCode::protocol, "the received state cannot be used: " + decoded.error().message};
  AgreedState target = std::move(decoded).value().state;
  const auto digest = digest_of(target, parts_.device);
  if (!digest) return digest.error();
  if (target.stamp != view_->spec.target || digest.value().hex() != view_->spec.digest)
    return Error{ErrorCode::protocol, "the received state is " + text_of(target.stamp) + " with digest " +
                                          digest.value().hex() + ", the view starts from " +
                                          text_of(view_->spec.target) + " with " + view_->spec.digest};
  parts_.log.write(Level::info, "state adopted",
                   {{"had", text_of(parts_.state->stamp)}, {"has", text_of(target.stamp)}});
  return start_at(std::move(target));
}

Status ViewEntry::start_at(AgreedState target) {
  // The next state may lack a partition, because no state that used it was kept. Its rows are then read again
  // from where the group first began, not from the next offset of the abandoned state.
  parts_.rows.leave(*parts_.state);
  const Stamp before = parts_.state->stamp;
  const std::uint64_t rows_before = parts_.state->rows;
  parts_.state.replace(std::move(target));
  parts_.checkpoints.forget_saved();
  parts_.model.adopt(*parts_.state, before, rows_before, parts_.residual.left());
  parts_.rows.start_at(*parts_.state);
  return announce_state();  // for the next READY, even if this view fails
}

Status ViewEntry::announce_state() {
  const auto digest = digest_of(*parts_.state, parts_.device);
  if (!digest) return digest.error();
  parts_.membership.announce_state(parts_.state->stamp, digest.value().hex(), parts_.state->rows);
  return ok();
}

ViewEntry::Outcome ViewEntry::not_adopted(Error error) {  // by value: the view owns the original
  parts_.metrics.states_failed.add(1);
  return not_connected(std::move(error));
}

/// Forms the next view after a view that does not connect. Waits longer each time, since every view costs a
/// few records in the control topic. Fails immediately if the addresses can never reach each other.
ViewEntry::Outcome ViewEntry::not_connected(Error error) {  // by value: the view owns the original
  auto members = departure_after(error, view_->spec);
  if (stage_ == Stage::connecting) members.unreached = members.lost;
  drop_view();
  if (error.code == ErrorCode::invalid_config) return ends(std::move(error));
  parts_.log.write(Level::warn, "the devices of the view could not be connected; forming the next view",
                   {{"error", error.message}});
  ++parts_.status.view_changes[ViewEnd::not_connected];
  parts_.membership.leave_view(error.message, members);
  form_again_at_ = parts_.clock.now() + forming_pause_;
  forming_pause_ = std::clamp(2 * forming_pause_, forming_pause_first, forming_pause_last);
  return again();
}

}  // namespace rivulet::runtime
