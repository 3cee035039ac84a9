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

/// The checkpoint folder below a device's data directory.
inline std::string checkpoints_in(const std::string& data_dir) {
  return data_dir + "/checkpoints";
}

/// Returns the first PREFIX-N in `folder` that is neither a file nor a folder with files.
std::string free_folder(const std::string& folder, const std::string& prefix, const FileOperations& files);

/// A checkpoint file as described by its head.
struct CheckpointEntry {
  std::string path;
  Stamp stamp;
  Digest digest;
  std::uint64_t bytes = 0;
  std::string job;  ///< job that owns the state; empty if unreadable
};

/// A checkpoint whose content changed after it was written.
struct DamagedCheckpoint {
  std::string path;
  Stamp stamp;                        ///< stamp in the file name
  std::optional<std::uint64_t> rows;  ///< row clock, if its section is intact
};

/// The checkpoints of one device: images of agreed states in one folder, named by stamp. One of them is
/// enough to restart the whole group. Owner: the checkpoint thread; before it starts, the main thread.
class CheckpointFolder {
 public:
  static constexpr std::size_t uncommitted_max = 16;
  /// `files` must outlive this object.
  explicit CheckpointFolder(std::string path, const FileOperations& files = system_files())
      : path_(std::move(path)), files_(&files) {}

  /// Removes incomplete files of a killed process, and private parts without a state.
  void sweep();
  /// Lists the checkpoints, newest first. Omits files with an unreadable head and reports them in `problems`.
  [[nodiscard]] std::vector<CheckpointEntry> list(std::vector<std::string>& problems) const;
  struct Found : DecodedState {
    std::string path;
    std::optional<DamagedCheckpoint> damaged;  ///< newest damaged file above this stamp
  };
  /// Returns the newest checkpoint that is intact, belongs to this job and model, and matches its digest.
  /// Skips all others and reports them in `problems`.
  [[nodiscard]] std::optional<Found> newest(const Expected& expected,
                                            std::vector<std::string>& problems) const;

  /// Explains why the newest intact file does not match `expected` (job, model, topics, meaning or version).
  /// Names the file and both values. Call it after newest() found nothing. Reads every file.
  [[nodiscard]] std::optional<std::string> misfit(const Expected& expected) const;

  struct GoneBack {
    std::vector<std::string> aside;  ///< new paths of the newer files, oldest first
    std::string folder;              ///< newer-N, their new folder; empty if no file was newer
  };
  /// For a stopped device: makes `to` the newest checkpoint. Moves newer files, damaged ones included, to
  /// newer-N and writes a note that permits the rollback (rollback_requested()). If interrupted, the newest
  /// file is still in place or the move is complete. Errors: io (names the file that could not be moved).
  Result<GoneBack> roll_back(const Stamp& to);
  /// Returns the state named in the rollback note until forget_going_back() removes the note.
  [[nodiscard]] std::optional<Stamp> rollback_requested() const;
  void forget_going_back();
  struct Written {
    std::string hash;  ///< SHA-256 at the end of the file, in hex
    std::size_t bytes = 0;
  };
  /// Returns once the file is on disk. Errors: those of write_whole_file().
  Result<Written> write(const StateOwner& owner, const AgreedState& state, const Digest& digest);
  /// Writes the private part next to the state's image; both are removed together. Errors: those of
  /// write_whole_file().
  Status write_private(const PrivatePart& part);
  /// Removes a private part that an earlier process may have left for the same stamp.
  void remove_private(const Stamp& stamp);
  /// Returns the private part of this state; nullopt if none exists or it is unusable. Reports an unusable
  /// one in `problems`.
  [[nodiscard]] std::optional<PrivatePart> private_part(const Stamp& stamp,
                                                        const devices::ModelLayout& layout,
                                                        std::vector<std::string>& problems) const;
  /// Adds the note of this state and drops notes of missing files. Errors: those of write_whole_file().
  Status write_note(const Stamp& stamp, const CheckpointNote& note);
  /// Returns the notes of existing checkpoints; empty if the file is unreadable.
  [[nodiscard]] CheckpointNotes notes() const;
  /// Deletes old checkpoints of `job`. Keeps the `keep` newest, the newest up to `committed`, the best
  /// according to the notes, and the rollback targets in `wanted`. Of uncommitted states above that, keeps
  /// the newest `uncommitted_max`: the group remembers fewer (saved_max in sync/membership/fold.h), and a
  /// peer with a full disk must not fill this one. Files of other or unknown jobs stay and are not counted.
  void prune(std::size_t keep, const Stamp& committed, std::string_view job,
             std::span<const Stamp> wanted = {});
  /// Returns the file's bytes. Errors: io, unavailable (no such file).
  [[nodiscard]] Result<std::vector<std::byte>> read(const Stamp& stamp, std::size_t bytes_max) const {
    return read_whole_file(path_of(stamp, ".ckpt"), bytes_max, *files_);
  }
  /// Returns a checkpoint in this folder that belongs to a job other than `job`; nullopt if there is none.
  [[nodiscard]] std::optional<CheckpointEntry> foreign(std::string_view job) const;
  struct Pruned {
    std::vector<CheckpointEntry> kept;     ///< newest first
    std::vector<CheckpointEntry> removed;  ///< newest first
  };
  /// For a stopped device: reads every file and deletes usable checkpoints, except the `keep` newest (minimum
  /// 1), the best according to the notes, and the last good state of the divergence check. Unusable files
  /// stay: they may come from another model or a newer program. Reports them and failed deletions in
  /// `problems`.
  [[nodiscard]] Pruned prune_checked(std::size_t keep, const Expected& expected,
                                     std::vector<std::string>& problems) const;

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
