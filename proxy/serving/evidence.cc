// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/evidence.h"

#include <algorithm>
#include <utility>

namespace fncache::proxy::serving {
namespace {

// Memory of a key beside sizeof(Known) and its values: the links of the list,
// the slot in the map at its lowest load, and malloc's own for both blocks.
constexpr size_t kBytesBesideKnown = 16 + 57 + 2 * 16;
// Memory of a step, with its names and slot.
constexpr size_t kBytesOfStep = 1024;
// Characters of the composite's name, and of each other name.
constexpr size_t kMostSeen = 256;
constexpr size_t kMostName = 64;

StepNames Cut(const StepNames& names) {
  return {names.input_kind.substr(0, kMostName),
          names.input_digest.substr(0, kMostName),
          names.api_version.substr(0, kMostName),
          names.kind.substr(0, kMostName),
          names.composite.substr(0, kMostSeen)};
}

// The kinds' names, and how their drift is written, as one number. Their order
// is part of it.
uint64_t ShapeOf(const DriftKinds& kinds) {
  uint64_t shape = kinds.size();
  for (size_t i = 0; i < kinds.size(); ++i) {
    for (const uint64_t part : {kinds[i].kind, kinds[i].form})
      shape = (shape ^ part) * 0x9e3779b97f4a7c15u + 1;
  }
  return shape;
}

// The next one of pauses that double.
absl::Duration NextPause(absl::Duration last, absl::Duration first,
                         absl::Duration longest) {
  return last == absl::ZeroDuration() ? first : std::min(2 * last, longest);
}

}  // namespace

// --- The evidence of a key. ---

size_t Evidence::BytesOf(const Known& known) {
  constexpr size_t kFixed = sizeof(Known) + kBytesBesideKnown;
  static_assert(kFixed + kMostKinds * sizeof(uint32_t) <= kMostBytesOfKey,
                "a key with evidence takes too much memory");
  return kFixed + known.kinds * sizeof(uint32_t);
}

Evidence::Known* Evidence::Find(const Key& key) {
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  keys_.splice(keys_.begin(), keys_, it->second);
  return &*it->second;
}

// Begins the evidence of the run's key. Null if there are too many steps.
Evidence::Known* Evidence::Create(const TunedRun& run) {
  const auto step = steps_.find(run.step);
  Known known;
  if (step != steps_.end()) {
    known.step = step->second.get();
  } else {
    if (steps_.size() == kMostSteps) return nullptr;
    auto made = std::make_unique<Step>();
    made->function = run.function;
    made->figures.step = run.step;
    known.step = made.get();
    steps_.emplace(run.step, std::move(made));
    bytes_ += kBytesOfStep;
  }
  known.key = run.key;
  known.kinds = static_cast<uint8_t>(run.kinds->size());
  known.shape = ShapeOf(*run.kinds);
  known.values = std::make_unique<uint32_t[]>(known.kinds);
  Describe(&known, run);
  bytes_ += BytesOf(known);
  keys_.push_front(std::move(known));
  by_key_[run.key] = keys_.begin();
  while (bytes_ > kMostBytes && keys_.size() > 1) Drop(std::prev(keys_.end()));
  return &keys_.front();
}

void Evidence::Drop(Keys::iterator known) {
  const auto running = running_.find(known->key);
  if (running != running_.end()) running->second.key = false;
  bytes_ -= BytesOf(*known);
  by_key_.erase(known->key);
  keys_.erase(known);
}

// From now on the evidence describes the entry of this run. Precondition: their
// kinds are the same.
void Evidence::Describe(Known* known, const TunedRun& run) {
  known->entry = run.entry;
  for (size_t i = 0; i < known->kinds; ++i)
    known->values[i] = static_cast<uint32_t>((*run.kinds)[i].value);
  AddDrift(known, run.entry.drift);
}

void Evidence::AddDrift(Known* known, const Key& drift) {
  for (size_t i = 0; i < known->drifts && i < known->seen.size(); ++i)
    if (known->seen[i] == drift.low) return;
  if (known->drifts < known->seen.size())
    known->seen[known->drifts] = drift.low;
  if (known->drifts < kDrifts) ++known->drifts;
}

Evidence::Difference Evidence::Compare(const Known& known,
                                       const DriftKinds& kinds) {
  Difference difference;
  if (kinds.size() != known.kinds || ShapeOf(kinds) != known.shape)
    return difference;
  difference.known = true;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (static_cast<uint32_t>(kinds[i].value) == known.values[i]) continue;
    difference.kinds |= uint32_t{1} << i;
    if (kinds[i].is_time) difference.times = true;
  }
  return difference;
}

