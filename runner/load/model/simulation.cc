// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/simulation.h"

#include <atomic>
#include <utility>

#include "common/mutex.h"
#include "runner/engine/object_store.h"
#include "runner/load/model/agenda.h"
#include "runner/load/model/cluster.h"
#include "runner/load/model/composite_state.h"
#include "runner/load/model/other_writers.h"
#include "runner/load/model/random.h"
#include "runner/load/model/reconcile_queue.h"
#include "runner/load/model/reconciler.h"
#include "runner/load/model/templates.h"

namespace fncache::runner::load::model {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::Struct;

namespace {

// Settling ends this long before the run begins.
constexpr absl::Duration kSinceSettled = absl::Minutes(10);

// The composites of the options, and those of bursts.
int MostComposites(const ModelOptions& options) {
  int most = options.composites;
  for (const ScenarioEvent& event : options.events) {
    if (event.kind == ScenarioEvent::Kind::kBurst) most += event.composites;
  }
  return most;
}

}  // namespace

class Simulation::Impl {
 public:
  Impl(ModelOptions options, std::vector<engine::EngineInput> templates,
       client::FunctionCaller* caller, Scheduler* scheduler, Clock* wall,
       SimulationObserver* observer)
      : options_(std::move(options)),
        wall_(wall),
        templates_(std::move(templates)),
        agenda_(scheduler),
        composites_(MostComposites(options_)),
        next_composite_(options_.composites),
        queue_(
            options_, templates_, composites(), &agenda_,
            [this](const PipelineStart& start) { reconciler_.Begin(start); }),
        writers_(options_, &composites_, &queue_, &agenda_),
        reconciler_(options_, templates_, &composites_, &queue_, &writers_,
                    &agenda_, caller, wall, observer) {
    for (int i = 0; i < composites(); ++i) {
      MutexLock lock(&composites_[i].mutex);
      composites_[i].cluster = std::make_unique<SimulatedCluster>(
          SplitMix64(options_.seed, i, kForCluster));
    }
  }

  Agenda* agenda() { return &agenda_; }
  ReconcileQueue* queue() { return &queue_; }
  Reconciler* reconciler() { return &reconciler_; }
  const Templates& templates() const { return templates_; }
  int composites() const { return static_cast<int>(composites_.size()); }

  absl::StatusOr<Settled> Settle(const std::function<bool()>& cancelled);
  void Start();
  void Restart();
  void TouchRequired(const Struct& object);
  fn::State Observe(int i);
  size_t MemoryBytes();

 private:
  void CreateOne(int i);
  void Happen(const ScenarioEvent& event);

