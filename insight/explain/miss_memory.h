// SPDX-License-Identifier: Apache-2.0
// MissMemory: a daemon's memory of requests that missed. It explains why the
// next one missed.
//
//   a miss -> Explain (compares, remembers) -> OnAnswer
//                                           -> OnStored or OnNotStored
//
// A miss is compared with the nearest of the last four misses of its identity
// (insight/request/outline.h). It keeps only names of paths, and hashes of
// values under a secret of this object's own. Beyond the memory limit,
// composites are sampled: their paths go first, then all. Entries are never
// evicted by age, since under timers nothing would stay.
//
// It also compares the answer to a request whose paths were read with the
// answer of before (repeats.h). It keeps a hash of the answer alone.
//
// CPU time is limited, too. Beyond its fraction of the process's CPU time, and
// for requests larger than kMaxNodesRead, Explain reports only the section that
// changed. If even that takes too much, it looks at fewer composites, and reads
// only the names of the others.
//
// Thread-safe.
#ifndef FNCACHE_INSIGHT_EXPLAIN_MISS_MEMORY_H_
#define FNCACHE_INSIGHT_EXPLAIN_MISS_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "cache/key/hint.h"
#include "cache/key/key.h"
#include "cache/key/mask.h"
#include "common/clock.h"
#include "common/method.h"
#include "insight/explain/byte_budget.h"
#include "insight/explain/explanation.h"
#include "insight/explain/last_misses.h"
#include "insight/explain/repeats.h"
#include "insight/explain/space_saving.h"

namespace fncache::insight::explain {

struct MissMemoryOptions : ByteBudgetOptions {
  uint64_t bytes = 16ull << 20;  // positive
};

// The facts of a miss that are known before its request is read.
struct Lookup {
  // kExpired: the store has an answer past its time. kDrift: its answer may not
  // serve across drift. Each is the reason of the miss then, and nothing is
  // compared. kUnknown: it has none.
  trace::Reason found = trace::Reason::kUnknown;
  std::string detail = {};  // with kDrift
  // Keys are without drift (`tune: on`). Then no repeats are counted: drift
  // that is proven saves them already.
  bool tuned = false;
  // With `vary: on`: the newest hint of responses to such requests. Paths that
  // do not count by it are no reason of a miss. Null: none is known. Valid
  // during the call.
  const cache::key::Hint* hint = nullptr;
};

class MissMemory {
 public:
  // Bytes. For a larger request or answer only the section is reported: reading
  // takes a millisecond for each half MiB, on the thread that serves.
  static constexpr uint64_t kMaxNodesRead = 256 << 10;
  // Bytes. For a larger request only the fate of its key is reported.
  static constexpr uint64_t kMaxRead = 16 << 20;
  static constexpr size_t kMostChanged = explain::kMostChanged;
  // Misses that are listed one by one.
  static constexpr size_t kLastMisses = LastMisses::kMost;

  // `clock` must outlive this.
  MissMemory(const MissMemoryOptions& options, Clock* clock);
  ~MissMemory();

  // Explains why the request of `key` missed, and remembers it. It is compared
  // only with requests of its method, since no others share its entries. Paths
  // that `masks` hide are not compared. `slices` are the RunFunctionRequest's
  // bytes.
  Explanation Explain(absl::string_view function, Method method,
                      absl::string_view generation, const cache::key::Key& key,
                      const cache::key::MaskSet& masks,
                      absl::Span<const absl::string_view> slices,
                      const Lookup& lookup = {});

  // The function answered the request of `key`. `body` in order is the response
  // without its meta, and `ttl` the function's own. Returns whether the run was
  // a repeat, and what it was over. Absent: it was not examined, or its end
  // does not count.
  absl::optional<RepeatOver> OnAnswer(const cache::key::Key& key,
                                      absl::Span<const absl::string_view> body,
                                      absl::optional<absl::Duration> ttl);
  // The fate of the answer to a request that was explained. Stored answers are
  // served until `until`. `secrets`: it contains connection details.
  void OnStored(const cache::key::Key& key, absl::Time until,
                bool secrets = false);
  void OnNotStored(const cache::key::Key& key, NotStored why);
  // An operator purged the key; or all of a function, "" of all functions.
  void OnPurged(const cache::key::Key& key);
  void OnPurgedFunction(absl::string_view function);
  // An operator purged the answers of one generation of a function.
  void OnPurgedGeneration(absl::string_view function,
                          absl::string_view generation);
  // `store_secrets: none` came into force for a function: its answers that were
  // stored with connection details are erased.
  void OnSecretsErased(absl::string_view function);

  // The most frequent ones, in falling order.
  using Top = SpaceSaving::Top;
  struct FunctionTop {
    std::string function;
    Top paths;  // sections where the path is not known
    Top writers;
    Top masks;  // to propose; the function was not asked
    // Paths that changed besides drift in repeats, also with `tune: on`.
    std::vector<UnreadPath> unread;
  };
  // One for each function that had changed requests or repeats, ordered by
  // name.
  std::vector<FunctionTop> Tops(size_t most) const;

  using Miss = ExplainedMiss;
  // The last misses of `function`, or of all if that is empty, the newest
  // first. They use a sixteenth of the memory, and are at most kLastMisses. The
  // oldest go first. Long names are cut.
  std::vector<Miss> Last(size_t most, absl::string_view function) const;

  // Memory in use, overhead included; at most the bound.
  uint64_t bytes() const;
  // The fraction of composites whose paths are remembered, as far as the budget
  // lets them be read, and the fraction of those that are remembered at all.
  double paths_share() const;
  double share() const;
  // CPU time that explaining took.
  absl::Duration cpu() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_MISS_MEMORY_H_