// --- The gate. ---

Judgement Evidence::Judge(const Key& key, absl::Time started, const Key& drift,
                          const DriftKinds& kinds, absl::Time now) {
  MutexLock lock(&mutex_);
  const Known* const known = Find(key);
  if (known == nullptr || known->entry.started != started ||
      known->entry.drift != drift)
    return {};
  const Difference difference = Compare(*known, kinds);
  // Digests of drift differ, so some kind must.
  if (!difference.known || difference.kinds == 0) return {};
  const Reads reads = known->step->figures.reads;
  if (reads != Reads::kNothing && (reads != Reads::kTimes || difference.times))
    return {DriftVerdict::kRead};
  // A proof about versions alone needs no check here: its step reads times.
  if (!Repeated(*known) || known->proven == absl::InfinitePast()) return {};
  if (rules_.recent && (now - started >= kRecent || !Proven(*known, now)))
    return {DriftVerdict::kOld};
  const uint32_t moved = difference.kinds & ~known->ticked;
  if (rules_.ticking && moved != 0)
    return {DriftVerdict::kMoved, static_cast<size_t>(__builtin_ctz(moved))};
  return {DriftVerdict::kHit};
}

void Evidence::OnHit(const Key& key, const DriftKinds& kinds, bool saves_run) {
  MutexLock lock(&mutex_);
  const Known* const known = Find(key);
  if (known == nullptr) return;
  Step* const step = known->step;
  // In doubt, times differ: then a step that reads them revokes it.
  const Difference difference = Compare(*known, kinds);
  const bool times = !difference.known || difference.times;
  ++(times ? step->hits_of_times : step->hits_of_versions);
  FunctionFigures& figures = functions_[step->function].figures;
  ++figures.hits;
  if (!saves_run) return;
  figures.budget = std::min(figures.budget + kBudgetOfHit, kMostBudget);
}

bool Evidence::Knows(const Key& key, absl::optional<absl::Time> started) {
  MutexLock lock(&mutex_);
  const auto found = by_key_.find(key);
  return found != by_key_.end() &&
         (!started.has_value() || found->second->entry.started == *started);
}

bool Evidence::MayAskLater(FunctionId function, const Key& step, const Key& key,
                           double tune_share, absl::Time now) {
  MutexLock lock(&mutex_);
  // Also where the key is proven: another answer is asked about at once.
  const auto found = steps_.find(step);
  return (found == steps_.end() || !Silent(*found->second, now)) &&
         MayBegin(functions_[function], key, tune_share);
}

// --- Runs. ---

RunNote Evidence::OnRun(const TunedRun& run, const TunedEntry* older,
                        absl::Time now) {
  MutexLock lock(&mutex_);
  if (run.for_caller) {
    double& budget = functions_[run.function].figures.budget;
    budget = std::min(budget + run.tune_share, kMostBudget);
  }
  bool at_once = false;
  RunNote note;
  note.news = Learn(run, older, &at_once);
  if (note.news == RunNews::kNothing) return note;
  const Known* const known = Find(run.key);
  note.questions_due =
      known != nullptr && MayAsk(*known, run.tune_share, now) &&
      (note.news == RunNews::kRepeat ? Repeated(*known) : at_once);
  return note;
}

