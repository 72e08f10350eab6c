// SPDX-License-Identifier: Apache-2.0
// Evidence: what the daemon knows of answers across drift (DESIGN, "Tuning").
// It decides whether an entry answers a request of equal key and other drift,
// and when the function is asked about drift.
//
// The flow of one key:
//   1. A caller's request of other drift finds an entry: Judge says hit or
//      miss.
//   2. After a miss the function runs, and its answer is stored. Then OnRun
//      learns what the answer was. The fill comes first, so a caller that comes
//      between finds an entry that the evidence does not describe, and misses.
//   3. If OnRun says that questions are due, the caller begins a proof. Until
//      it has ended, the caller takes, sends and reports one question after the
//      other (Begin, Take, Report). A caller that stops before calls Abort.
//
// It has no I/O and no clock: each call says what time it is. It keeps hashes,
// and never values. One object serves all functions of the process. It belongs
// to the process and begins empty.
//
// Thread-safe. Calls take one mutex: hits of equal drift do not come here.
#ifndef FNCACHE_PROXY_SERVING_EVIDENCE_H_
#define FNCACHE_PROXY_SERVING_EVIDENCE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/drift_kinds.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "common/mutex.h"
#include "proxy/serving/proof.h"

namespace fncache::proxy::serving {

using cache::key::Key;

using cache::key::DriftKinds;
using cache::key::kMostKinds;

using cache::FunctionId;

// An entry, as a lookup finds it.
struct TunedEntry {
  absl::Time started;  // when its call started
  Key drift;           // the drift digest of its request
  Key answer;          // the digest of the answer, without meta
  absl::Duration ttl;  // the function's own

  bool SameAnswer(const TunedEntry& other) const {
    return answer == other.answer && ttl == other.ttl;
  }
};

// A run that ended with an answer.
struct TunedRun {
  FunctionId function = 0;
  Key step;  // hash of function, generation, input, apiVersion and kind
  Key key;
  TunedEntry entry;                   // as which its answer is stored
  const DriftKinds* kinds = nullptr;  // of its request
  bool stored = true;                 // false: the answer is not stored
  bool for_caller = true;             // false: a refresh
  double tune_share = 0.1;            // the setting
};

enum class DriftVerdict : uint8_t {
  kHit,
  // The misses, in the order in which they are checked.
  kRead,      // the step reads what differs
  kUnproven,  // not repeated, or not proven
  kOld,       // the entry's call or the proof is too long ago
  kMoved,     // a kind differs that is not known to tick
};

struct Judgement {
  DriftVerdict verdict = DriftVerdict::kUnproven;
  size_t moved = 0;  // with kMoved: the index of that kind
};

// The news of a run.
enum class RunNews : uint8_t {
  kNothing,  // equal drift, or an entry that the evidence does not follow
  kRepeat,   // other drift, the same answer
  kOther,    // other drift, another answer
};

struct RunNote {
  RunNews news = RunNews::kNothing;
  bool questions_due = false;
};

// A step as people see it. It has names, and no values.
struct StepNames {
  std::string input_kind;    // empty: it has no input
  std::string input_digest;  // the first digits
  std::string api_version;   // of the composite
  std::string kind;          // of the composite
  std::string composite;     // one of them: "Bucket team-a/logs"
};

// The news of an answer to a question.
struct Finding {
  bool reads = false;  // the step reads drift, or more than was known
  bool varies = false;
  uint64_t revoked_hits = 0;  // they were across drift that the step reads
};

class Evidence {
 public:
  // Limit of memory. Beyond it, the least recently used keys are dropped.
  static constexpr size_t kMostBytes = 16 << 20;
  static constexpr size_t kMostBytesOfKey = 400;
  // Limit of steps. Beyond it, keys of other steps get no evidence.
  static constexpr size_t kMostSteps = 4096;

  static constexpr int kDrifts = 3;
  static constexpr absl::Duration kRecent = absl::Hours(1);
  static constexpr absl::Duration kProofCounts = absl::Hours(24);

  // The budget of a function, in questions.
  static constexpr double kFirstBudget = 40;
  static constexpr double kMostBudget = 400;
  static constexpr double kBudgetOfHit = 0.5;
  // How many proofs, and so questions, of a function run at once.
  static constexpr int kProofsAtOnce = 2;

  // How long a step gets no questions after an error and where it varies, and
  // how long a function gets none after a failure. The first two double.
  static constexpr absl::Duration kErrorPause = absl::Seconds(10);
  static constexpr absl::Duration kLongestErrorPause = absl::Minutes(10);
  static constexpr absl::Duration kVariesPause = absl::Minutes(10);
  static constexpr absl::Duration kLongestVariesPause = absl::Hours(24);
  static constexpr absl::Duration kFailurePause = absl::Seconds(10);

  // Tests switch off one rule, to show what it is for.
  struct Rules {
    int drifts = kDrifts;
    bool ticking = true;
    bool recent = true;
  };

  Evidence() : Evidence(Rules()) {}
  explicit Evidence(const Rules& rules) : rules_(rules) {}

  // The gate: may the entry answer a request of equal key and other drift?
  // `started` and `drift` are the entry's, `kinds` are the request's.
  Judgement Judge(const Key& key, absl::Time started, const Key& drift,
                  const DriftKinds& kinds, absl::Time now);
  // It did so. This adds to the function's budget, if no refresh runs instead.
  void OnHit(const Key& key, const DriftKinds& kinds, bool saves_run = true);

  // There is evidence of this key. With `started`: it describes that entry.
  bool Knows(const Key& key, absl::optional<absl::Time> started = {});
  // A run of this key, which has not begun, may make questions due.
  bool MayAskLater(FunctionId function, const Key& step, const Key& key,
                   double tune_share, absl::Time now);

