#include "sync/transport/gloo/rendezvous.h"

#include <charconv>

namespace rivulet::sync::gloo_door {
namespace {

std::string key_prefix(const std::string& key) {
  const auto last = key.find_last_not_of("0123456789");
  return last == std::string::npos ? std::string() : key.substr(0, last + 1);
}

std::uint32_t rank_of(const std::string& key) {
  const std::string digits = key.substr(key_prefix(key).size());
  std::uint32_t rank = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return rank;
}

}  // namespace

Rendezvous::Rendezvous(const ConnectRequest& request, PeerDoor& door, Links& links)
    : request_(request), door_(door), links_(links), addresses_(request.view.world()) {}

std::string Rendezvous::name_of(std::uint32_t rank) const {
  return rank_name(request_.view, rank);
}

void Rendezvous::publish(const std::string& key, const Blob& value) {
  if (!complete(value, request_.view.world()))
    links_.give_up(
        {{ErrorCode::protocol, "this LibTorch's Gloo publishes addresses of an unknown layout"}, -1});
  // Replaces Gloo's sequential numbers, which peers send, by random ones that cannot be guessed.
  mine_ = {with_numbers(made_anew(value, request_.view.world()), request_.view.world(),
                        [this](std::int64_t own) { return door_.announce(own); }),
           request_.advertise};
  const Blob sealed = seal(mine_.blob, request_.advertise);
  auto set = request_.book->set(request_.view.token, key, std::as_bytes(std::span(sealed)));
  if (!set) links_.give_up({set.error(), -1});
}

bool Rendezvous::has(const std::string& key) {
  bool found = false;
  static_cast<void>(request_.book->get(request_.view.token, key, found));
  return found;
}

Blob Rendezvous::wait_for_key(const std::string& key) {
  while (true) {
    bool found = false;
    const auto bytes = request_.book->get(request_.view.token, key, found);
    if (!found) {
      links_.step([&] { return missing_keys(key); });
      continue;
    }
    links_.progress();
    Blob value(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) value[i] = static_cast<std::uint8_t>(bytes[i]);
    return value;
  }
}

Blob Rendezvous::look_up(const std::string& key) {
  const std::uint32_t rank = rank_of(key);
  const auto theirs = unseal(wait_for_key(key));
  if (!theirs || rank >= addresses_.size() || !complete(theirs->blob, request_.view.world()))
    links_.give_up({{ErrorCode::protocol, name_of(rank) + " published an unreadable address"}, -1});
  auto blob = blob_for(request_.view.rank, mine_, rank, *theirs);
  if (!blob) links_.give_up({blob.error(), static_cast<int>(rank)});
  addresses_[rank] = address_in(blob.value());
  return std::move(blob).value();
}

/// Names all ranks without an address.
ConnectFailure Rendezvous::missing_keys(const std::string& key) {
  std::string missing;
  int first = -1;
  for (std::uint32_t rank = 0; rank < request_.view.world(); ++rank) {
    if (has(key_prefix(key) + std::to_string(rank))) continue;
    if (first < 0) first = static_cast<int>(rank);
    missing += (missing.empty() ? "" : ", ") + name_of(rank);
  }
  return {{ErrorCode::timed_out, "no address within " +
                                     std::to_string(to_seconds(request_.deadline)).substr(0, 4) + " s from " +
                                     missing},
          first};
}

ConnectFailure Rendezvous::explain(const std::string& message) const {
  for (std::uint32_t rank = 0; rank < addresses_.size(); ++rank) {
    if (!addresses_[rank] || rank == request_.view.rank) continue;
    for (const std::string& text : printed(*addresses_[rank])) {
      if (message.find(text) == std::string::npos) continue;
      return {{ErrorCode::peer_lost, name_of(rank) + " cannot be reached: " + message},
              static_cast<int>(rank)};
    }
  }
  return {{ErrorCode::peer_lost, "the group cannot be connected: " + message}, -1};
}

}  // namespace rivulet::sync::gloo_door