  const ModelOptions options_;
  Clock* const wall_;
  Templates templates_;
  Agenda agenda_;
  // Never moved.
  std::vector<CompositeState> composites_;
  std::atomic<int> next_composite_;
  ReconcileQueue queue_;
  OtherWriters writers_;
  Reconciler reconciler_;
};

void Simulation::Impl::CreateOne(int i) {
  {
    MutexLock lock(&composites_[i].mutex);
    composites_[i].cluster->Create(templates_.Named(i), agenda_.Now());
  }
  queue_.Create(i);
}

void Simulation::Impl::Happen(const ScenarioEvent& event) {
  const absl::Time now = agenda_.Now();
  switch (event.kind) {
    case ScenarioEvent::Kind::kFlapping:
      writers_.BeginFlapping(event, now);
      break;
    case ScenarioEvent::Kind::kUpgrade:
      if (event.action) event.action();
      break;
    case ScenarioEvent::Kind::kBurst:
      for (int k = 0; k < event.composites && !queue_.stopped(); ++k) {
        const int i = next_composite_++;
        CreateOne(i);
        writers_.Begin(i, now);
      }
      break;
    case ScenarioEvent::Kind::kRestart:
      Restart();
      break;
  }
}

void Simulation::Impl::Start() {
  const absl::Time now = agenda_.Now();
  switch (options_.start) {
    case StartFrom::kCreate:
      for (int i = 0; i < options_.composites; ++i) CreateOne(i);
      break;
    case StartFrom::kSteady:
      for (int i = 0; i < options_.composites; ++i) queue_.StartTimer(i);
      break;
    case StartFrom::kCold:
      Restart();
      break;
  }
  for (int i = 0; i < options_.composites; ++i) writers_.Begin(i, now);
  for (const ScenarioEvent& event : options_.events) {
    agenda_.At(now + event.at, [this, &event] {
      if (!queue_.stopped()) Happen(event);
    });
  }
}

void Simulation::Impl::Restart() {
  for (int i = 0; i < composites(); ++i) {
    {
      MutexLock lock(&composites_[i].mutex);
      composites_[i].seeds.clear();  // the runner keeps them in memory only
    }
    queue_.Restart(i);
  }
}

absl::StatusOr<Settled> Simulation::Impl::Settle(
    const std::function<bool()>& cancelled) {
  const absl::Time real_start = wall_->Now();
  const absl::Time end = agenda_.Now() - kSinceSettled;
  const absl::Time start = end - options_.settle_limit;
  SimulatedScheduler* const simulated = agenda_.Simulate(start);
  queue_.BeginSettling();
  for (int i = 0; i < options_.composites; ++i) CreateOne(i);
  bool was_cancelled = false;
  do {
    was_cancelled = cancelled && cancelled();
  } while (!was_cancelled && queue_.SettleStep(simulated, end));
  if (was_cancelled) queue_.Stop();
  queue_.WaitUntilIdle();
  absl::StatusOr<Settled> settled = queue_.EndSettling();
  const absl::Duration took = simulated->Now() - start;
  agenda_.EndSimulated();
  if (was_cancelled) return absl::CancelledError("interrupted while settling");
  if (!settled.ok()) return settled;
  settled->simulated = took;
  settled->took = wall_->Now() - real_start;
  return settled;
}

void Simulation::Impl::TouchRequired(const Struct& object) {
  engine::ObjectStore alone;
  alone.Add(object);
  templates_.PutRequired(object);
  for (int i = 0; i < composites(); ++i) {
    bool takes = false;
    const auto look = [&](const fn::ResourceSelector& selector) {
      takes = takes || alone.Select(selector).items_size() > 0;
    };
    {
      MutexLock lock(&composites_[i].mutex);
      for (const Seed& seed : composites_[i].seeds) look(seed.selector);
    }
    for (const auto& step : templates_.Of(i).input.composition->steps) {
      for (const auto& [name, selector] : step.required_resources) {
        look(selector);
      }
    }
    if (takes && options_.realtime) queue_.Events(i, {2});
  }
}

fn::State Simulation::Impl::Observe(int i) {
  MutexLock lock(&composites_[i].mutex);
  return ObservedIn(*composites_[i].cluster);
}

size_t Simulation::Impl::MemoryBytes() {
  size_t bytes = composites_.size() *
                 (sizeof(CompositeState) + ReconcileQueue::BytesOfOne());
  for (CompositeState& composite : composites_) {
    MutexLock lock(&composite.mutex);
    bytes += composite.cluster->MemoryBytes() +
             composite.seeds.capacity() * sizeof(Seed);
  }
  return bytes;
}

Simulation::Simulation(ModelOptions options,
                       std::vector<engine::EngineInput> templates,
                       client::FunctionCaller* caller, Scheduler* scheduler,
                       Clock* wall, SimulationObserver* observer)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(templates),
                                   caller, scheduler, wall, observer)) {
  impl_->agenda()->SetOwner(impl_);
}

Simulation::~Simulation() {
  impl_->queue()->Stop();
  impl_->queue()->WaitUntilIdle();
}

absl::StatusOr<Settled> Simulation::Settle(
    const std::function<bool()>& cancelled) {
  return impl_->Settle(cancelled);
}
void Simulation::Start() { impl_->Start(); }
void Simulation::Stop() { impl_->queue()->Stop(); }
bool Simulation::Idle() const { return impl_->queue()->Idle(); }
void Simulation::WaitUntilIdle() { impl_->queue()->WaitUntilIdle(); }
void Simulation::RunSettled(int composite, absl::Time due,
                            std::function<void(const PipelineEnd&)> done) {
  impl_->reconciler()->RunSettled(composite, due, std::move(done));
}
void Simulation::Restart() { impl_->Restart(); }
void Simulation::TouchRequired(const Struct& object) {
  impl_->TouchRequired(object);
}
Counters Simulation::counters() const { return impl_->queue()->counters(); }
Demand Simulation::demand() const { return impl_->queue()->demand(); }
Restless Simulation::restless() const { return impl_->queue()->restless(); }
int Simulation::composites() const { return impl_->composites(); }
std::string Simulation::NameOf(int composite) const {
  return impl_->templates().NameOf(composite);
}
fn::State Simulation::Observe(int composite) const {
  return impl_->Observe(composite);
}
size_t Simulation::MemoryBytes() const { return impl_->MemoryBytes(); }

}  // namespace fncache::runner::load::model
