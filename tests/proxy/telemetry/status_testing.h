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
    status.certificates = instruments.ReadCertificates();
    return status;
  }

  Instruments instruments;
  SimulatedClock clock;
  History history;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_TESTS_PROXY_TELEMETRY_STATUS_TESTING_H_
