#include "runtime/node_status.h"

#include <utility>

namespace rivulet::runtime {

std::string_view name_of(NodeState state) noexcept {
  switch (state) {
    case NodeState::starting: return "starting";
    case NodeState::forming: return "forming";
    case NodeState::connecting: return "connecting";
    case NodeState::training: return "training";
    case NodeState::waiting: return "waiting";
    case NodeState::idle: return "idle";
    case NodeState::stopping: return "stopping";
    case NodeState::failed: return "failed";
  }
  return "unknown";
}

void NodeStatus::say(std::string text) {
  const std::lock_guard lock(mutex_);
  phrase_ = std::move(text);
}

std::string NodeStatus::phrase() const {
  const std::lock_guard lock(mutex_);
  return phrase_;
}

void NodeStatus::set_digest(std::string hex) {
  const std::lock_guard lock(mutex_);
  digest_ = std::move(hex);
}

void NodeStatus::set_books(Books books) {
  const std::lock_guard lock(mutex_);
  books_ = std::move(books);
}

NodeStatus::Books NodeStatus::books() const {
  const std::lock_guard lock(mutex_);
  return books_;
}

std::string NodeStatus::digest() const {
  const std::lock_guard lock(mutex_);
  return digest_;
}

void NodeStatus::set_partitions(std::vector<PartitionStatus> partitions) {
  const std::lock_guard lock(mutex_);
  partitions_ = std::move(partitions);
}

std::vector<PartitionStatus> NodeStatus::partitions() const {
  const std::lock_guard lock(mutex_);
  return partitions_;
}

}  // namespace rivulet::runtime
