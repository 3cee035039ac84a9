#include "tests/support/sim_disk.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace rivulet::testing {

void SimDisk::NameChange::apply(Names& names) const {
  if (!from.empty()) names.erase(from);
  if (!to.empty()) names[to] = inode;
}

bool SimDisk::refuses() const {
  if (!power_.take_on_disk()) {
    errno = EIO;
    return true;
  }
  if (failing_.calls == 0) return false;
  --failing_.calls;
  errno = failing_.with;
  faults_.count(errno == ENOSPC ? SimFault::disk_full : SimFault::disk_failed);
  return true;
}

void SimDisk::change_name(const NameChange& change) const {
  change.apply(names_);
  changes_.push_back(change);
}

void SimDisk::lose_power(Rng& rng) {
  lose_names(rng);
  for (Inode& inode : inodes_) {
    if (inode.dirty) lose_bytes(inode, rng);
    inode.bytes = inode.synced;
    inode.dirty = false;
  }
  names_ = synced_names_;
  open_.clear();
}

void SimDisk::lose_names(Rng& rng) {
  bool lost = false;
  for (const NameChange& change : changes_) {
    if (rng.below(2) == 0) {
      change.apply(synced_names_);
      if (lost) faults_.count(SimFault::names_apart);
    } else {
      lost = true;
      faults_.count(SimFault::name_lost);
    }
  }
  changes_.clear();
}

void SimDisk::lose_bytes(Inode& inode, Rng& rng) {
  const auto all = inode.bytes.size();
  switch (rng.below(4)) {
    case 0: inode.synced = inode.bytes; break;
    case 1:
      if (inode.synced != inode.bytes) faults_.count(SimFault::bytes_lost);
      break;
    case 2: {
      const auto kept = rng.below(all + 1);
      inode.synced.assign(inode.bytes.begin(), inode.bytes.begin() + static_cast<std::ptrdiff_t>(kept));
      if (kept < all) faults_.count(SimFault::bytes_torn);
      break;
    }
    default:
      inode.synced.assign(all, std::byte{0});  // its length, without its bytes
      if (all > 0) faults_.count(SimFault::bytes_blank);
      break;
  }
}

void SimDisk::rot(Rng& rng) {
  std::size_t newest = 0;
  bool any = false;
  for (const auto& entry : names_) {
    newest = std::max(newest, entry.second);
    any = true;
  }
  if (!any || inodes_[newest].bytes.empty()) return;
  Inode& inode = inodes_[newest];
  const std::size_t bit = rng.below(inode.bytes.size() * 8);
  inode.bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  inode.synced = inode.bytes;
  inode.whole = false;
  faults_.count(SimFault::bit_rotten);
}

void SimDisk::wipe() {
  if (!names_.empty()) faults_.count(SimFault::disk_wiped);
  names_.clear();
  synced_names_.clear();
  changes_.clear();
  open_.clear();
  inodes_.clear();
}

bool SimDisk::is_durable(const std::string& path) const {
  const auto now = names_.find(path);
  const auto later = synced_names_.find(path);
  return now != names_.end() && later != synced_names_.end() && now->second == later->second &&
         !inodes_[now->second].dirty;
}

std::vector<std::string> SimDisk::whole_files_in(const std::string& folder) const {
  std::vector<std::string> files = files_in(folder);
  std::erase_if(files, [this](const std::string& path) { return !inodes_[names_.at(path)].whole; });
  return files;
}

int SimDisk::open(const std::string& path, int flags) const {
  const auto at = names_.find(path);
  if ((flags & O_DIRECTORY) != 0) {
    open_[next_fd_] = {};
    return next_fd_++;
  }
  const bool writes = (flags & O_WRONLY) != 0;
  if (writes && refuses()) return -1;
  if (!writes && unreadable_) {
    faults_.count(SimFault::disk_unreadable);
    errno = EIO;
    return -1;
  }
  if (at == names_.end() && !writes) {
    errno = ENOENT;
    return -1;
  }
  std::size_t inode = inodes_.size();
  if (at == names_.end()) {
    inodes_.emplace_back();
    change_name({"", path, inode});
  } else {
    inode = at->second;
  }
  if ((flags & O_TRUNC) != 0) inodes_[inode] = {{}, inodes_[inode].synced, true, false};
  open_[next_fd_] = {inode, 0};
  return next_fd_++;
}

void SimDisk::close(int fd) const {
  open_.erase(fd);
}

std::optional<std::uint64_t> SimDisk::size(int fd) const {
  const auto& inode = open_.at(fd).inode;
  if (!inode) return std::nullopt;
  return inodes_[*inode].bytes.size();
}

ssize_t SimDisk::read(int fd, std::span<std::byte> bytes) const {
  Descriptor& file = open_.at(fd);
  const Bytes& all = inodes_[file.inode.value()].bytes;
  const std::size_t n = std::min(bytes.size(), all.size() - file.at);
  std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(file.at), n, bytes.begin());
  file.at += n;
  return static_cast<ssize_t>(n);
}

ssize_t SimDisk::write(int fd, std::span<const std::byte> bytes) const {
  Inode& inode = inodes_[open_.at(fd).inode.value()];
  inode.dirty = true;
  inode.whole = false;
  if (refuses()) return -1;
  // In two parts, so that a fault can occur between them.
  const auto part = inode.bytes.empty() ? bytes.first((bytes.size() + 1) / 2) : bytes;
  inode.bytes.insert(inode.bytes.end(), part.begin(), part.end());
  return static_cast<ssize_t>(part.size());
}

int SimDisk::sync(int fd) const {
  if (refuses()) return -1;
  if (const auto& file = open_.at(fd).inode) {
    Inode& inode = inodes_[*file];
    inode.synced = inode.bytes;
    inode.dirty = false;
    inode.whole = true;
    return 0;
  }
  for (const NameChange& change : changes_) change.apply(synced_names_);
  changes_.clear();
  return 0;
}

int SimDisk::rename(const std::string& from, const std::string& to) const {
  if (refuses()) return -1;
  change_name({from, to, names_.at(from)});
  return 0;
}

int SimDisk::remove(const std::string& path) const {
  const auto at = names_.find(path);
  if (at == names_.end()) {
    errno = ENOENT;
    return -1;
  }
  if (!power_.take_on_disk()) return -1;
  change_name({path, "", at->second});
  return 0;
}

int SimDisk::make_folders(const std::string&) const {
  return refuses() ? -1 : 0;
}

std::vector<std::string> SimDisk::files_in(const std::string& folder) const {
  std::vector<std::string> files;
  for (const auto& entry : names_)
    if (entry.first.starts_with(folder + "/") &&
        entry.first.find('/', folder.size() + 1) == std::string::npos)
      files.push_back(entry.first);
  return files;
}

}  // namespace rivulet::testing
