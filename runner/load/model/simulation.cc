// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/simulation.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/mutex.h"
#include "common/sha256.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/composed_resources.h"
#include "runner/engine/composite_schema.h"
#include "runner/engine/conditions.h"
#include "runner/engine/metadata.h"
#include "runner/engine/object_store.h"
#include "runner/engine/rendered_composite.h"
#include "runner/engine/requirements.h"
#include "runner/load/model/breaker.h"
#include "runner/load/model/changed_fields.h"
#include "runner/load/model/cluster.h"
#include "runner/load/model/random.h"
#include "runner/text/object.h"
#include "runner/text/rfc3339.h"

namespace fncache::runner::load::model {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

// Purposes of random numbers.
enum Purpose : uint64_t {
  kForCluster,
  kForRequeue,
  kForResync,
  kForPhase,
  kForProvider,
  kForFlapping,
  kForChurn,  // and the kinds of it behind
};

// How long a reconcile takes while composites settle, so that a function whose
// answers never settle does not stop the time.
constexpr absl::Duration kSettlingRound = absl::Milliseconds(100);
// Settling ends so long before the run begins.
constexpr absl::Duration kSinceSettled = absl::Minutes(10);
constexpr absl::Duration kLongestBackoff = absl::Seconds(30);
// Answers are compared in the last pipelines before a composite counts as one
// that never settles: several, since not every two of them need to differ.
constexpr int kCompared = 6;
// How much of what settled composites observe is kept unpacked, so that the
// open and the closed loop need not unpack and hash it for every pipeline.
constexpr size_t kMostUnpacked = size_t{128} << 20;
// How many reconciles one turn of a queue starts.
constexpr int kStartsInTurn = 32;
constexpr char kPollAnnotation[] = "crossplane.io/poll-interval";

absl::Duration Jitter(absl::Duration duration, SplitMix64* random) {
  return duration + random->Between(-0.1, 0.1) * duration;
}

absl::Duration Backoff(int failures) {  // of the first it is 0
  return failures >= 5 ? kLongestBackoff : absl::Seconds(1 << failures);
}

void Append(const google::protobuf::Message& message, std::string* bytes) {
  google::protobuf::io::StringOutputStream stream(bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
}

uint64_t DigestOf(const engine::PipelineOutcome& outcome, bool responsive) {
  std::string bytes(1, responsive ? '1' : '0');
  Append(outcome.desired, &bytes);
  for (const fn::Condition& condition : outcome.conditions) {
    Append(condition, &bytes);
  }
  return absl::HashOf(bytes);
}

engine::Condition SystemCondition(absl::string_view type, bool status,
                                  absl::string_view reason, int64_t generation,
                                  absl::Time now) {
  engine::Condition condition;
  condition.type = std::string(type);
  condition.status = status ? "True" : "False";
  condition.reason = std::string(reason);
  condition.observed_generation = generation;
  condition.last_transition_time = now;
  return condition;
}

engine::Condition Responsive(bool closed, int64_t generation, absl::Time now) {
  engine::Condition condition = SystemCondition(
      "Responsive", closed, closed ? "WatchCircuitClosed" : "WatchCircuitOpen",
      generation, now);
  if (!closed) condition.message = "Too many watch events";
  return condition;
}

engine::Condition ReadyCondition(fn::Ready ready,
                                 const std::vector<std::string>& unready,
                                 int64_t generation, absl::Time now) {
  if (ready == fn::READY_TRUE ||
      (ready != fn::READY_FALSE && unready.empty())) {
    return SystemCondition("Ready", true, "Available", generation, now);
  }
  engine::Condition condition =
      SystemCondition("Ready", false, "Creating", generation, now);
  if (ready != fn::READY_FALSE) {
    condition.message =
        absl::StrCat("Unready resources: ", engine::SomeOf(unready));
  }
  return condition;
}

bool IsReady(const Struct& composite) {
  for (const engine::Condition& condition : engine::ConditionsOf(composite)) {
    if (condition.type == "Ready") return condition.status == "True";
  }
  return false;
}

// Whether a pipeline says of anything whether it is ready.
bool MarksReadiness(const fn::State& desired) {
  if (desired.composite().ready() != fn::READY_UNSPECIFIED) return true;
  return std::any_of(desired.resources().begin(), desired.resources().end(),
                     [](const auto& entry) {
                       return entry.second.ready() != fn::READY_UNSPECIFIED;
                     });
}

bool HasFinalizer(const Struct& composite) {
  const ListValue* const list =
      text::FindList(composite, {"metadata", "finalizers"});
  return list != nullptr &&
         std::any_of(list->values().begin(), list->values().end(),
                     [](const Value& value) {
                       return value.string_value() == kFinalizer;
                     });
}

// A part of the composite, as an apply begins.
Struct PartOf(const Struct& composite) {
  Struct part;
  for (const char* const field : {"apiVersion", "kind"}) {
    text::SetText(&part, {field}, text::FindText(composite, {field}));
  }
  return part;
}

uint64_t Fnv(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

// What a step required in the composite's last reconcile.
struct Seed {
  int step = 0;
  std::string name;
  fn::ResourceSelector selector;
};

bool Same(const std::vector<Seed>& a, const std::vector<Seed>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const Seed& x, const Seed& y) {
        return x.step == y.step && x.name == y.name &&
               x.selector.SerializeAsString() == y.selector.SerializeAsString();
      });
}

// What many composites share.
struct Template {
  engine::EngineInput input;
  engine::CompositeSchema schema = engine::CompositeSchema::kModern;
  std::string error;  // why none of its composites can be reconciled
  std::string revision;
  size_t pool = 0;
  std::shared_ptr<const engine::ObjectStore> objects;
};

// The workers of one kind of XR, and what waits for them.
struct Pool {
  std::string kind;
  int busy = 0;
  bool pump_is_due = false;
  std::deque<int> waiting;
};

std::shared_ptr<const engine::ObjectStore> StoreOf(
    const engine::EngineInput& input) {
  auto store = std::make_shared<engine::ObjectStore>();
  if (input.required != nullptr) store->Add(input.required);
  if (input.credentials != nullptr) {
    for (const Struct& credential : *input.credentials) {
      Struct secret = credential;
      if (text::FindText(secret, {"kind"}).empty()) {
        text::SetText(&secret, {"apiVersion"}, "v1");
        text::SetText(&secret, {"kind"}, "Secret");
      }
      store->Add(std::move(secret));
    }
  }
  return store;
}

// kMostChanging of the fields at most, those that most composites have first.
std::vector<std::string> MostFrequent(
    const std::map<std::string, uint64_t>& times) {
  std::vector<std::pair<uint64_t, std::string>> sorted;
  for (const auto& [field, count] : times) sorted.emplace_back(count, field);
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> fields;
  for (auto& [count, field] : sorted) {
    if (fields.size() == kMostChanging) break;
    fields.push_back(std::move(field));
  }
  return fields;
}

struct Composite {
  // What the simulated cluster is about.
  Mutex mutex;
  std::unique_ptr<SimulatedCluster> cluster ABSL_GUARDED_BY(mutex);
  std::vector<Seed> seeds ABSL_GUARDED_BY(mutex);
  // Counts the writes to the XR by others than its reconciler.
  uint64_t foreign_writes ABSL_GUARDED_BY(mutex) = 0;
  int pending_provider ABSL_GUARDED_BY(mutex) = 0;  // resources
  // The last outcome that changed nothing, and what was there then.
  absl::optional<uint64_t> noop_digest ABSL_GUARDED_BY(mutex);
  uint64_t noop_version ABSL_GUARDED_BY(mutex) = 0;
  // Of what the pipeline of the run before wanted.
  absl::optional<uint64_t> wanted_digest ABSL_GUARDED_BY(mutex);
  // The outcome of the pipeline before. It is kept for the last rounds of a
  // composite that does not settle.
  std::unique_ptr<Wanted> wanted ABSL_GUARDED_BY(mutex);

