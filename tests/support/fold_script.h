#pragma once
#include <map>
#include <string>
#include <vector>

#include "sync/membership/fold.h"

namespace rivulet::testing {

/// Writes records at increasing offsets with gaps, as a broker does.
struct FoldScript {
  sync::membership::Fold fold;
  std::int64_t next = 0;
  std::int64_t time_ms = 0;
  std::int64_t put(const sync::membership::ControlRecord& record) {
    const std::int64_t offset = next;
    next += 3;
    apply(fold, offset, record, time_ms);
    return offset;
  }
  std::int64_t hello(const std::string& device, const GroupSizes& devices = 2, const std::string& hash = "h",
                     bool new_run = false) {
    sync::membership::Hello hello;
    hello.device = device;
    hello.nonce = device + std::to_string(next);
    hello.host = "host-" + device;
    hello.pid = 100;
    hello.devices = devices;
    hello.config_hash = hash;
    hello.config = {{"job.devices", std::to_string(devices.max)},
                    {"batch.tick", hash == "h" ? "100ms" : "50ms"}};
    hello.partitions = {"t:" + device};
    hello.new_run = new_run;
    return put(hello);
  }
  std::int64_t ready(const std::string& device, std::int64_t session, std::uint64_t view = 1,
                     Stamp stamp = {}, const std::string& digest = "") {
    return put(sync::membership::Ready{device, session, view, stamp, digest, ""});
  }
  std::int64_t saved(const std::string& device, std::int64_t session, std::uint64_t view, Stamp stamp,
                     const std::string& digest = "d") {
    return put(sync::membership::Saved{device, session, view, stamp, digest, "file"});
  }
  std::int64_t leave(const std::string& device, std::int64_t session, const std::string& reason = "asked") {
    return put(sync::membership::Leave{device, session, reason});
  }
  std::int64_t stop() { return put(sync::membership::Stop{"n" + std::to_string(next), "host", 1}); }
  /// Writes HELLO and READY of all, CLOSE of the first; returns their sessions.
  std::map<std::string, std::int64_t> form(const std::vector<std::string>& ids, bool new_run = false) {
    std::map<std::string, std::int64_t> sessions;
    for (const auto& id : ids) sessions[id] = hello(id, static_cast<std::uint32_t>(ids.size()), "h", new_run);
    for (const auto& id : ids) ready(id, sessions[id], fold.view.number + 1);
    close(ids.front(), sessions[ids.front()], fold.view.number + 1);
    return sessions;
  }
  std::int64_t close(const std::string& device, std::int64_t session, std::uint64_t view = 1) {
    return put(sync::membership::Close{device, session, view});
  }
};

}  // namespace rivulet::testing
