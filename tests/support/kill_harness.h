#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/rng.h"
#include "tests/support/kafka_server.h"
#include "tests/support/kill_board.h"
#include "tests/support/network.h"
#include "tests/support/process.h"
#include "tests/support/run_history.h"
#include "tests/support/temp_dir.h"

namespace rivulet::testing {

struct KillOptions {
  int devices = 3;
  int rows_per_device = 1000;  ///< each device has one partition
  int bad_every =
      50;  ///< one of this many records has no valid row, for one of four reasons: dropped, never counted
  int counters = 0;  ///< elements of the model, minimum one per row; determines the payload
  int batch_max = 16;
  int buffer_rows = 64;
  bool copies = false;                ///< devices inject each other's rows
  bool truncated = false;             ///< rows that arrive too fast are dropped; the ledgers list them
  double bits_per_second = 0;         ///< of each device's link (needs root); 0: all on the loopback
  std::vector<std::string> settings;  ///< further KEY=VALUE of the configuration
};

/// When to hit a device, and how: kill -9, SIGSTOP, disconnection.
enum class Moment : std::uint8_t { any, idle, compute, payload, checkpoint };
enum class Blow : std::uint8_t { kill, stop, cut_off };

/// N devices (tests/support/programs/tally_device.cpp) on a real Kafka. Each is a process with a partition of
/// numbered rows, and its model counts how often each row was trained. The test kills, stops and disconnects
/// devices. Then check_exact() verifies that no row was lost or counted twice. Failures of helpers fail the
/// doctest case. Owner: the test's thread.
class KillGroup {
 public:
  explicit KillGroup(const KillOptions& options);  ///< starts Kafka and creates the topic; no device yet
  ~KillGroup();
  KillGroup(const KillGroup&) = delete;
  KillGroup& operator=(const KillGroup&) = delete;

  /// Starts or restarts a device with the same command; `more` are KEY=VALUE of this process.
  void start(int device, const std::vector<std::string>& more = {});
  void start_all();
  /// Adds up to `rows` rows to every partition.
  void produce(int rows);
  void produce_all() { produce(options_.rows_per_device); }
  /// Deletes records of the device's partition below `before`, as retention does. No device has read those
  /// from `from` on.
  void delete_unread(int device, int from, int before);

  [[nodiscard]] int devices() const { return options_.devices; }
  [[nodiscard]] int rows_in_all() const;                                      ///< trainable
  [[nodiscard]] int rows_produced() const;                                    ///< so far
  [[nodiscard]] const std::string& configuration() const { return config_; }  ///< path of the file
  [[nodiscard]] Process& process(int device) { return *at(device).process; }
  [[nodiscard]] int http_port(int device) const { return at(device).port; }
  [[nodiscard]] KillPage& page(int device) { return *at(device).page; }
  [[nodiscard]] const std::string& brokers() const { return kafka_->brokers(); }
  [[nodiscard]] KafkaServer& kafka() { return *kafka_; }
  [[nodiscard]] std::string directory(int device) const;
  /// Step of the newest state on any disk; 0: none.
  [[nodiscard]] std::uint64_t newest_saved() const;
  [[nodiscard]] nlohmann::json status(int device) const;  ///< {} without an answer
  /// Value of a device's series with these labels; -1 without an answer.
  [[nodiscard]] double metric(int device, const std::string& series) const;
  [[nodiscard]] std::int64_t group_rows(int device) const;
  [[nodiscard]] std::int64_t least_group_rows() const;
  [[nodiscard]] std::int64_t newest_rows() const;
  [[nodiscard]] std::uint64_t applied_in_all() const;  ///< rounds of the current processes
  [[nodiscard]] bool formed() const;
  [[nodiscard]] std::string story();  ///< output of the devices, for INFO