  // What RunSettled observes, at a version; null where it is not kept.
  std::shared_ptr<const engine::SharedObserved> unpacked ABSL_GUARDED_BY(mutex);
  uint64_t unpacked_version ABSL_GUARDED_BY(mutex) = 0;

  // What the queue knows of it: guarded by Impl::mutex_.
  bool exists = false;
  bool queued = false;
  bool running = false;
  bool again = false;  // an event came while it ran
  bool after_restart = false;
  bool ready = false;
  bool was_ready = false;      // once, or more often
  bool settled_ready = false;  // after settling
  bool unmarked = false;       // Counters::unmarked
  absl::Time created;
  Trigger trigger = Trigger::kEvent;
  Trigger again_trigger = Trigger::kEvent;
  absl::Time due;
  uint64_t timer = 0;  // what was set before another number does not count
  int failures = 0;
  // While all settle: pipelines in a row that wrote, or failed, without any
  // other cause than the one before.
  int rounds = 0;
  // While all settle: pipelines that wrote or failed, whatever their cause. At
  // SettlingWrites() there is no further one.
  int settling_writes = 0;
  // Pipelines of the run that wanted something else than the one before; -1
  // once one wanted the same, or another has written to the composite.
  int differing = 0;
  std::set<std::string> changing;  // in the pipelines that were compared
  bool failed = false;             // the last pipeline
  size_t composed = 0;
  absl::Duration wait = absl::ZeroDuration();  // before jitter; 0 = for ever
  Breaker breaker;
  SplitMix64 requeue;
};

}  // namespace

const char* TriggerName(Trigger trigger) {
  switch (trigger) {
    case Trigger::kCreate:
      return "create";
    case Trigger::kEvent:
      return "event";
    case Trigger::kTimer:
      return "timer";
    case Trigger::kBackoff:
      return "backoff";
    case Trigger::kResync:
      return "resync";
    case Trigger::kRestart:
      return "restart";
    case Trigger::kDriver:
      return "driver";
  }
  return "";
}

absl::Status Validate(const ModelOptions& options) {
  const auto invalid = [](absl::string_view flag, absl::string_view range) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, " must be ", range));
  };
  if (options.composites < 1 || options.composites > 1000000) {
    return invalid("composites", "from 1 to 1000000");
  }
  if (options.workers < 1 || options.workers > 100000) {
    return invalid("workers", "from 1 to 100000");
  }
  if (options.reconcile_timeout < absl::Milliseconds(1)) {
    return invalid("reconcile-timeout", "at least 1ms");
  }
  if (options.poll_interval < absl::Seconds(1)) {
    return invalid("poll-interval", "at least 1s");
  }
  if (options.resync < absl::Seconds(1)) {
    return invalid("resync", "at least 1s");
  }
  if (options.ready_after < absl::ZeroDuration() ||
      options.ready_after > absl::Hours(24)) {
    return invalid("ready-after", "from 0s to 24h");
  }
  if (options.ready_writes < 0 || options.ready_writes > 1000) {
    return invalid("ready-writes", "from 0 to 1000");
  }
  for (const double rate : {options.churn.spec, options.churn.composed,
                            options.churn.status, options.churn.noop}) {
    if (!(rate >= 0 && rate <= 3.6e6)) {
      return invalid("churn", "KIND=N with N from 0 to 3600000");
    }
  }
  for (const ScenarioEvent& event : options.events) {
    if (event.at < absl::ZeroDuration()) {
      return absl::InvalidArgumentError(
          "--scenario: an event's time must be at least 0s");
    }
    if (event.kind == ScenarioEvent::Kind::kFlapping &&
        !(event.rate > 0 && event.rate <= 1000 && event.share >= 0 &&
          event.share <= 1)) {
      return absl::InvalidArgumentError(
          "--scenario: flapping must have a rate over 0, up to 1000 a second, "
          "and a share from 0 to 1");
    }
    if (event.kind == ScenarioEvent::Kind::kBurst &&
        (event.composites < 1 || event.composites > 1000000)) {
      return absl::InvalidArgumentError(
          "--scenario: a burst must have from 1 to 1000000 composites");
    }
  }
  return absl::OkStatus();
}

int SettlingWrites(const ModelOptions& options) {
  return 400 + 10 * options.ready_writes;
}