// `at_once` becomes true where the answer is another one, and only drift that
// the step is not known to read differed.
RunNews Evidence::Learn(const TunedRun& run, const TunedEntry* older,
                        bool* at_once) {
  Known* known = Find(run.key);
  if (!run.stored || run.kinds->size() > kMostKinds) {
    if (known != nullptr) Drop(keys_.begin());
    return RunNews::kNothing;
  }
  // An entry that came from elsewhere since, with another answer.
  if (known != nullptr && older != nullptr &&
      older->started > known->entry.started &&
      !older->SameAnswer(known->entry)) {
    Drop(keys_.begin());
    known = nullptr;
  }
  const TunedEntry* const before = known != nullptr ? &known->entry : older;
  if (before == nullptr) return RunNews::kNothing;
  const bool same = before->SameAnswer(run.entry);
  const bool equal_drift = before->drift == run.entry.drift;
  if (before->started >= run.entry.started) {
    // A later call's entry is kept. In doubt, nothing is known of it.
    if (known != nullptr && !same) Drop(keys_.begin());
    return RunNews::kNothing;
  }
  const Difference difference =
      known != nullptr ? Compare(*known, *run.kinds) : Difference();
  if (same && difference.known) {
    if (!equal_drift && known->repeated) known->ticked |= difference.kinds;
    if (!equal_drift) known->repeated = true;
    Describe(known, run);
    return equal_drift ? RunNews::kNothing : RunNews::kRepeat;
  }
  // The evidence begins, or begins once more.
  const Key older_drift = before->drift;
  if (known != nullptr) Drop(keys_.begin());
  if (equal_drift) return RunNews::kNothing;
  known = Create(run);
  if (known == nullptr) return RunNews::kNothing;
  if (same) {
    AddDrift(known, older_drift);
    known->repeated = true;
    return RunNews::kRepeat;
  }
  const Reads reads = known->step->figures.reads;
  *at_once =
      reads == Reads::kNothing || (difference.known && !difference.times);
  return RunNews::kOther;
}

void Evidence::OnFailure(FunctionId function, absl::Time now) {
  MutexLock lock(&mutex_);
  functions_[function].failed = now;
}

// --- Questions. ---

// True while the step, or all of its function, gets no questions.
bool Evidence::Silent(const Step& step, absl::Time now) {
  return step.figures.reads == Reads::kAll ||
         now < step.figures.no_questions_until ||
         now - functions_[step.function].failed < kFailurePause;
}

bool Evidence::MayBegin(const Function& function, const Key& key,
                        double tune_share) {
  return tune_share > 0 && function.proofs < kProofsAtOnce &&
         function.figures.budget >= Proof::kQuestions * (function.proofs + 1) &&
         !running_.contains(key);
}

bool Evidence::MayAsk(const Known& known, double tune_share, absl::Time now) {
  const Step& step = *known.step;
  // Where nothing is decided, also a key that was proven before is asked.
  const bool proven =
      Proven(known, now) && step.figures.reads != Reads::kUndecided;
  return !proven && !Silent(step, now) &&
         MayBegin(functions_[step.function], known.key, tune_share);
}

absl::optional<Evidence::Running> Evidence::Begin(const Key& key,
                                                  double tune_share,
                                                  absl::Time now) {
  MutexLock lock(&mutex_);
  const Known* const known = Find(key);
  if (known == nullptr || !MayAsk(*known, tune_share, now))
    return absl::nullopt;
  const Step& step = *known->step;
  running_[key].function = step.function;
  ++functions_[step.function].proofs;
  return Running{Proof(step.figures.reads), step.function, step.figures.step,
                 key, now};
}

bool Evidence::Take(Running* running, absl::Time now) {
  MutexLock lock(&mutex_);
  if (running->proof.ended()) return false;
  double& budget = functions_[running->function].figures.budget;
  const auto step = steps_.find(running->step);
  // Times that another proof found to be read are not asked about any more. A
  // later proof asks about versions alone.
  if (budget < 1 || !running_[running->key].key || step == steps_.end() ||
      Silent(*step->second, now) ||
      (!running->proof.versions_alone() &&
       step->second->figures.reads != Reads::kNothing)) {
    running->proof.Abort();
    End(*running);
    return false;
  }
  budget -= 1;
  return true;
}

Finding Evidence::Report(Running* running, Answered answer, absl::Time now) {
  MutexLock lock(&mutex_);
  Function& function = functions_[running->function];
  ++function.figures.questions[static_cast<size_t>(answer)];
  // A failure of any call of the function ends its proofs.
  const bool failed = function.failed >= running->began;
  running->proof.Take(failed ? Answered::kNone : answer);
  Finding finding = LearnReads(*running, now);
  if (!running->proof.ended()) return finding;
  const auto found = steps_.find(running->step);
  if (found != steps_.end() && running_[running->key].step) {
    Step& step = *found->second;
    StepFigures& figures = step.figures;
    switch (running->proof.result()) {
      case ProofResult::kProven:
      case ProofResult::kRead:
        step.error_pause = step.varies_pause = absl::ZeroDuration();
        figures.varies_since = absl::InfiniteFuture();
        break;
      case ProofResult::kVaries:
        step.varies_pause =
            NextPause(step.varies_pause, kVariesPause, kLongestVariesPause);
        figures.no_questions_until = now + step.varies_pause;
        finding.varies = figures.varies_since == absl::InfiniteFuture();
        figures.varies_since = std::min(figures.varies_since, now);
        if (finding.varies && figures.reads == Reads::kNothing)
          figures.seen = Cut(running->seen);
        break;
      case ProofResult::kFailed:
        step.error_pause =
            NextPause(step.error_pause, kErrorPause, kLongestErrorPause);
        figures.no_questions_until = now + step.error_pause;
        break;
    }
  }
  End(*running);
  return finding;
}