  void require_formed(Duration deadline);
  /// Waits until a device has applied one more round.
  void require_progress(Duration deadline);
  /// Waits until all devices report that every produced row is trained.
  void require_caught_up(Duration deadline);
  /// `patience`: for the next rows, not for all.
  void require_all_trained(Duration patience);
  /// The same if some rows are dropped: waits until no device has rows left to read.
  void require_all_passed(Duration patience);
  /// Returns true when the device reaches the moment; for payload, after a random part of its bytes.
  bool wait_for(int device, Moment moment, Rng& rng, Duration deadline);

  /// kill -9, waits for the end. True: the device was inside payload bytes.
  bool kill(int device);
  /// Kills the device at the moment. False: it did not reach it in time, and lives.
  bool kill_at(int device, Moment moment, Rng& rng, Duration deadline);
  void kill_all();  ///< simultaneously
  /// Stops the device in that phase, verifies the phase, then applies the blow. False: the phase was not met
  /// in time.
  bool hit(int device, Moment moment, Blow blow, Rng& rng, Duration deadline);
  /// Undoes the blow: starts, continues or reconnects the device.
  void mend(int device, Blow blow);
  /// Deletes its folder; keeps its decision log for check_exact().
  void wipe(int device);
  void stop(int device);  ///< SIGSTOP
  void resume(int device);
  void cut_off(int device);  ///< its link drops everything in both directions; needs bits_per_second
  void plug_in(int device);
  void cut_one_way(int device, Network::Direction direction);
  void mend_one_way(int device);
  /// Time from start() of this device to its first applied round.
  Duration wait_until_back(int device, Duration deadline);
  /// Checks that the other processes were not restarted.
  void check_alive_but(int device);
  /// Kills that met the device inside payload bytes, or while it wrote a checkpoint.
  [[nodiscard]] int kills_inside_payload() const { return inside_payload_; }
  [[nodiscard]] int kills_inside_checkpoint() const { return inside_checkpoint_; }
  /// Valid after check_exact().
  [[nodiscard]] std::size_t rows_truncated() const { return truncated_.size(); }

  /// Ends the job with `rivulet stop`. Checks on every device that every row counts exactly once and dropped
  /// rows never, that all states are equal, that rounds are contiguous, that `rivulet ledger show --rows`
  /// reports the same for each row, and that `rivulet ledger verify` passes.
  RunHistory check_exact();

 private:
  struct Device {
    std::unique_ptr<Process> process;
    std::shared_ptr<KillPage> page;
    int port = 0;
    TimePoint started;
  };
  [[nodiscard]] Device& at(int device) { return all_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] const Device& at(int device) const { return all_[static_cast<std::size_t>(device)]; }
  /// Expected fate of row number `k` of a partition: "trained", "dropped: REASON" or "hole".
  [[nodiscard]] std::string fate_of(int partition, int k) const;
  [[nodiscard]] std::size_t counters() const;
  [[nodiscard]] int good_rows(int per_device) const;
  [[nodiscard]] std::string checkpoints(int device) const { return directory(device) + "/checkpoints"; }
  [[nodiscard]] ProcessOptions command_of(int device) const;
  bool wait_for_checkpoint(int device, Duration deadline);
  [[nodiscard]] bool is_at(int device, Moment moment);
  void end_all();
  struct FinalState {
    std::uint64_t step = 0;
    std::string digest;
  };
  FinalState check_final_state(int device);
  void check_ledgers(const FinalState& state);
  void learn_truncated();
  RunOutput ask_ledger(int device, std::vector<std::string> words) const;

  const KillOptions options_;
  TempDir folder_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<KafkaServer> kafka_;
  std::string config_;
  std::vector<Device> all_;
  int produced_ = 0;                       ///< per partition
  std::set<std::pair<int, int>> deleted_;  ///< partition and row
  std::set<std::pair<int, int>> truncated_;
  std::vector<std::string> kept_of_wiped_;  ///< folders with decision logs
  int inside_payload_ = 0;
  int inside_checkpoint_ = 0;
};

/// The smallest value that `share` of the values do not exceed.
Duration percentile(std::vector<Duration> values, double share);

}  // namespace rivulet::testing
