#pragma once
#include <string>
#include <vector>

#include "runtime/cli/command.h"
#include "runtime/config/config.h"

namespace rivulet::runtime::cli {

/// `rivulet simulate --replay`: a recorded run again, instead of one that never was. Must stay where it is
/// once add_to() was called (the parser writes into it).
class ReplayFlags {
 public:
  /// `of_made_up_runs`: options of `app` that say what a recorded run says itself; they are refused beside
  /// it.
  void add_to(CLI::App& app, const std::vector<const char*>& of_made_up_runs);
  [[nodiscard]] bool asked() const noexcept { return !log_.empty(); }
  /// `data`: of --data. Exit 0: every recorded number came out again, and the state's digest at the end is
  /// the expected one.
  ExitCode run(Terminal& terminal, const LoadedConfig& loaded, const std::string& data, bool json) const;

 private:
  std::string log_;
  std::string state_;
  std::string expect_;
};

}  // namespace rivulet::runtime::cli
