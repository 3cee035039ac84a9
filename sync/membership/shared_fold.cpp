#include "sync/membership/shared_fold.h"

namespace rivulet::sync::membership {
namespace {

constexpr std::size_t entries_per_read = 256;
constexpr std::size_t reads_per_poll = 16;

const std::string* author_of(const ControlRecord& record) {
  return std::visit(
      [](const auto& r) -> const std::string* {
        if constexpr (requires { r.device; }) return &r.device;
        return nullptr;
      },
      record);
}

}  // namespace

SharedFold::Reader::Reader(SharedFold& fold, std::string device) : fold_(fold), device_(std::move(device)) {
  const auto lock = fold_.guard();
  fold_.readers_.emplace(device_, this);
}

SharedFold::Reader::~Reader() {
  const auto lock = fold_.guard();
  std::erase_if(fold_.readers_, [this](const auto& entry) { return entry.second == this; });
}

Status SharedFold::Reader::read() {
  return fold_.read();
}

std::vector<SharedFold::Announced> SharedFold::Reader::take_own() {
  const auto lock = fold_.guard();
  return std::exchange(own_, {});
}

Status SharedFold::read() {
  for (std::size_t i = 0; i < reads_per_poll; ++i) {
    const auto entries = log_.poll(entries_per_read);
    if (!entries) return entries.error();
    if (entries.value().empty()) break;
    for (const auto& entry : entries.value()) take(entry);
  }
  return ok();
}

const NextView& SharedFold::next_view(bool only_live, const GroupSizes& sizes) {
  Known& known = only_live ? live_ : ready_;
  if (known.next_offset != fold().next_offset || known.sizes != sizes)
    known = {fold().next_offset, sizes, membership::next_view(fold(), only_live, sizes)};
  return known.view;
}

bool SharedFold::view_valid() {
  if (next_offsets_.first != fold().next_offset)
    next_offsets_ = {fold().next_offset, view_intact(fold()) && !view_left(fold())};
  return next_offsets_.second;
}

void SharedFold::take(const LogEntry& entry) {
  const auto lock = guard();
  const auto record = reader_.take(entry);
  const std::string* author = record ? author_of(*record) : nullptr;
  if (author == nullptr) return;
  const auto [first, last] = readers_.equal_range(*author);
  for (auto it = first; it != last; ++it) it->second->own_.emplace_back(entry.offset, *record);
}

}  // namespace rivulet::sync::membership
