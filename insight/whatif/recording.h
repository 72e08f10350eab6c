// SPDX-License-Identifier: Apache-2.0
// Recording: the calls of a trace, in a compact form and in order of their
// arrival, for playing them again under other settings.
//
//   trace -> Read -> Recording -> Replay (engine.h), once for each setting
//
// Immutable once read, so that any number of threads may play it.
#ifndef FNCACHE_INSIGHT_WHATIF_RECORDING_H_
#define FNCACHE_INSIGHT_WHATIF_RECORDING_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/key/key.h"
#include "cache/key/mask.h"
#include "insight/trace/reader.h"
#include "insight/trace/traced_call.h"

namespace fncache::insight::whatif {

// One call. Times are nanoseconds since the Unix epoch.
struct Call {
  static constexpr int64_t kNone = -1;

  int64_t arrived = 0;
  cache::key::Key key;  // if `keyed`
  // The TTL that the function says, and the one that the caller got; kNone:
  // nothing. Where the trace does not have it (a hit), the neighbouring calls'
  // TTL.
  int64_t ttl = kNone;
  int64_t told = kNone;
  int64_t age = 0;       // of a hit
  uint32_t cost = 0;     // microseconds of the function
  uint32_t latency = 0;  // microseconds
  uint32_t request_bytes = 0;
  uint32_t response_bytes = 0;
  uint32_t composite = 0;  // Recording::composites
  uint32_t pipeline = 0;   // Recording::pipelines
  uint16_t function = 0;   // Recording::functions
  uint16_t step = 0;       // Recording::steps
  uint16_t series = 0;     // Recording::series
  uint8_t phase = 0;       // Recording::phases
  trace::Outcome outcome = trace::Outcome::kUnknown;
  bool keyed : 1;
  bool fatal : 1;
  bool secrets : 1;
  bool failed : 1;    // its status is not OK
  bool measured : 1;  // it counts
  // A call of a composite that had no resources at its first call in the trace,
  // until a timer brought it back.
  bool creation : 1;

  Call()
      : keyed(false),
        fatal(false),
        secrets(false),
        failed(false),
        measured(false),
        creation(false) {}
};

// One reconcile of a composite: its calls, one after the other.
struct Pipeline {
  static constexpr uint32_t kNone = 0xffffffff;

  int64_t start = 0;
  int64_t end = 0;  // of its last call
  // The least TTL that its calls got; Call::kNone: none, or it failed.
  int64_t told = Call::kNone;
  uint32_t first = 0;  // its calls in Recording::pipeline_calls
  uint32_t calls = 0;
  uint32_t composite = 0;
  uint32_t next = kNone;  // of the same composite
  // The pipeline that its composite's timers repeat from here on: this one, or
  // the first timer-driven one before the next event.
  uint32_t repeats = 0;
  bool timer = false;  // it ran for the TTL that the one before got
  bool failed = false;
  bool measured = false;
  bool settling = false;  // a load's, before it began
};

struct Recording {
  trace::TraceHeader header;
  uint64_t dropped = 0, damaged = 0;
  // Keyed calls whose request is not in the trace: masks cannot be tried on
  // them.
  uint64_t without_nodes = 0;
  bool has_nodes = false;
  // A load marked its measured calls: no others count.
  bool has_phases = false;
  // The end of a load's settling, the beginning of the measured time, and the
  // last start of a pipeline in the trace.
  int64_t begun = 0;
  int64_t measured_from = 0;
  int64_t until = 0;

  std::vector<std::string> functions, steps, phases;
  // All steps of all functions: function, step.
  std::vector<std::pair<uint16_t, uint16_t>> series;
  std::vector<std::string> composites;  // KIND/NAMESPACE/NAME; "" unknown
  std::vector<Call> calls;              // by arrival
  std::vector<Pipeline> pipelines;      // by start
  std::vector<uint32_t> pipeline_calls;
  // For each requested set of masks, the calls' keys under it.
  std::vector<std::vector<cache::key::Key>> masked;

  // The duration of the measured time, in seconds; not zero.
  double Seconds() const;
};

// Reads the trace to its end. `masks`: sets for which keys are wanted, too. At
// level full those keys are made of the messages, so that composites share them
// as in a daemon. Otherwise each composite has its own. OutOfRange if there are
// more calls, functions or steps than fit.
absl::StatusOr<Recording> Read(trace::TraceReader* reader,
                               const std::vector<cache::key::MaskSet>& masks);

}  // namespace fncache::insight::whatif

#endif  // FNCACHE_INSIGHT_WHATIF_RECORDING_H_