class Simulation::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(ModelOptions options, std::vector<engine::EngineInput> templates,
       client::FunctionCaller* caller, Scheduler* scheduler, Clock* wall,
       SimulationObserver* observer)
      : options_(std::move(options)),
        caller_(caller),
        scheduler_(scheduler),
        wall_(wall),
        observer_(observer),
        active_(scheduler) {
    for (engine::EngineInput& input : templates) AddTemplate(std::move(input));
    total_ = options_.composites;
    for (const ScenarioEvent& event : options_.events) {
      if (event.kind == ScenarioEvent::Kind::kBurst) total_ += event.composites;
    }
    composites_ = std::vector<Composite>(total_);
    next_composite_ = options_.composites;
    for (int i = 0; i < total_; ++i) {
      Composite& composite = composites_[i];
      composite.requeue = SplitMix64(options_.seed, i, kForRequeue);
      MutexLock lock(&composite.mutex);
      composite.cluster = std::make_unique<SimulatedCluster>(
          SplitMix64(options_.seed, i, kForCluster));
    }
  }

  absl::StatusOr<Settled> Settle(const std::function<bool()>& cancelled);
  void Start();
  void Stop() {
    MutexLock lock(&mutex_);
    stopped_ = true;
    idle_.SignalAll();
  }
  bool Idle() const {
    MutexLock lock(&mutex_);
    return in_flight_ == 0;
  }
  void WaitUntilIdle() {
    MutexLock lock(&mutex_);
    while (in_flight_ > 0) idle_.Wait(&mutex_);
  }
  void RunSettled(int i, absl::Time due,
                  std::function<void(const PipelineEnd&)> done);
  void Restart();
  void TouchRequired(const Struct& object);

  Counters counters() const {
    MutexLock lock(&mutex_);
    Counters counters = counters_;
    counters.in_flight = in_flight_;
    counters.settled_ok = settled_ok_;
    for (const Pool& pool : pools_) counters.queued += pool.waiting.size();
    return counters;
  }
  Demand demand() const;
  Restless restless() const;
  int composites() const { return total_; }
  std::string NameOf(int i) const;
  fn::State Observe(int i);
  size_t HeldBytes();

 private:
  // One reconcile, from a worker's taking it to its end.
  struct Job : public engine::PipelineObserver {
    void OnCall(const engine::CallReport& report) override {
      if (start.settling) {
        MutexLock lock(&impl->mutex_);
        ++impl->settled_.calls;
      }
      if (report.result.status.ok()) {
        seeds.erase(std::remove_if(seeds.begin(), seeds.end(),
                                   [&](const Seed& seed) {
                                     return seed.step == report.step_index;
                                   }),
                    seeds.end());
        const engine::Selectors selectors =
            engine::RequiredSelectors(report.result.response.requirements());
        // The runner seeds both kinds under required_resources; of one name
        // the later one counts.
        for (const auto* const some :
             {&selectors.extra_resources, &selectors.resources}) {
          for (const auto& [name, selector] : *some) {
            seeds.push_back({report.step_index, name, selector});
          }
        }
      }
      if (impl->observer_ != nullptr) impl->observer_->OnCall(start, report);
    }

    Impl* impl = nullptr;
    PipelineStart start;
    Struct composite;    // as the steps observe it
    bool first = false;  // R1
    bool responsive = true;
    uint64_t foreign_writes = 0;
    uint64_t version = 0;
    int writes = 0;
    std::vector<Seed> seeds;
    std::vector<int> costs;  // of the events of its writes
    bool ready = false;
    bool unmarked = false;
    bool differs = false;  // from what the one before wanted
    bool as_before = false;
    bool compared = false;              // with the pipeline before
    std::vector<std::string> changing;  // what differs then
    bool unchanged = false;             // what it saw is what there is
    bool pending = false;
    size_t composed = 0;
    // A created resource's: its name.
    std::vector<std::string> created;
    absl::Duration annotated = absl::ZeroDuration();  // poll interval
    std::function<void(const PipelineEnd&)> done;     // of RunSettled
  };

  const Template& TemplateOf(int i) const {
    return templates_[static_cast<size_t>(i) % templates_.size()];
  }
  Scheduler* active() const { return active_.load(); }
  absl::Time Now() const { return active()->Now(); }
  template <typename Run>
  void At(absl::Time time, Run run) {
    active()->At(time, [self = shared_from_this(),
                        run = std::move(run)]() mutable { run(); });
  }

  void AddTemplate(engine::EngineInput input);
  Struct NamedComposite(int i) const;
  void CreateOne(int i);
  void Begun(int i, absl::Time now);  // what goes on by itself from then on

  // The queue.
  void Enqueue(int i, Trigger trigger) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // While all settle: nothing reconciles it any more.
  bool AtItsBound(const Composite& composite) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return composite.rounds >= kSettlingRounds ||
           composite.settling_writes >= SettlingWrites(options_);
  }
  bool NeverSettled(const Composite& composite) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return AtItsBound(composite) && !composite.failed;
  }
  void PumpSoon(Pool* pool, absl::Time when)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pump(size_t pool);
  void SetTimer(int i, absl::Duration after, Trigger trigger)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Admitted(Composite* composite, int cost)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Watch events of writes, each with its cost.
  void Events(int i, const std::vector<int>& costs);

  // A reconcile.
  void Begin(int i, PipelineStart start);
  void Prepare(Job* job, fn::State* observed);
  void WriteFirstReferences(Job* job, Composite* composite, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(composite->mutex);
  std::shared_ptr<const engine::Composition> Seeded(
      const Template& shared, const std::vector<Seed>& seeds) const;
  void Launch(std::shared_ptr<Job> job,
              std::shared_ptr<const engine::SharedObserved> observed,
              std::vector<Seed> seeds);
  std::shared_ptr<const engine::SharedObserved> Unpacked(int i);
  fn::State ObserveLocked(Composite* composite)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(composite->mutex);
  void End(Job* job, engine::PipelineOutcome outcome);
  absl::Status Write(Job* job, engine::PipelineOutcome outcome);
  // Whether the answers differ from those before.
  void NoteAnswer(Job* job, Composite* composite, uint64_t digest) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(composite->mutex);
  static void NoteChanges(Job* job, Composite* composite,
                          const engine::PipelineOutcome& outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(composite->mutex);
  absl::Status WriteSuccess(Job* job, Composite* composite,
                            engine::PipelineOutcome outcome, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(composite->mutex);
  absl::Status WriteFailure(Job* job, Composite* composite,
                            const engine::PipelineOutcome& outcome,
                            absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(composite->mutex);
  void Finish(Job* job, const PipelineEnd& end);
  // Updates the counters. Returns how long after its creation the composite is
  // ready, if that is so for the first time.
  absl::optional<absl::Duration> Count(const Job& job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Requeue(int i, const Job& job, const PipelineEnd& end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void AddWrite(Job* job, int cost) {
    ++job->writes;
    job->costs.push_back(cost);
  }

  // Others that write.
  void ScheduleProvider(int i, const std::string& resource, absl::Time created,
                        int write);
  void ProviderWrites(int i, const std::string& resource, absl::Time created,
                      int write);
  void ScheduleResync(int i, absl::Duration after, SplitMix64 random);
  void ScheduleChurn(int i, int kind, double per_hour, absl::Time after,
                     SplitMix64 random);
  void ChurnWrite(int i, int kind, uint64_t which);
  void Happen(const ScenarioEvent& event);
  void Flap(int i, absl::Time next, absl::Time end, absl::Duration gap,
            bool up);

  const ModelOptions options_;
  client::FunctionCaller* const caller_;
  Scheduler* const scheduler_;
  Clock* const wall_;
  SimulationObserver* const observer_;
  std::vector<Template> templates_;
  int total_ = 0;

  std::unique_ptr<SimulatedScheduler> settling_;
  std::atomic<Scheduler*> active_;
  // Never moved; of each, what its own comments say.
  std::vector<Composite> composites_;

  std::atomic<size_t> unpacked_bytes_{0};

  mutable Mutex mutex_;
  CondVar idle_;
  std::vector<Pool> pools_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool settle_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  int next_composite_ ABSL_GUARDED_BY(mutex_) = 0;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  Settled settled_ ABSL_GUARDED_BY(mutex_);
  uint64_t settled_ok_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status first_failure_ ABSL_GUARDED_BY(mutex_);
};

void Simulation::Impl::AddTemplate(engine::EngineInput input) {
  Template shared;
  const auto schema = engine::SchemaOf(input.definition.get(), input.composite);
  if (schema.ok()) {
    shared.schema = *schema;
  } else {
    shared.error = std::string(schema.status().message());
  }
  shared.revision =
      absl::StrCat(input.composition->name, "-",
                   Sha256Hex(input.composition->name).substr(0, 7));
  shared.objects = StoreOf(input);
  const std::string kind =
      absl::StrCat(text::FindText(input.composite, {"apiVersion"}), "/",
                   text::FindText(input.composite, {"kind"}));
  MutexLock lock(&mutex_);
  while (shared.pool < pools_.size() && pools_[shared.pool].kind != kind) {
    ++shared.pool;
  }
  if (shared.pool == pools_.size()) {
    pools_.emplace_back();
    pools_.back().kind = kind;
  }
  shared.input = std::move(input);
  templates_.push_back(std::move(shared));
}

std::string Simulation::Impl::NameOf(int i) const {
  const Struct& composite = TemplateOf(i).input.composite;
  const std::string name = absl::StrFormat("%s-%06d",
                                           engine::NameOf(composite).empty()
                                               ? "composite"
                                               : engine::NameOf(composite),
                                           i);
  const std::string& own_namespace = engine::NamespaceOf(composite);
  return own_namespace.empty() ? name : absl::StrCat(own_namespace, "/", name);
}

Struct Simulation::Impl::NamedComposite(int i) const {
  const Template& shared = TemplateOf(i);
  Struct composite = shared.input.composite;
  std::string name = NameOf(i);
  name.erase(0, name.find('/') + 1);
  text::SetText(&composite, {"metadata", "name"}, name);
  text::Remove(&composite, {"metadata", "generateName"});
  engine::RemoveLabels(&composite, {engine::kCompositeLabel});
  const bool modern = shared.schema == engine::CompositeSchema::kModern;
  for (const char* const field : {"resourceRefs", "compositionRevisionRef"}) {
    if (modern) {
      text::Remove(&composite, {"spec", "crossplane", field});
    } else {
      text::Remove(&composite, {"spec", field});
    }
  }
  if (engine::FindOwnField(composite, shared.schema,
                           "compositionUpdatePolicy") == nullptr) {
    engine::SetOwnField(shared.schema, "compositionUpdatePolicy",
                        text::TextValue("Automatic"), &composite);
  }
  return composite;
}

void Simulation::Impl::CreateOne(int i) {
  Composite& composite = composites_[i];
  const absl::Time now = Now();
  {
    MutexLock lock(&composite.mutex);
    composite.cluster->Create(NamedComposite(i), now);
  }
  MutexLock lock(&mutex_);
  if (stopped_) return;
  composite.exists = true;
  composite.created = now;
  ++counters_.composites;
  if (Admitted(&composite, 1)) Enqueue(i, Trigger::kCreate);
}

void Simulation::Impl::Enqueue(int i, Trigger trigger) {
  Composite& composite = composites_[i];
  if (!composite.exists || stopped_) return;
  ++composite.timer;
  if (composite.running) {
    if (!composite.again) composite.again_trigger = trigger;
    composite.again = true;
    return;
  }
  if (composite.queued) return;
  absl::Time due = Now();
  if (settle_) {
    if (AtItsBound(composite)) return;
    due += kSettlingRound;
  }
  composite.queued = true;
  composite.trigger = trigger;
  composite.due = due;
  Pool* const pool = &pools_[TemplateOf(i).pool];
  pool->waiting.push_back(i);
  PumpSoon(pool, due);
}

void Simulation::Impl::PumpSoon(Pool* pool, absl::Time when) {
  if (pool->pump_is_due) return;
  pool->pump_is_due = true;
  const size_t index = static_cast<size_t>(pool - pools_.data());
  At(when, [this, index] { Pump(index); });
}

void Simulation::Impl::Pump(size_t index) {
  bool first = true;
  for (int started = 0;; ++started) {
    int i = 0;
    PipelineStart start;
    {
      MutexLock lock(&mutex_);
      Pool& pool = pools_[index];
      if (first) pool.pump_is_due = false;
      first = false;
      if (stopped_ || pool.waiting.empty() || pool.busy >= options_.workers) {
        return;
      }
      // The rest comes by the scheduler again: whoever runs it looks at other
      // things in between, and another thread may take its turn.
      if (started >= kStartsInTurn) return PumpSoon(&pool, Now());
      i = pool.waiting.front();
      pool.waiting.pop_front();
      ++pool.busy;
      ++in_flight_;
      Composite& composite = composites_[i];
      composite.queued = false;
      composite.running = true;
      start.composite = i;
      start.trigger = composite.trigger;
      start.started = Now();
      start.due = std::min(composite.due, start.started);
      start.settling = settle_;
    }
    Begin(i, start);
  }
}

void Simulation::Impl::SetTimer(int i, absl::Duration after, Trigger trigger) {
  const uint64_t timer = ++composites_[i].timer;
  if (!settle_) ++counters_.requeues;
  At(Now() + after, [this, i, timer, trigger] {
    MutexLock lock(&mutex_);
    if (composites_[i].timer == timer) Enqueue(i, trigger);
  });
}

bool Simulation::Impl::Admitted(Composite* composite, int cost) {
  if (!options_.breaker || !options_.realtime || settle_) return true;
  const bool was_open = composite->breaker.open();
  const bool admitted = composite->breaker.Admit(cost, Now());
  if (!was_open && composite->breaker.open()) ++counters_.breaker_openings;
  if (!admitted) ++counters_.events_dropped;
  return admitted;
}

void Simulation::Impl::Events(int i, const std::vector<int>& costs) {
  MutexLock lock(&mutex_);
  for (const int cost : costs) {
    if (Admitted(&composites_[i], cost)) Enqueue(i, Trigger::kEvent);
  }
}

// What the reconciler writes before the functions are called the first time.
void Simulation::Impl::WriteFirstReferences(Job* job, Composite* composite,
                                            absl::Time now) {
  SimulatedCluster* const cluster = composite->cluster.get();
  const Template& shared = TemplateOf(job->start.composite);
  const Writer writer{kRunner, ""};
  const auto write = [&](const std::function<void(Struct*)>& change) {
    Struct updated = cluster->Composite();
    change(&updated);
    if (cluster->UpdateComposite(std::move(updated), writer, now)) {
      AddWrite(job, 2);
    }
  };
  write([](Struct* object) {
    Value* const list = text::Ensure(object, {"metadata", "finalizers"});
    list->mutable_list_value()->add_values()->set_string_value(kFinalizer);
    engine::AddLabels(object,
                      {{engine::kCompositeLabel, engine::NameOf(*object)}});
  });
  const auto refer = [&](const char* field, const std::string& name) {
    write([&](Struct* object) {
      if (engine::FindOwnField(*object, shared.schema, field) != nullptr) {
        return;
      }
      Value reference;
      text::SetText(reference.mutable_struct_value(), {"name"}, name);
      engine::SetOwnField(shared.schema, field, std::move(reference), object);
    });
  };
  refer("compositionRef", shared.input.composition->name);
  refer("compositionRevisionRef", shared.revision);
}

void Simulation::Impl::Prepare(Job* job, fn::State* observed) {
  Composite& composite = composites_[job->start.composite];
  const absl::Time now = Now();
  {
    MutexLock lock(&mutex_);
    job->responsive = !composite.breaker.open(now);
    job->compared = job->start.settling
                        ? composite.rounds >= kSettlingRounds - kCompared ||
                              composite.settling_writes >=
                                  SettlingWrites(options_) - kCompared
                        : options_.start == StartFrom::kCreate &&
                              composite.differing >= kDiffering - kCompared &&
                              composite.differing < kDiffering;
  }
  MutexLock lock(&composite.mutex);
  SimulatedCluster* const cluster = composite.cluster.get();
  job->composite = cluster->Composite();
  job->first = !HasFinalizer(job->composite);
  if (job->first) {
    WriteFirstReferences(job, &composite, now);
    job->composite = cluster->Composite();
  } else {
    engine::SetConditions(
        {Responsive(job->responsive, engine::GenerationOf(job->composite),
                    now)},
        &job->composite);
  }
  *observed->mutable_composite()->mutable_resource() = job->composite;
  for (size_t k = 0; k < cluster->size(); ++k) {
    fn::Resource& resource =
        (*observed->mutable_resources())[cluster->ResourceNameOf(k)];
    Struct object = cluster->ComposedAt(k);
    resource.mutable_resource()->Swap(&object);
  }
  job->foreign_writes = composite.foreign_writes;
  job->version = cluster->resource_version();
}

std::shared_ptr<const engine::Composition> Simulation::Impl::Seeded(
    const Template& shared, const std::vector<Seed>& seeds) const {
  if (!options_.seed_requirements || seeds.empty()) {
    return shared.input.composition;
  }
  auto seeded =
      std::make_shared<engine::Composition>(*shared.input.composition);
  for (const Seed& seed : seeds) {
    if (static_cast<size_t>(seed.step) >= seeded->steps.size()) continue;
    seeded->steps[seed.step].required_resources.emplace_back(seed.name,
                                                             seed.selector);
  }
  return seeded;
}

void Simulation::Impl::Begin(int i, PipelineStart start) {
  auto job = std::make_shared<Job>();
  job->impl = this;
  job->start = start;
  fn::State observed;
  Prepare(job.get(), &observed);
  std::vector<Seed> seeds;
  {
    MutexLock lock(&composites_[i].mutex);
    seeds = composites_[i].seeds;
  }
  Launch(std::move(job),
         std::make_shared<const engine::SharedObserved>(std::move(observed)),
         std::move(seeds));
}

void Simulation::Impl::Launch(
    std::shared_ptr<Job> job,
    std::shared_ptr<const engine::SharedObserved> observed,
    std::vector<Seed> seeds) {
  const Template& shared = TemplateOf(job->start.composite);
  if (observer_ != nullptr) observer_->OnPipelineStart(job->start);
  if (!shared.error.empty()) {
    engine::PipelineOutcome outcome;
    outcome.status = absl::InvalidArgumentError(shared.error);
    End(job.get(), std::move(outcome));
    return;
  }
  engine::PipelineInput input;
  input.composition = Seeded(shared, seeds);
  input.shared_observed = std::move(observed);
  {
    MutexLock lock(&mutex_);  // TouchRequired replaces it
    input.objects = shared.objects;
  }
  input.schemas = shared.input.schemas;
  input.deadline = wall_->Now() + options_.reconcile_timeout;
  Job* const raw = job.get();
  engine::RunPipeline(std::move(input), caller_, wall_, raw,
                      [self = shared_from_this(),
                       job = std::move(job)](engine::PipelineOutcome outcome) {
                        self->End(job.get(), std::move(outcome));
                      });
}

absl::Status Simulation::Impl::WriteFailure(
    Job* job, Composite* composite, const engine::PipelineOutcome& outcome,
    absl::Time now) {
  SimulatedCluster* const cluster = composite->cluster.get();
  const std::string error =
      absl::StrCat("cannot compose resources: ", outcome.status.message());
  if (composite->foreign_writes == job->foreign_writes) {
    Struct updated = cluster->Composite();
    const int64_t generation = engine::GenerationOf(job->composite);
    if (!job->first) {
      engine::SetConditions({Responsive(job->responsive, generation, now)},
                            &updated);
    }
    if (outcome.fatal) {
      engine::SetFatalConditions(outcome.conditions,
                                 TemplateOf(job->start.composite).schema, error,
                                 now, &updated);
    } else {
      engine::Condition synced =
          SystemCondition("Synced", false, "ReconcileError", generation, now);
      synced.message = error;
      engine::SetConditions({synced}, &updated);
    }
    if (cluster->UpdateComposite(std::move(updated), {kRunner, "status"},
                                 now)) {
      AddWrite(job, 2);
    }
  }
  return outcome.status;
}

absl::Status Simulation::Impl::WriteSuccess(Job* job, Composite* composite,
                                            engine::PipelineOutcome outcome,
                                            absl::Time now) {
  SimulatedCluster* const cluster = composite->cluster.get();
  const Template& shared = TemplateOf(job->start.composite);
  Struct desired;
  desired.Swap(outcome.desired.mutable_composite()->mutable_resource());
  const fn::Ready ready = outcome.desired.composite().ready();

  std::vector<Struct> live;
  live.reserve(cluster->size());
  engine::ObservedResources observed;
  for (size_t k = 0; k < cluster->size(); ++k) {
    live.push_back(cluster->ComposedAt(k));
    observed[cluster->ResourceNameOf(k)] = &live.back();
  }
  SplitMix64 names(options_.seed, job->start.composite, kForCluster);
  auto composed =
      engine::Compose(job->composite, observed, std::move(outcome.desired),
                      [&names] { return names.Next(); });
  if (!composed.ok()) {
    engine::PipelineOutcome failed;
    failed.status = composed.status();
    return WriteFailure(job, composite, failed, now);
  }

  for (const Struct& gone : composed->deleted) {
    const size_t k = cluster->Find(
        engine::AnnotationOf(gone, engine::kResourceNameAnnotation));
    if (k == cluster->size()) continue;
    cluster->DeleteComposed(k);
    AddWrite(job, 1);
  }
  const bool referred = engine::FindOwnField(job->composite, shared.schema,
                                             "resourceRefs") != nullptr;
  if (referred || !composed->resources.empty()) {
    Struct part = PartOf(job->composite);
    engine::SetOwnField(shared.schema, "resourceRefs",
                        std::move(composed->references), &part);
    if (cluster->ApplyComposite(part, {kRunnerApply, ""}, now)) {
      AddWrite(job, 2);
    }
  }
  std::vector<engine::Readiness> readiness;
  for (engine::ComposedResource& resource : composed->resources) {
    readiness.push_back({resource.name, resource.ready});
    text::Remove(&resource.resource, {"status"});
    switch (cluster->ApplyComposed(resource.name, resource.resource, now)) {
      case SimulatedCluster::Effect::kNone:
        break;
      case SimulatedCluster::Effect::kCreated:
        AddWrite(job, 1);
        if (text::FindMap(resource.resource, {"spec"}) != nullptr) {
          job->created.push_back(resource.name);
        }
        break;
      case SimulatedCluster::Effect::kUpdated:
        AddWrite(job, 2);
        break;
    }
  }

  // The status that functions want and the conditions that were observed are
  // applied; Synced and Ready are written after that. The first reconcile's
  // second write fails, since its references changed the composite.
  Struct part = PartOf(job->composite);
  const auto status = desired.mutable_fields()->find("status");
  if (status != desired.mutable_fields()->end()) {
    text::Ensure(&part, {"status"})->Swap(&status->second);
  }
  if (!job->first) {
    engine::SetConditions(engine::ConditionsOf(job->composite), &part);
  }
  if (text::FindMap(part, {"status"}) != nullptr &&
      cluster->ApplyComposite(part, {kRunnerApply, "status"}, now)) {
    AddWrite(job, 2);
  }
  if (job->first) return absl::OkStatus();
  if (composite->foreign_writes != job->foreign_writes) {
    return absl::AbortedError(
        "cannot update composite resource status: the object has been "
        "modified; please apply your changes to the latest version and try "
        "again");
  }
  Struct updated = cluster->Composite();
  const int64_t generation = engine::GenerationOf(job->composite);
  std::vector<engine::Condition> conditions;
  for (const fn::Condition& condition : outcome.conditions) {
    if (engine::IsSystemCondition(condition.type())) continue;
    conditions.push_back(engine::FromFunction(condition, now));
  }
  conditions.push_back(
      SystemCondition("Synced", true, "ReconcileSuccess", generation, now));
  conditions.push_back(ReadyCondition(ready, engine::UnreadyOf(readiness).names,
                                      generation, now));
  engine::SetConditions(conditions, &updated);
  job->ready = IsReady(updated);
  if (cluster->UpdateComposite(std::move(updated), {kRunner, "status"}, now)) {
    AddWrite(job, 2);
  }
  return absl::OkStatus();
}

void Simulation::Impl::NoteAnswer(Job* job, Composite* composite,
                                  uint64_t digest) const {
  if (job->start.settling || options_.start != StartFrom::kCreate) return;
  const absl::optional<uint64_t> before = composite->wanted_digest;
  composite->wanted_digest = digest;
  job->as_before = before == digest || composite->foreign_writes > 0;
  job->differs = before.has_value() && before != digest;
}

// Compares the last pipelines before a composite counts as never settled.
void Simulation::Impl::NoteChanges(Job* job, Composite* composite,
                                   const engine::PipelineOutcome& outcome) {
  if (!job->compared) {
    composite->wanted.reset();
    return;
  }
  auto wanted = std::make_unique<Wanted>();
  wanted->desired = outcome.desired;
  wanted->conditions = outcome.conditions;
  if (composite->wanted != nullptr) {
    job->changing = ChangedFields(*composite->wanted, *wanted, kMostChanging);
  }
  composite->wanted = std::move(wanted);
}

absl::Status Simulation::Impl::Write(Job* job,
                                     engine::PipelineOutcome outcome) {
  Composite& composite = composites_[job->start.composite];
  const absl::Time now = Now();
  MutexLock lock(&composite.mutex);
  SimulatedCluster* const cluster = composite.cluster.get();
  absl::Status status = outcome.status;
  if (status.ok()) {
    NoteChanges(job, &composite, outcome);
    job->unmarked = !MarksReadiness(outcome.desired);
    const uint64_t digest = DigestOf(outcome, job->responsive);
    NoteAnswer(job, &composite, digest);
    // What changed nothing then changes nothing now. Most reconciles are so.
    const bool known = composite.noop_digest == digest &&
                       composite.noop_version == cluster->resource_version();
    if (known) {
      job->ready = IsReady(job->composite);
    } else {
      status = WriteSuccess(job, &composite, std::move(outcome), now);
    }
    composite.noop_digest.reset();
    if (status.ok() && job->writes == 0) {
      composite.noop_digest = digest;
      composite.noop_version = cluster->resource_version();
    }
    if (!Same(composite.seeds, job->seeds)) composite.seeds = job->seeds;
  } else {
    job->ready = IsReady(job->composite);
    status = WriteFailure(job, &composite, outcome, now);
  }
  if (options_.ready_writes > 0) {
    composite.pending_provider += static_cast<int>(job->created.size());
  }
  job->unchanged =
      job->writes == 0 && cluster->resource_version() == job->version;
  job->pending = composite.pending_provider > 0;
  job->composed = cluster->size();
  job->unmarked = job->unmarked && !job->pending && job->composed > 0 &&
                  options_.ready_writes > 0;
  const std::string poll =
      engine::AnnotationOf(job->composite, kPollAnnotation);
  absl::Duration interval;
  if (!poll.empty() && absl::ParseDuration(poll, &interval) &&
      interval > absl::ZeroDuration()) {
    job->annotated = std::max(interval, absl::Seconds(1));
  }
  return status;
}

void Simulation::Impl::End(Job* job, engine::PipelineOutcome outcome) {
  PipelineEnd end;
  end.start = job->start;
  end.fatal = outcome.fatal;
  end.ttl = outcome.ttl;
  if (job->start.trigger == Trigger::kDriver) {
    end.status = outcome.status;
  } else {
    const absl::Time now = Now();
    const bool composed = outcome.status.ok();
    end.status = Write(job, std::move(outcome));
    end.write_failed = composed && !end.status.ok();
    if (options_.ready_writes > 0) {
      for (const std::string& resource : job->created) {
        ScheduleProvider(job->start.composite, resource, now, 1);
      }
    }
  }
  end.ended = Now();
  end.writes = job->writes;
  if (observer_ != nullptr) observer_->OnPipelineEnd(end);
  if (job->done) job->done(end);
  Finish(job, end);
}

absl::optional<absl::Duration> Simulation::Impl::Count(const Job& job) {
  Composite& composite = composites_[job.start.composite];
  const auto lost = [&composite] {
    return composite.settled_ready && !composite.ready && !composite.unmarked;
  };
  const bool was_lost = lost();
  if (composite.unmarked != job.unmarked) {
    composite.unmarked = job.unmarked;
    counters_.unmarked += job.unmarked ? 1 : -1;
  }
  const bool same = composite.ready == job.ready;
  composite.ready = job.ready;
  if (lost() != was_lost) counters_.lost_ready += was_lost ? -1 : 1;
  if (same) return absl::nullopt;
  counters_.ready += job.ready ? 1 : -1;
  if (!job.ready || composite.was_ready) return absl::nullopt;
  composite.was_ready = true;
  return Now() - composite.created;
}

void Simulation::Impl::Finish(Job* job, const PipelineEnd& end) {
  const int i = job->start.composite;
  if (job->start.trigger != Trigger::kDriver) {
    // Its own writes' events come while it runs, so that all of them together
    // are one echo.
    absl::optional<absl::Duration> ready;
    {
      MutexLock lock(&mutex_);
      ready = Count(*job);
    }
    if (ready.has_value() && !job->start.settling && observer_ != nullptr) {
      observer_->OnReady(i, *ready);
    }
    Composite& composite = composites_[i];
    if (job->start.settling) {
      MutexLock lock(&mutex_);
      const bool settled = end.status.ok() && job->writes == 0;
      composite.rounds = settled ? 0 : composite.rounds + 1;
      if (!settled) ++composite.settling_writes;
      if (!job->compared) composite.changing.clear();
      composite.changing.insert(job->changing.begin(), job->changing.end());
    } else if (job->as_before || job->differs) {
      MutexLock lock(&mutex_);
      composite.differing = job->as_before || composite.differing < 0
                                ? -1
                                : composite.differing + 1;
      composite.changing.insert(job->changing.begin(), job->changing.end());
    }
    Events(i, job->costs);
    MutexLock lock(&mutex_);
    composite.running = false;
    composite.composed = job->composed;
    composite.failed = !end.status.ok();
    if (settle_) {
      ++settled_.pipelines;
      if (end.status.ok()) ++settled_ok_;
      if (!end.status.ok() && first_failure_.ok()) first_failure_ = end.status;
    }
    Pool* const pool = &pools_[TemplateOf(i).pool];
    --pool->busy;
    Requeue(i, *job, end);
    if (!pool->waiting.empty()) PumpSoon(pool, Now());
    --in_flight_;
    idle_.SignalAll();
    return;
  }
  MutexLock lock(&mutex_);
  --in_flight_;
  idle_.SignalAll();
}

void Simulation::Impl::Requeue(int i, const Job& job, const PipelineEnd& end) {
  Composite& composite = composites_[i];
  const bool backoff = !end.status.ok() || (!options_.realtime && !job.ready);
  absl::Duration after;
  if (backoff) {
    after = Backoff(composite.failures++);
  } else {
    composite.failures = 0;
    composite.wait = !options_.realtime               ? options_.poll_interval
                     : end.ttl > absl::ZeroDuration() ? end.ttl
                                                      : job.annotated;
    after = Jitter(composite.wait, &composite.requeue);
  }
  if (composite.after_restart) {
    composite.after_restart = false;
    if (!composite.again) composite.again_trigger = Trigger::kRestart;
    composite.again = true;
  }
  if (composite.again) {
    composite.again = false;
    Enqueue(i, composite.again_trigger);
    return;
  }
  // A composite that has settled waits for the run to begin, and before that
  // for events of its providers, where these reconcile it.
  if (settle_ && end.status.ok() && job.unchanged &&
      (!job.pending || options_.realtime)) {
    return;
  }
  if (settle_ && AtItsBound(composite)) return;
  if (after > absl::ZeroDuration()) {
    SetTimer(i, after, backoff ? Trigger::kBackoff : Trigger::kTimer);
  }
}

void Simulation::Impl::ScheduleProvider(int i, const std::string& resource,
                                        absl::Time created, int write) {
  // While all settle, a composite's resources are written to together: that
  // comes to the same, with fewer reconciles.
  SplitMix64 random(options_.seed, i, kForProvider + Fnv(resource));
  const double spread = settling_ != nullptr ? 1 : random.Between(0.9, 1.1);
  const absl::Duration after =
      options_.ready_after * spread * write / options_.ready_writes;
  At(created + after, [this, i, resource, created, write] {
    ProviderWrites(i, resource, created, write);
  });
}

void Simulation::Impl::ProviderWrites(int i, const std::string& resource,
                                      absl::Time created, int write) {
  Composite& composite = composites_[i];
  const absl::Time now = Now();
  const bool last = write >= options_.ready_writes;
  {
    MutexLock lock(&composite.mutex);
    SimulatedCluster* const cluster = composite.cluster.get();
    const size_t k = cluster->Find(resource);
    if (last || k == cluster->size()) --composite.pending_provider;
    if (k == cluster->size()) return;
    cluster->UpdateComposedStatus(
        k, kProvider,
        [&](Struct* object) {
          using When = StatusField::When;
          if (write == 1) {
            WriteStatus(options_.status, When::kFirst, now, object);
          }
          WriteStatus(options_.status, When::kEvery, now, object);
          if (last) WriteStatus(options_.status, When::kReady, now, object);
          SetProviderCondition("Synced", true, "ReconcileSuccess", now, object);
          SetProviderCondition("Ready", last, last ? "Available" : "Creating",
                               now, object);
        },
        now);
  }
  {
    // Another cause than the composite's own pipelines.
    MutexLock lock(&mutex_);
    composite.rounds = 0;
  }
  if (options_.realtime) Events(i, {2});
  if (!last) ScheduleProvider(i, resource, created, write + 1);
}

void Simulation::Impl::ScheduleResync(int i, absl::Duration after,
                                      SplitMix64 random) {
  At(Now() + after, [this, i, random]() mutable {
    {
      MutexLock lock(&mutex_);
      if (stopped_) return;
      const size_t watched =
          options_.realtime ? composites_[i].composed + 1 : 1;
      for (size_t k = 0; k < watched; ++k) {
        if (Admitted(&composites_[i], 2)) Enqueue(i, Trigger::kResync);
      }
    }
    const absl::Duration next = Jitter(options_.resync, &random);
    ScheduleResync(i, next, random);
  });
}

void Simulation::Impl::ScheduleChurn(int i, int kind, double per_hour,
                                     absl::Time after, SplitMix64 random) {
  const absl::Time at = after + random.Gap(per_hour);
  const uint64_t which = random.Next();
  At(at, [this, i, kind, per_hour, at, which, random] {
    {
      MutexLock lock(&mutex_);
      if (stopped_) return;
    }
    ChurnWrite(i, kind, which);
    ScheduleChurn(i, kind, per_hour, at, random);
  });
}

void Simulation::Impl::ChurnWrite(int i, int kind, uint64_t which) {
  Composite& composite = composites_[i];
  const absl::Time now = Now();
  bool to_composite = true;
  {
    MutexLock lock(&composite.mutex);
    SimulatedCluster* const cluster = composite.cluster.get();
    const auto revise = [&](const char* section, const Writer& writer) {
      Struct updated = cluster->Composite();
      text::Ensure(&updated, {section, "loadRevision"})
          ->set_number_value(static_cast<double>(which % 1000000));
      cluster->UpdateComposite(std::move(updated), writer, now);
    };
    const size_t k = cluster->size() == 0 ? 0 : which % cluster->size();
    switch (kind) {
      case 0:
        revise("spec", {"kubectl-edit", ""});
        break;
      case 1:
        to_composite = false;
        if (cluster->size() == 0) return;
        cluster->UpdateComposedStatus(
            k, kProvider,
            [&](Struct* object) {
              WriteStatus(options_.status, StatusField::When::kHeartbeat, now,
                          object);
            },
            now);
        break;
      case 2:
        revise("status", {"status-writer", "status"});
        break;
      default:
        to_composite = cluster->size() == 0;
        if (to_composite) {
          cluster->TouchComposite(now);
        } else {
          cluster->TouchComposed(k, now);
        }
        break;
    }
    if (to_composite) ++composite.foreign_writes;
  }
  if (to_composite || options_.realtime) Events(i, {2});
}

void Simulation::Impl::Flap(int i, absl::Time next, absl::Time end,
                            absl::Duration gap, bool up) {
  if (next >= end) {
    // It ends as it began.
    if (!up) return;
    next = end;
  }
  At(next, [this, i, next, end, gap, up] {
    Composite& composite = composites_[i];
    const absl::Time now = Now();
    bool written = false;
    {
      MutexLock lock(&composite.mutex);
      SimulatedCluster* const cluster = composite.cluster.get();
      written =
          cluster->size() > 0 &&
          cluster->UpdateComposedStatus(
              0, kProvider,
              [&](Struct* object) {
                SetProviderCondition("Synced", up,
                                     up ? "ReconcileSuccess" : "ReconcileError",
                                     now, object);
              },
              now);
    }
    if (written && options_.realtime) Events(i, {2});
    {
      MutexLock lock(&mutex_);
      if (stopped_) return;
    }
    Flap(i, next + gap, end, gap, !up);
  });
}

void Simulation::Impl::Happen(const ScenarioEvent& event) {
  const absl::Time now = Now();
  switch (event.kind) {
    case ScenarioEvent::Kind::kFlapping:
      for (int i = 0; i < options_.composites; ++i) {
        SplitMix64 random(options_.seed, i, kForFlapping);
        if (random.Uniform() >= event.share) continue;
        const absl::Duration gap = absl::Seconds(1 / event.rate);
        Flap(i, now + random.Uniform() * gap, now + event.length, gap,
             /*up=*/false);
      }
      break;
    case ScenarioEvent::Kind::kUpgrade:
      if (event.action) event.action();
      break;
    case ScenarioEvent::Kind::kBurst:
      for (int k = 0; k < event.composites; ++k) {
        int i = 0;
        {
          MutexLock lock(&mutex_);
          if (stopped_ || next_composite_ == total_) return;
          i = next_composite_++;
        }
        CreateOne(i);
        Begun(i, now);
      }
      break;
    case ScenarioEvent::Kind::kRestart:
      Restart();
      break;
  }
}

void Simulation::Impl::Begun(int i, absl::Time now) {
  if (options_.resync != absl::InfiniteDuration()) {
    SplitMix64 random(options_.seed, i, kForResync);
    // What has run for long is anywhere in its hour.
    const absl::Duration first = options_.start == StartFrom::kSteady
                                     ? random.Uniform() * options_.resync
                                     : Jitter(options_.resync, &random);
    ScheduleResync(i, first, random);
  }
  const double rates[] = {options_.churn.spec, options_.churn.composed,
                          options_.churn.status, options_.churn.noop};
  for (int kind = 0; kind < 4; ++kind) {
    if (rates[kind] <= 0) continue;
    ScheduleChurn(i, kind, rates[kind], now,
                  SplitMix64(options_.seed, i, kForChurn + kind));
  }
}

void Simulation::Impl::Start() {
  active_ = scheduler_;
  const absl::Time now = Now();
  switch (options_.start) {
    case StartFrom::kCreate:
      for (int i = 0; i < options_.composites; ++i) CreateOne(i);
      break;
    case StartFrom::kSteady:
      for (int i = 0; i < options_.composites; ++i) {
        MutexLock lock(&mutex_);
        Composite& composite = composites_[i];
        composite.failures = 0;
        if (composite.wait <= absl::ZeroDuration()) continue;
        SplitMix64 random(options_.seed, i, kForPhase);
        SetTimer(i, random.Uniform() * composite.wait, Trigger::kTimer);
      }
      break;
    case StartFrom::kCold:
      Restart();
      break;
  }
  for (int i = 0; i < options_.composites; ++i) Begun(i, now);
  for (const ScenarioEvent& event : options_.events) {
    At(now + event.at, [this, &event] {
      {
        MutexLock lock(&mutex_);
        if (stopped_) return;
      }
      Happen(event);
    });
  }
}

void Simulation::Impl::Restart() {
  for (int i = 0; i < total_; ++i) {
    Composite& composite = composites_[i];
    {
      MutexLock lock(&composite.mutex);
      composite.seeds.clear();  // the runner keeps them in memory only
    }
    MutexLock lock(&mutex_);
    if (!composite.exists) continue;
    composite.failures = 0;
    composite.breaker = Breaker();
    composite.after_restart = true;
    Enqueue(i, Trigger::kRestart);
  }
}

absl::StatusOr<Settled> Simulation::Impl::Settle(
    const std::function<bool()>& cancelled) {
  const absl::Time real_start = wall_->Now();
  const absl::Time end = scheduler_->Now() - kSinceSettled;
  const absl::Time start = end - options_.settle_limit;
  settling_ = std::make_unique<SimulatedScheduler>(start);
  active_ = settling_.get();
  {
    MutexLock lock(&mutex_);
    settle_ = true;
    settled_ = Settled();
  }
  for (int i = 0; i < options_.composites; ++i) CreateOne(i);
  bool was_cancelled = false;
  for (;;) {
    if (cancelled && cancelled()) {
      was_cancelled = true;
      break;
    }
    absl::Time until = end;
    {
      MutexLock lock(&mutex_);
      // Time stands still while anything is in flight.
      if (in_flight_ > 0) until = settling_->Now();
    }
    if (settling_->RunOne(until)) continue;
    MutexLock lock(&mutex_);
    if (in_flight_ == 0) {
      if (settling_->Next() > end) break;
    } else if (settling_->Next() > settling_->Now()) {
      idle_.WaitWithTimeout(&mutex_, absl::Milliseconds(100));
    }
  }
  {
    MutexLock lock(&mutex_);
    stopped_ = was_cancelled;
  }
  WaitUntilIdle();
  Settled settled;
  uint64_t succeeded = 0;
  absl::Status failure;
  {
    MutexLock lock(&mutex_);
    settle_ = false;
    settled = settled_;
    succeeded = settled_ok_;
    failure = first_failure_;
    settled.ready = counters_.ready;
    std::map<std::string, uint64_t> changing;
    for (Pool& pool : pools_) {
      pool.waiting.clear();
      pool.pump_is_due = false;
    }
    for (Composite& composite : composites_) {
      composite.queued = false;
      composite.again = false;
      ++composite.timer;
      composite.settled_ready = composite.ready;
      if (!NeverSettled(composite)) continue;
      ++settled.never;
      for (const std::string& field : composite.changing) ++changing[field];
    }
    settled.changing = MostFrequent(changing);
  }
  settled.simulated = settling_->Now() - start;
  settled.took = wall_->Now() - real_start;
  active_ = scheduler_;
  settling_.reset();  // what is left in it holds this
  if (was_cancelled) return absl::CancelledError("interrupted while settling");
  if (succeeded == 0 && !failure.ok()) return failure;
  return settled;
}

Restless Simulation::Impl::restless() const {
  Restless restless;
  std::map<std::string, uint64_t> changing;
  MutexLock lock(&mutex_);
  for (const Composite& composite : composites_) {
    if (composite.differing < kDiffering) continue;
    ++restless.composites;
    for (const std::string& field : composite.changing) ++changing[field];
  }
  restless.changing = MostFrequent(changing);
  return restless;
}

Demand Simulation::Impl::demand() const {
  Demand demand;
  MutexLock lock(&mutex_);
  for (const Composite& composite : composites_) {
    if (!composite.exists) continue;
    absl::Duration wait = composite.wait;
    if (wait <= absl::ZeroDuration()) wait = options_.resync;
    const double hourly = options_.churn.spec + options_.churn.composed +
                          options_.churn.status + options_.churn.noop;
    demand.churn += hourly / 3600;
    if (wait == absl::InfiniteDuration()) continue;
    demand.pipelines += 1 / absl::ToDoubleSeconds(wait);
    demand.longest = std::max(demand.longest, wait);
    if (demand.shortest == absl::ZeroDuration() || wait < demand.shortest) {
      demand.shortest = wait;
    }
  }
  return demand;
}

void Simulation::Impl::RunSettled(
    int i, absl::Time due, std::function<void(const PipelineEnd&)> done) {
  auto job = std::make_shared<Job>();
  job->impl = this;
  job->start.composite = i;
  job->start.trigger = Trigger::kDriver;
  job->start.due = due;
  job->start.started = Now();
  job->done = std::move(done);
  {
    MutexLock lock(&mutex_);
    ++in_flight_;
  }
  std::vector<Seed> seeds;
  {
    MutexLock lock(&composites_[i].mutex);
    seeds = composites_[i].seeds;
  }
  Launch(std::move(job), Unpacked(i), std::move(seeds));
}

void Simulation::Impl::TouchRequired(const Struct& object) {
  auto alone = std::make_shared<engine::ObjectStore>();
  alone->Add(object);
  for (Template& shared : templates_) {
    auto objects = std::make_shared<std::vector<Struct>>();
    if (shared.input.required != nullptr) *objects = *shared.input.required;
    objects->push_back(object);  // of two, the later one counts
    engine::EngineInput input = shared.input;
    input.required = objects;
    auto store = StoreOf(input);
    MutexLock lock(&mutex_);
    shared.objects = std::move(store);
  }
  for (int i = 0; i < total_; ++i) {
    bool takes = false;
    const auto look = [&](const fn::ResourceSelector& selector) {
      takes = takes || alone->Select(selector).items_size() > 0;
    };
    {
      MutexLock lock(&composites_[i].mutex);
      for (const Seed& seed : composites_[i].seeds) look(seed.selector);
    }
    for (const auto& step : TemplateOf(i).input.composition->steps) {
      for (const auto& [name, selector] : step.required_resources) {
        look(selector);
      }
    }
    if (takes && options_.realtime) Events(i, {2});
  }
}

std::shared_ptr<const engine::SharedObserved> Simulation::Impl::Unpacked(
    int i) {
  Composite& composite = composites_[i];
  MutexLock lock(&composite.mutex);
  const uint64_t version = composite.cluster->resource_version();
  if (composite.unpacked != nullptr && composite.unpacked_version == version) {
    return composite.unpacked;
  }
  auto made =
      std::make_shared<const engine::SharedObserved>(ObserveLocked(&composite));
  const size_t size = made->state().SpaceUsedLong();
  if (composite.unpacked == nullptr &&
      unpacked_bytes_.fetch_add(size) + size > kMostUnpacked) {
    unpacked_bytes_ -= size;
    return made;
  }
  composite.unpacked = made;
  composite.unpacked_version = version;
  return made;
}

fn::State Simulation::Impl::Observe(int i) {
  Composite& composite = composites_[i];
  MutexLock lock(&composite.mutex);
  return ObserveLocked(&composite);
}

fn::State Simulation::Impl::ObserveLocked(Composite* composite) {
  fn::State state;
  const SimulatedCluster& cluster = *composite->cluster;
  *state.mutable_composite()->mutable_resource() = cluster.Composite();
  for (size_t k = 0; k < cluster.size(); ++k) {
    *(*state.mutable_resources())[cluster.ResourceNameOf(k)]
         .mutable_resource() = cluster.ComposedAt(k);
  }
  return state;
}

size_t Simulation::Impl::HeldBytes() {
  size_t bytes = 0;
  for (Composite& composite : composites_) {
    MutexLock lock(&composite.mutex);
    bytes += sizeof(Composite) + composite.cluster->HeldBytes() +
             composite.seeds.capacity() * sizeof(Seed);
  }
  return bytes;
}

Simulation::Simulation(ModelOptions options,
                       std::vector<engine::EngineInput> templates,
                       client::FunctionCaller* caller, Scheduler* scheduler,
                       Clock* wall, SimulationObserver* observer)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(templates),
                                   caller, scheduler, wall, observer)) {}

Simulation::~Simulation() {
  impl_->Stop();
  impl_->WaitUntilIdle();
}

absl::StatusOr<Settled> Simulation::Settle(
    const std::function<bool()>& cancelled) {
  return impl_->Settle(cancelled);
}
void Simulation::Start() { impl_->Start(); }
void Simulation::Stop() { impl_->Stop(); }
bool Simulation::Idle() const { return impl_->Idle(); }
void Simulation::WaitUntilIdle() { impl_->WaitUntilIdle(); }
void Simulation::RunSettled(int composite, absl::Time due,
                            std::function<void(const PipelineEnd&)> done) {
  impl_->RunSettled(composite, due, std::move(done));
}
void Simulation::Restart() { impl_->Restart(); }
void Simulation::TouchRequired(const Struct& object) {
  impl_->TouchRequired(object);
}
Counters Simulation::counters() const { return impl_->counters(); }
Demand Simulation::demand() const { return impl_->demand(); }
Restless Simulation::restless() const { return impl_->restless(); }
int Simulation::composites() const { return impl_->composites(); }
std::string Simulation::NameOf(int composite) const {
  return impl_->NameOf(composite);
}
fn::State Simulation::Observe(int composite) const {
  return impl_->Observe(composite);
}
size_t Simulation::HeldBytes() const { return impl_->HeldBytes(); }

}  // namespace fncache::runner::load::model