  // Learns of a run with an answer, after its fill. `older` is the entry of
  // the key that was found before the run, if any, fresh or not.
  RunNote OnRun(const TunedRun& run, const TunedEntry* older, absl::Time now);
  // A run failed: the function gets no questions for kFailurePause.
  void OnFailure(FunctionId function, absl::Time now);

  // A proof that runs. A plain value; the caller keeps it.
  struct Running {
    Proof proof;
    FunctionId function;
    Key step;
    Key key;
    absl::Time began;
    // Shown with the step if it reads or varies. Set before an answer that
    // differs is reported.
    StepNames seen = {};
  };
  // Begins a proof for the answer that the key's evidence describes. Null if
  // the key, its step or its function may not be asked now.
  absl::optional<Running> Begin(const Key& key, double tune_share,
                                absl::Time now);
  // Takes the next question from the budget. False if the proof has ended: also
  // for lack of budget, or as its evidence is gone or its step is silent now.
  bool Take(Running* running, absl::Time now);
  // Reports the answer to the question that was taken.
  Finding Report(Running* running, Answered answer, absl::Time now);
  // Ends the proof without an answer, if it has not ended.
  void Abort(Running* running);

  // Purges. A running proof of what is forgotten ends with its next question.
  void Forget(const Key& key);
  // With its steps. Null: all functions.
  void ForgetFunction(absl::optional<FunctionId> function);

  struct FunctionFigures {
    double budget = kFirstBudget;  // that is left
    uint64_t hits = 0;             // across drift
    uint64_t revoked_hits = 0;
    std::array<uint64_t, 3> questions{};  // by Answered
    std::array<uint64_t, 4> proofs{};     // by ProofResult
    size_t keys_repeating = 0;            // kDrifts drifts, not proven
    size_t keys_proven = 0;
    size_t steps_read = 0;
    size_t steps_vary = 0;
  };
  // The functions that had a run. Visits all keys: some milliseconds at the
  // limit.
  absl::flat_hash_map<FunctionId, FunctionFigures> Figures(absl::Time now);
  // Those of one function without keys and steps.
  FunctionFigures CountsOf(FunctionId function);

  struct StepFigures {
    Key step;
    Reads reads = Reads::kNothing;
    absl::Time read_since = absl::InfiniteFuture();
    absl::Time varies_since = absl::InfiniteFuture();  // infinite: does not
    absl::Time no_questions_until = absl::InfinitePast();
    StepNames seen;  // where it was first seen to read or vary
  };
  // The steps that read or vary.
  std::vector<StepFigures> StepsOf(FunctionId function);

  size_t bytes();

 private:
  struct Step {
    FunctionId function;
    StepFigures figures;
    // The last pauses, 0 where the proof before ended otherwise.
    absl::Duration error_pause;
    absl::Duration varies_pause;
    // Hits across drift that are not revoked yet: those where times differed,
    // and those where versions alone did.
    uint64_t hits_of_times = 0;
    uint64_t hits_of_versions = 0;
  };

  struct Function {
    int proofs = 0;  // that run
    absl::Time failed = absl::InfinitePast();
    FunctionFigures figures;
  };

  // The evidence of a key. It describes one entry: the last run's.
  struct Known {
    Key key;
    Step* step;
    TunedEntry entry;
    absl::Time proven = absl::InfinitePast();  // when that proof began
    // A hash of the request's kinds, and 32 bits of each kind's value. Equal
    // bits of other values (one in 4e9) can hide a kind that moved first. The
    // questions altered it, too.
    uint64_t shape = 0;
    std::unique_ptr<uint32_t[]> values;
    uint32_t ticked = 0;  // bit i: kind i is known to tick
    uint8_t kinds = 0;
    // How many different drifts got the answer, up to three, and the first two.
    uint8_t drifts = 0;
    std::array<uint64_t, 2> seen{};
    bool repeated = false;
  };
  using Keys = std::list<Known>;

  // The difference between a request's kinds and the evidence's.
  struct Difference {
    bool known = false;  // false: their kinds are not the same
    uint32_t kinds = 0;  // bit i: kind i
    bool times = false;
  };
  static Difference Compare(const Known& known, const DriftKinds& kinds);
  static void AddDrift(Known* known, const Key& drift);
  static void Describe(Known* known, const TunedRun& run);
  static size_t BytesOf(const Known& known);

  Known* Find(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Known* Create(const TunedRun& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(Keys::iterator known) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RunNews Learn(const TunedRun& run, const TunedEntry* older, bool* at_once)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool Proven(const Known& known, absl::Time now) {
    return now - known.proven <= kProofCounts;
  }
  bool Repeated(const Known& known) const {
    return known.drifts >= rules_.drifts;
  }
  bool Silent(const Step& step, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The function may get one more proof, of this key. The budget has to suffice
  // for those that run as well: two that share what is left would both end
  // without a result.
  bool MayBegin(const Function& function, const Key& key, double tune_share)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayAsk(const Known& known, double tune_share, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records what a running proof says of its step, and its end.
  Finding LearnReads(const Running& running, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const Running& running) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Rules rules_;
  Mutex mutex_;
  Keys keys_ ABSL_GUARDED_BY(mutex_);  // the most recently used key is first
  absl::flat_hash_map<Key, Keys::iterator> by_key_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<Key, std::unique_ptr<Step>> steps_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<FunctionId, Function> functions_ ABSL_GUARDED_BY(mutex_);
  // The keys whose proof runs, and what of it still counts.
  struct Counts {
    FunctionId function = 0;
    bool key = true;   // false: the evidence is gone, or has another answer
    bool step = true;  // false: the step was forgotten
  };
  absl::flat_hash_map<Key, Counts> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_EVIDENCE_H_
