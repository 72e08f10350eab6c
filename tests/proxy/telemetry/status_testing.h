// SPDX-License-Identifier: Apache-2.0
// A Status made of real instruments, for the tests of the pages that show it.
#ifndef FNCACHE_TESTS_PROXY_TELEMETRY_STATUS_TESTING_H_
#define FNCACHE_TESTS_PROXY_TELEMETRY_STATUS_TESTING_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "proxy/telemetry/history.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/telemetry/status.h"

namespace fncache::proxy::telemetry {

// A shared tier that is up, on a Cluster of two nodes of which one is down.
inline cache::store::SharedFigures SharedExample(absl::Time now) {
  cache::store::SharedFigures shared;
  shared.up = true;
  shared.since = now - absl::Seconds(90);
  shared.version = "7.2.4";
  shared.round_trip = absl::Microseconds(310);
  shared.clock_difference = absl::Milliseconds(-2);
  shared.bans_age = absl::Milliseconds(400);
  shared.bans_written = true;
  shared.lookups = {1, 2, 3, 4, 5, 6};
  shared.writes = {7, 8, 9, 10};
  shared.server.cluster = true;
  shared.server.redirections = 11;
  shared.server.nodes.resize(2);
  shared.server.nodes[0].address = "redis-0:6379";
  shared.server.nodes[0].state = resp::Node::State::kUp;
  shared.server.nodes[0].since = now - absl::Seconds(91);
  shared.server.nodes[1].address = "redis-1:6379";
  shared.server.nodes[1].state = resp::Node::State::kDown;
  shared.server.nodes[1].since = now - absl::Seconds(2);
  shared.server.nodes[1].why = "Connection <refused>";
  return shared;
}

// Instruments, simulated time and a history of it; Now() is what the pages are
// given. For one thread.
class StatusSource {
 public:
  explicit StatusSource(const std::vector<std::string>& functions)
      : instruments(functions),
        clock(absl::FromUnixSeconds(1'800'000'000)),
        history(&instruments, &clock) {}

  void Call(cache::FunctionId id, Outcome outcome, absl::Duration latency,
            int code = 0) {
    const FunctionInstruments& f = instruments.function(id);
    f.Begin(Method::kV1);
    const bool upstream =
        outcome != Outcome::kHit && outcome != Outcome::kCollapsed;
    if (outcome == Outcome::kHit) {
      f.RecordHit(absl::Microseconds(5), absl::Seconds(2));
    }
    if (upstream) f.RecordUpstream(code, latency);
    f.End({Method::kV1, outcome, code, upstream, latency});
  }

  void Bypass(cache::FunctionId id, cache::Reason reason) {
    const FunctionInstruments& f = instruments.function(id);
    f.Begin(Method::kV1);
    CallRecord record = {Method::kV1, Outcome::kBypass, 0, true,
                         absl::Seconds(1)};
    record.reason = reason;
    f.End(record);
  }

  // Time passes, and the history is fed as it is in a daemon.
  void Pass(absl::Duration time) {
    for (; time > absl::ZeroDuration(); time -= History::kInterval) {
      clock.Advance(std::min(time, History::kInterval));
      history.Tick();
    }
  }

  Status Now() const {
    Status status;
    status.version = "1.2.3";
    status.state = "ready";
    status.uptime = absl::Hours(27) + absl::Minutes(2) + absl::Seconds(3);
    status.process.resident_bytes = 123'456'789;
    status.reading = history.Read();
    for (size_t id = 0; id < instruments.functions(); ++id) {
      const FunctionInstruments& function = instruments.function(id);
      status.functions.push_back({function.name(),
                                  absl::StrCat("dns:///", function.name()),
                                  function.reachability(),
                                  function.ReadGauges(),
                                  {},
                                  {},
                                  function.last_error()});
    }
    status.shared = instruments.ReadShared();
    status.certificates = instruments.ReadCertificates();
    return status;
  }

  Instruments instruments;
  SimulatedClock clock;
  History history;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_TESTS_PROXY_TELEMETRY_STATUS_TESTING_H_
