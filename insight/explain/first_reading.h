// SPDX-License-Identifier: Apache-2.0
// FirstReading: the reason of each miss in a trace, the changes of its request
// since the one before, and the sums by reason, path, section and writer.
//
// Used by one thread; it reads one trace.
#ifndef FNCACHE_INSIGHT_EXPLAIN_FIRST_READING_H_
#define FNCACHE_INSIGHT_EXPLAIN_FIRST_READING_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "insight/explain/analysis_result.h"
#include "insight/explain/traced_calls.h"
#include "insight/trace/reader.h"

namespace fncache::insight::explain {

// A path that ever changed.
struct Changed {
  std::string general;   // the path in reports
  bool changed = false;  // from one leaf to another
  bool leaf = true;      // it never was an object or a list
};

// The results of the first reading.
struct Learned {
  Analysis analysis;
  absl::flat_hash_map<trace::PathId, Changed> changed;
};

class FirstReading {
 public:
  // Both must outlive it.
  FirstReading(const AnalysisOptions& options, InForce* in_force)
      : options_(options), in_force_(in_force) {}

  Learned Read(trace::TraceReader* reader);

 private:
  static constexpr int kSlackDivisor = 20;

  // The fates of the last answers to one composite's requests.
  struct Past {
    bool any = false;
    // By the request's hash: until when its answer was served.
    struct Kept {
      absl::Time until = absl::InfinitePast();
      absl::Duration slack = absl::ZeroDuration();
    };
    absl::flat_hash_map<uint64_t, Kept> kept;
    std::string not_stored;  // why the last answer was not kept; "" if it was
    uint64_t hash = 0;       // of the last request
    std::shared_ptr<const trace::NodeMap>
        nodes;  // of the last request that has them
  };
  struct MissFacts {
    std::string reason;
    double seconds = 0;
    std::vector<std::string> paths;
    std::vector<std::string> writers;
    bool pathless = false;
  };

  // The reason of this miss, from the trace before it, where the record has no
  // reason.
  std::pair<std::string, bool> ReasonOf(const trace::ReadCall& call,
                                        const Past& past, uint64_t hash) const;

  // The key if there is one: the cache used it, under its masks.
  uint64_t RequestHash(const trace::TraceReader& reader,
                       const trace::ReadCall& call);

  void Follow(const trace::TraceReader& reader, const trace::ReadCall& call);

  // Null if it is not there.
  static const request::KeptNode* NodeIn(
      const std::shared_ptr<const trace::NodeMap>& nodes, trace::PathId id);
  static bool Has(const std::shared_ptr<const trace::NodeMap>& nodes,
                  trace::PathId id);
  // True as well if it is not there.
  static bool IsLeafIn(const std::shared_ptr<const trace::NodeMap>& nodes,
                       trace::PathId id);

  // The changed paths within an object or list that came or went as a whole,
  // and for which no mask is proposed. They add nothing to that object or list.
  absl::flat_hash_set<trace::PathId> Inside(const trace::TraceReader& reader,
                                            const trace::ReadCall& call) const;

  void Miss(const trace::TraceReader& reader, const trace::ReadCall& call);

  void Sum();

  const AnalysisOptions& options_;
  InForce* const in_force_;
  absl::flat_hash_map<std::string, Past> past_;
  std::pair<std::string, bool> reason_;           // of the call that is read
  std::shared_ptr<const trace::NodeMap> before_;  // of the request before it
  std::vector<MissFacts> misses_;
  Learned learned_;
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_FIRST_READING_H_
