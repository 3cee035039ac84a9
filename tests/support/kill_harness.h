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
  int rows_per_device = 1000;  ///< each device has a partition of its own
  int bad_every =
      50;  ///< every so-many-th record is not a row, for one of four reasons: dropped, never counted
  int counters = 0;  ///< numbers of the model, at least one per row: what a payload is made of
  int batch_max = 16;
  int buffer_rows = 64;
  bool copies = false;         ///< devices send each other copies of rows
  bool truncated = false;      ///< what comes too fast is dropped: which rows that were, the ledgers say
  double bits_per_second = 0;  ///< of each device's own link (needs root); 0: all on the loopback
  std::vector<std::string> settings;  ///< further KEY=VALUE of the configuration
};

/// Where a device is to be hit, and with what: kill -9, SIGSTOP, its cable pulled.
enum class Moment : std::uint8_t { any, idle, compute, payload, checkpoint };
enum class Blow : std::uint8_t { kill, stop, cut_off };

/// N devices (tests/support/programs/tally_device.cpp) on a real Kafka, each a process with a partition of
/// numbered rows, whose model counts how often each row was trained. The test kills, stops and cuts off
/// devices; check_exact() then says whether anything was lost or counted twice. Fails the doctest case it is
/// used in when something cannot be done. Owner: the thread of the test.
class KillGroup {
 public:
  explicit KillGroup(const KillOptions& options);  ///< Kafka runs, the topic is there, no device yet
  ~KillGroup();
  KillGroup(const KillGroup&) = delete;
  KillGroup& operator=(const KillGroup&) = delete;

  /// Starts a device, or starts it again with the same command; `more` are KEY=VALUE of this life.
  void start(int device, const std::vector<std::string>& more = {});
  void start_all();
  /// Up to `rows` more of every partition.
  void produce(int rows);
  void produce_all() { produce(options_.rows_per_device); }
  /// What retention does: records of the device's partition below `before` are gone. Nobody has read those
  /// from `from` on, and nobody will.
  void delete_unread(int device, int from, int before);

  [[nodiscard]] int devices() const { return options_.devices; }
  [[nodiscard]] int rows_in_all() const;                                      ///< that can be trained
  [[nodiscard]] int rows_produced() const;                                    ///< of them, so far
  [[nodiscard]] const std::string& configuration() const { return config_; }  ///< the file
  [[nodiscard]] Process& process(int device) { return *at(device).process; }
  [[nodiscard]] int http_port(int device) const { return at(device).port; }
  [[nodiscard]] KillPage& page(int device) { return *at(device).page; }
  [[nodiscard]] const std::string& brokers() const { return kafka_->brokers(); }
  [[nodiscard]] KafkaServer& kafka() { return *kafka_; }
  [[nodiscard]] std::string directory(int device) const;
  /// Step of the newest state that is on some disk; 0: none.
  [[nodiscard]] std::uint64_t newest_saved() const;
  [[nodiscard]] nlohmann::json status(int device) const;  ///< {} when it does not answer
  /// Of the scrape of a device the value of a series with its labels; -1 when it does not answer.
  [[nodiscard]] double metric(int device, const std::string& series) const;
  [[nodiscard]] std::int64_t group_rows(int device) const;
  [[nodiscard]] std::int64_t least_group_rows() const;
  [[nodiscard]] std::int64_t newest_rows() const;
  [[nodiscard]] std::uint64_t applied_in_all() const;  ///< rounds, by the processes that are there now
  [[nodiscard]] bool formed() const;
  [[nodiscard]] std::string story();  ///< what the devices said, for INFO

  void require_formed(Duration deadline);
  /// Some device has applied a round more than now.
  void require_progress(Duration deadline);
  /// Every row that was produced is trained, and all devices say so.
  void require_caught_up(Duration deadline);
  /// `patience`: for the next rows, not for all.
  void require_all_trained(Duration patience);
  /// The same where some rows are dropped instead: no device has anything left to read.
  void require_all_passed(Duration patience);
  /// True as soon as the device is there; for payload, past a part of its bytes that `rng` chooses.
  bool wait_for(int device, Moment moment, Rng& rng, Duration deadline);

  /// kill -9, and the process is gone. True: it was inside payload bytes.
  bool kill(int device);
  /// kill -9 when it is there. False: it did not come there in time, and lives.
  bool kill_at(int device, Moment moment, Rng& rng, Duration deadline);
  void kill_all();  ///< at once
  /// Hits it inside that phase and nowhere else: it is stopped there, looked at, and then it happens. False:
  /// it was not met there in time.
  bool hit(int device, Moment moment, Blow blow, Rng& rng, Duration deadline);
  /// Takes the blow back: starts it, lets it go on, plugs it in.
  void mend(int device, Blow blow);
  /// Its folder is gone; what it has decided is kept for check_exact() alone.
  void wipe(int device);
  void stop(int device);  ///< SIGSTOP
  void resume(int device);
  void cut_off(int device);  ///< its link takes nothing and says nothing; needs bits_per_second
  void plug_in(int device);
  /// From start() of this device to its first applied round.
  Duration wait_until_back(int device, Duration deadline);
  /// The others are the processes they were.
  void check_alive_but(int device);
  /// Kills that met the device inside payload bytes, and while it wrote a checkpoint.
  [[nodiscard]] int kills_inside_payload() const { return inside_payload_; }
  [[nodiscard]] int kills_inside_checkpoint() const { return inside_checkpoint_; }
  /// Behind check_exact().
  [[nodiscard]] std::size_t rows_truncated() const { return truncated_.size(); }

  /// Ends the job with `rivulet stop`. Every row counts exactly once and every dropped one never, on every
  /// device; all hold the same state; the rounds that lead to it follow from each other; and of every device
  /// `rivulet ledger show --rows` says the same of each row, and `rivulet ledger verify` that it balances.
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
  /// "trained", "dropped: REASON" or "hole": what is to become of row number `k` of a partition.
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
  int produced_ = 0;                       ///< of each partition
  std::set<std::pair<int, int>> deleted_;  ///< partition and row
  std::set<std::pair<int, int>> truncated_;
  std::vector<std::string> kept_of_wiped_;  ///< folders with decision logs
  int inside_payload_ = 0;
  int inside_checkpoint_ = 0;
};

/// The value that `share` of the others do not exceed.
Duration percentile(std::vector<Duration> values, double share);

}  // namespace rivulet::testing