void Evidence::Abort(Running* running) {
  MutexLock lock(&mutex_);
  if (running->proof.ended()) return;
  running->proof.Abort();
  End(*running);
}

Finding Evidence::LearnReads(const Running& running, absl::Time now) {
  Finding finding;
  const auto it = steps_.find(running.step);
  if (it == steps_.end() || !running_[running.key].step) return finding;
  Step& step = *it->second;
  const Reads reads = running.proof.reads();
  if (reads <= step.figures.reads) return finding;
  if (step.figures.reads == Reads::kNothing) {
    step.figures.read_since = now;
    step.figures.seen = Cut(running.seen);
  }
  step.figures.reads = reads;
  finding.reads = true;
  finding.revoked_hits = std::exchange(step.hits_of_times, 0);
  if (reads == Reads::kAll)
    finding.revoked_hits += std::exchange(step.hits_of_versions, 0);
  functions_[step.function].figures.revoked_hits += finding.revoked_hits;
  return finding;
}

void Evidence::End(const Running& running) {
  Function& function = functions_[running.function];
  --function.proofs;
  ++function.figures.proofs[static_cast<size_t>(running.proof.result())];
  const auto counts = running_.find(running.key);
  Known* const known = Find(running.key);
  if (running.proof.proven() && counts->second.key && known != nullptr)
    known->proven = running.began;
  running_.erase(counts);
}

// --- Purges and figures. ---

void Evidence::Forget(const Key& key) {
  MutexLock lock(&mutex_);
  if (Find(key) != nullptr) Drop(keys_.begin());
}

void Evidence::ForgetFunction(absl::optional<FunctionId> function) {
  MutexLock lock(&mutex_);
  const auto forgotten = [function](FunctionId of) {
    return !function.has_value() || of == *function;
  };
  for (auto it = keys_.begin(); it != keys_.end();) {
    const auto known = it++;
    if (forgotten(known->step->function)) Drop(known);
  }
  for (auto it = steps_.begin(); it != steps_.end();) {
    const auto step = it++;
    if (!forgotten(step->second->function)) continue;
    bytes_ -= kBytesOfStep;
    steps_.erase(step);
  }
  for (auto& running : running_)
    if (forgotten(running.second.function)) running.second.step = false;
}

absl::flat_hash_map<FunctionId, Evidence::FunctionFigures> Evidence::Figures(
    absl::Time now) {
  MutexLock lock(&mutex_);
  absl::flat_hash_map<FunctionId, FunctionFigures> all;
  for (const auto& function : functions_)
    all[function.first] = function.second.figures;
  for (const Known& known : keys_) {
    FunctionFigures& figures = all[known.step->function];
    if (!Repeated(known)) continue;
    ++(Proven(known, now) ? figures.keys_proven : figures.keys_repeating);
  }
  for (const auto& step : steps_) {
    FunctionFigures& figures = all[step.second->function];
    if (step.second->figures.reads != Reads::kNothing) ++figures.steps_read;
    if (step.second->figures.varies_since != absl::InfiniteFuture())
      ++figures.steps_vary;
  }
  return all;
}

Evidence::FunctionFigures Evidence::CountsOf(FunctionId function) {
  MutexLock lock(&mutex_);
  const auto found = functions_.find(function);
  return found == functions_.end() ? FunctionFigures() : found->second.figures;
}

std::vector<Evidence::StepFigures> Evidence::StepsOf(FunctionId function) {
  MutexLock lock(&mutex_);
  std::vector<StepFigures> found;
  for (const auto& step : steps_) {
    const StepFigures& figures = step.second->figures;
    if (step.second->function == function &&
        (figures.reads != Reads::kNothing ||
         figures.varies_since != absl::InfiniteFuture()))
      found.push_back(figures);
  }
  std::sort(found.begin(), found.end(),
            [](const StepFigures& a, const StepFigures& b) {
              return a.step.Bytes() < b.step.Bytes();
            });
  return found;
}

size_t Evidence::bytes() {
  MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace fncache::proxy::serving
