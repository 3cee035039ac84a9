#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/rng.h"
#include "runtime/process/whole_file.h"
#include "tests/support/sim_faults.h"
#include "tests/support/sim_power.h"

namespace rivulet::testing {

/// A disk in memory with a page cache: written data is visible to all readers, synced data survives a power
/// loss. Bytes and name of a file are synced separately; without a sync they may reach the disk in any order
/// or in part. Owner: the simulation's thread.
class SimDisk final : public runtime::FileOperations {
 public:
  explicit SimDisk(SimPower& power) : power_(power) {}

  // faults
  void lose_power(Rng& rng);  ///< each unsynced part is kept, torn or lost
  void fail_calls(int calls, int with) {
    failing_ = {calls, with};
  }  ///< the next calls that write, sync or rename
  void make_unreadable(bool so) { unreadable_ = so; }  ///< EIO for readers
  void rot(Rng& rng);                                  ///< flips a bit of the newest file
  void wipe();                                         ///< replaces the disk by an empty one

  /// True if the file would survive a power loss as it is now.
  [[nodiscard]] bool is_durable(const std::string& path) const;
  /// Files of a folder with exactly the last synced contents.
  [[nodiscard]] std::vector<std::string> whole_files_in(const std::string& folder) const;
  /// Open descriptors.
  [[nodiscard]] std::size_t descriptors() const noexcept { return open_.size(); }
  void close_all() const { open_.clear(); }  ///< as the system does when a process ends
  /// Faults of calls, files and names.
  [[nodiscard]] const SimFaultCounts& faults() const noexcept { return faults_; }

  int open(const std::string& path, int flags) const override;
  void close(int fd) const override;
  std::optional<std::uint64_t> size(int fd) const override;
  ssize_t read(int fd, std::span<std::byte> bytes) const override;
  ssize_t write(int fd, std::span<const std::byte> bytes) const override;
  int sync(int fd) const override;
  int rename(const std::string& from, const std::string& to) const override;
  int remove(const std::string& path) const override;
  int make_folders(const std::string& path) const override;
  std::vector<std::string> files_in(const std::string& folder) const override;

 private:
  using Bytes = std::vector<std::byte>;
  struct Inode {
    Bytes bytes;   ///< in the cache
    Bytes synced;  ///< on the disk
    bool dirty = false;
    bool whole = false;  ///< as synced, without rot
  };
  using Names = std::map<std::string, std::size_t>;  ///< -> inode
  struct NameChange {
    std::string from;  ///< removed; may be empty
    std::string to;    ///< added; may be empty
    std::size_t inode = 0;
    void apply(Names& names) const;
  };
  struct Descriptor {
    std::optional<std::size_t> inode;  ///< nullopt: a folder
    std::size_t at = 0;
  };
  /// True if calls have no effect: no power, or a failing disk.
  bool refuses() const;
  void change_name(const NameChange& change) const;
  void lose_names(Rng& rng);
  void lose_bytes(Inode& inode, Rng& rng);

  SimPower& power_;
  struct Failing {
    int calls = 0;
    int with = 0;
  };
  // The product sees FileOperations as stateless.
  mutable Failing failing_;
  bool unreadable_ = false;
  mutable std::deque<Inode> inodes_;
  mutable Names names_;                      ///< in the cache
  mutable Names synced_names_;               ///< on the disk
  mutable std::vector<NameChange> changes_;  ///< of names since the last sync of the folder
  mutable std::map<int, Descriptor> open_;
  mutable int next_fd_ = 3;
  mutable SimFaultCounts faults_;
};

}  // namespace rivulet::testing
