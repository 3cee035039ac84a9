#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "runtime/checkpoint/checkpoint_notes.h"
#include "runtime/checkpoint/private_part.h"
#include "runtime/process/whole_file.h"
#include "runtime/state/state_image.h"

namespace rivulet::runtime {

/// Where a device with this data directory keeps them.
inline std::string checkpoints_in(const std::string& data_dir) {
  return data_dir + "/checkpoints";
}

/// The first PREFIX-N in `folder` that neither a file nor a folder with files is.
std::string free_folder(const std::string& folder, const std::string& prefix, const FileOperations& files);

/// A file that claims to be a checkpoint.
struct CheckpointEntry {
  std::string path;
  Stamp stamp;
  Digest digest;
  std::uint64_t bytes = 0;
  std::string job;  ///< whose state it is; empty: not legible
};

/// One that is not what was written any more.
struct DamagedCheckpoint {
  std::string path;
  Stamp stamp;                        ///< by its name
  std::optional<std::uint64_t> rows;  ///< row clock, if that is still whole in it
};

/// The checkpoints of one device: images of agreed states in one folder, named by stamp. Any single one
/// restarts the whole group. Owner: the checkpoint thread, and main before it starts.
class CheckpointFolder {
 public:
  static constexpr std::size_t uncommitted_max = 16;
  /// `files` outlives the folder.
  explicit CheckpointFolder(std::string path, const FileOperations& files = system_files())
      : path_(std::move(path)), files_(&files) {}

  /// Removes what a killed process left half written, and private parts of states that are not there.
  void sweep();
  /// Newest first. Files whose head cannot be read are left out and described in `complaints`.
  [[nodiscard]] std::vector<CheckpointEntry> list(std::vector<std::string>& complaints) const;
  struct Found : DecodedState {
    std::string path;
    std::optional<DamagedCheckpoint> damaged;  ///< the newest of those that are newer than this one
  };
  /// The newest that is whole and of this job and model; its numbers must have the digest that it claims.
  /// Those that are not are described in `complaints` and passed over.
  [[nodiscard]] std::optional<Found> newest(const Expected& expected,
                                            std::vector<std::string>& complaints) const;

  /// Why the newest that is whole is not of `expected` (another job, model, topics, meaning or version):
  /// names the file and both. Where newest() found nothing. Reads every file.
  [[nodiscard]] std::optional<std::string> misfit(const Expected& expected) const;

  struct GoneBack {
    std::vector<std::string> aside;  ///< files that were newer, oldest first; where they are now
    std::string folder;              ///< newer-N, in which they are; empty: there were none
  };
  /// For a device that is not running: `to` becomes the newest. What is newer, damaged or not, moves to
  /// newer-N, and a note records that the device may resume from there (told_to_go_back()). Interrupted at
  /// any point, the newest is still where it was, or all is done. Errors: io (names what could not be moved).
  Result<GoneBack> go_back(const Stamp& to);
  /// The state that a note names, until forget_going_back().
  [[nodiscard]] std::optional<Stamp> told_to_go_back() const;
  void forget_going_back();
  struct Written {
    std::string hash;  ///< the SHA-256 at its end, as text
    std::size_t bytes = 0;
  };
  /// On the disk when it returns, or not acknowledged. Errors: those of write_whole_file().
  Result<Written> write(const StateOwner& owner, const AgreedState& state, const Digest& digest);
  /// Beside the image of the state with its stamp, and gone with it. Errors: those of write_whole_file().
  Status write_private(const PrivatePart& part);
  /// One that an earlier life of this device may have left beside a state of the same stamp.
  void remove_private(const Stamp& stamp);
  /// None: there is none, or it cannot be used, which is described in `complaints`.
  [[nodiscard]] std::optional<PrivatePart> private_part(const Stamp& stamp,
                                                        const devices::ModelLayout& layout,
                                                        std::vector<std::string>& complaints) const;
  /// Beside the image of the state with this stamp; those of files that are gone go. Errors: those of
  /// write_whole_file().
  Status write_note(const Stamp& stamp, const CheckpointNote& note);
  /// Of the files that are there. One that cannot be read has none.
  [[nodiscard]] CheckpointNotes notes() const;
  /// Deletes what is older than both the `keep` newest and the newest that is not newer than `committed`, but
  /// for the best by their notes, which stays. Of
  /// those that wait to be committed, too, the newest `uncommitted_max` are enough: the group remembers fewer
  /// (saved_max in sync/membership/fold.h), and a peer whose disk is full for ever must not fill this one.
  /// What is not known to be of `job` stays, and counts for nothing.
  /// `wanted`: what the group may go back to, which stays.
  void prune(std::size_t keep, const Stamp& committed, std::string_view job,
             std::span<const Stamp> wanted = {});
  /// The file of a state as it lies there. Errors: io, unavailable (it is not there).
  [[nodiscard]] Result<std::vector<std::byte>> read(const Stamp& stamp, std::size_t bytes_max) const {
    return read_whole_file(path_of(stamp, ".ckpt"), bytes_max, *files_);
  }
  /// A checkpoint that lies here and is known to be of another job than `job`.
  [[nodiscard]] std::optional<CheckpointEntry> foreign(std::string_view job) const;
  struct Pruned {
    std::vector<CheckpointEntry> kept;     ///< newest first
    std::vector<CheckpointEntry> removed;  ///< same
  };
  /// For a device that is not running: reads every file and deletes the usable ones but the `keep` newest
  /// (at least one) and the best by their notes. What cannot be used or deleted stays and is described in
  /// `complaints`: it may be of another model or a newer program.
  [[nodiscard]] Pruned prune_checked(std::size_t keep, const Expected& expected,
                                     std::vector<std::string>& complaints) const;

 private:
  [[nodiscard]] std::string path_of(const Stamp& stamp, const char* suffix) const {
    return path_ + "/" + text_of(stamp) + suffix;
  }
  int remove(const CheckpointEntry& entry) const;
  [[nodiscard]] std::string note() const { return path_ + "/goes-back"; }
  [[nodiscard]] std::string notes_file() const { return path_ + "/notes"; }
  [[nodiscard]] std::vector<std::pair<Stamp, std::string>> newer_than(const Stamp& stamp) const;
  [[nodiscard]] std::optional<DamagedCheckpoint> newest_damaged(const Stamp& above,
                                                                const Expected& expected) const;

  std::string path_;
  const FileOperations* files_;
};

}  // namespace rivulet::runtime
