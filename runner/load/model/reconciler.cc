// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/reconciler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "runner/engine/metadata.h"
#include "runner/engine/rendered_composite.h"
#include "runner/engine/requirements.h"
#include "runner/load/model/changed_fields.h"
#include "runner/load/model/reconcile_writes.h"

namespace fncache::runner::load::model {

namespace fn = apiextensions::fn::proto::v1;

namespace {

// How much of what settled composites observe is kept as messages, so that the
// open and the closed loop need not parse and hash it for every pipeline.
constexpr size_t kMostUnpacked = size_t{128} << 20;
constexpr char kPollAnnotation[] = "crossplane.io/poll-interval";

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

// Whether a pipeline says of anything whether it is ready.
bool MarksReadiness(const fn::State& desired) {
  if (desired.composite().ready() != fn::READY_UNSPECIFIED) return true;
  return std::any_of(desired.resources().begin(), desired.resources().end(),
                     [](const auto& entry) {
                       return entry.second.ready() != fn::READY_UNSPECIFIED;
                     });
}

bool Same(const std::vector<Seed>& a, const std::vector<Seed>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const Seed& x, const Seed& y) {
        return x.step == y.step && x.name == y.name &&
               x.selector.SerializeAsString() == y.selector.SerializeAsString();
      });
}

// Compares the last pipelines before a composite counts as never settled.
// `before`: the composite's, which becomes that of this reconcile.
void NoteChanges(const engine::PipelineOutcome& outcome, Reconcile* reconcile,
                 std::unique_ptr<Wanted>* before) {
  if (!reconcile->compared) {
    before->reset();
    return;
  }
  auto wanted = std::make_unique<Wanted>();
  wanted->desired = outcome.desired;
  wanted->conditions = outcome.conditions;
  if (*before != nullptr) {
    reconcile->changing = ChangedFields(**before, *wanted, kMostChanging);
  }
  *before = std::move(wanted);
}

// The composite's own poll interval; zero if it has none.
absl::Duration PollIntervalOf(const google::protobuf::Struct& composite) {
  absl::Duration interval;
  const std::string poll = engine::AnnotationOf(composite, kPollAnnotation);
  if (poll.empty() || !absl::ParseDuration(poll, &interval) ||
      interval <= absl::ZeroDuration()) {
    return absl::ZeroDuration();
  }
  return std::max(interval, absl::Seconds(1));
}

}  // namespace

fn::State ObservedIn(const SimulatedCluster& cluster) {
  fn::State state;
  *state.mutable_composite()->mutable_resource() = cluster.Composite();
  for (size_t k = 0; k < cluster.size(); ++k) {
    *(*state.mutable_resources())[cluster.ResourceNameOf(k)]
         .mutable_resource() = cluster.ComposedAt(k);
  }
  return state;
}

// A reconcile that runs, and what its calls bring.
struct Reconciler::Job : public Reconcile, public engine::PipelineObserver {
  void OnCall(const engine::CallReport& report) override {
    if (start.settling) reconciler->queue_.CountSettlingCall();
    if (report.result.status.ok()) {
      seeds.erase(std::remove_if(seeds.begin(), seeds.end(),
                                 [&](const Seed& seed) {
                                   return seed.step == report.step_index;
                                 }),
                  seeds.end());
      const engine::Selectors selectors =
          engine::RequiredSelectors(report.result.response.requirements());
      // The runner seeds both kinds under required_resources; the later one of
      // a name counts.
      for (const auto* const some :
           {&selectors.extra_resources, &selectors.resources}) {
        for (const auto& [name, selector] : *some) {
          seeds.push_back({report.step_index, name, selector});
        }
      }
    }
    SimulationObserver* const observer = reconciler->observer_;
    if (observer != nullptr) observer->OnCall(start, report);
  }

  Reconciler* reconciler = nullptr;
  std::function<void(const PipelineEnd&)> done;  // of RunSettled
};

void Reconciler::Prepare(Job* job, fn::State* observed) {
  CompositeState& composite = composites_[job->start.composite];
  const absl::Time now = agenda_.Now();
  queue_.Prepare(job);
  MutexLock lock(&composite.mutex);
  SimulatedCluster* const cluster = composite.cluster.get();
  job->composite = cluster->Composite();
  job->first = !HasFinalizer(job->composite);
  if (job->first) {
    ReconcileWrites(templates_.Of(job->start.composite), cluster, job, now)
        .FirstReferences();
    job->composite = cluster->Composite();
  } else {
    engine::SetConditions(
        {Responsive(job->responsive, engine::GenerationOf(job->composite),
                    now)},
        &job->composite);
  }
  *observed = ObservedIn(*cluster);
  *observed->mutable_composite()->mutable_resource() = job->composite;
  job->foreign_writes = composite.foreign_writes;
  job->version = cluster->resource_version();
}

std::shared_ptr<const engine::Composition> Reconciler::Seeded(
    const Template& of, const std::vector<Seed>& seeds) const {
  if (!options_.seed_requirements || seeds.empty()) {
    return of.input.composition;
  }
  auto seeded = std::make_shared<engine::Composition>(*of.input.composition);
  for (const Seed& seed : seeds) {
    if (static_cast<size_t>(seed.step) >= seeded->steps.size()) continue;
    seeded->steps[seed.step].required_resources.emplace_back(seed.name,
                                                             seed.selector);
  }
  return seeded;
}

std::vector<Seed> Reconciler::SeedsOf(int i) {
  MutexLock lock(&composites_[i].mutex);
  return composites_[i].seeds;
}

void Reconciler::Begin(const PipelineStart& start) {
  auto job = std::make_shared<Job>();
  job->reconciler = this;
  job->start = start;
  fn::State observed;
  Prepare(job.get(), &observed);
  Launch(std::move(job),
         std::make_shared<const engine::SharedObserved>(std::move(observed)),
         SeedsOf(start.composite));
}

void Reconciler::RunSettled(int i, absl::Time due,
                            std::function<void(const PipelineEnd&)> done) {
  auto job = std::make_shared<Job>();
  job->reconciler = this;
  job->start.composite = i;
  job->start.trigger = Trigger::kDriver;
  job->start.due = due;
  job->start.started = agenda_.Now();
  job->done = std::move(done);
  queue_.BeginOther();
  Launch(std::move(job), Unpacked(i), SeedsOf(i));
}

std::shared_ptr<const engine::SharedObserved> Reconciler::Unpacked(int i) {
  CompositeState& composite = composites_[i];
  MutexLock lock(&composite.mutex);
  const uint64_t version = composite.cluster->resource_version();
  if (composite.unpacked != nullptr && composite.unpacked_version == version) {
    return composite.unpacked;
  }
  auto made = std::make_shared<const engine::SharedObserved>(
      ObservedIn(*composite.cluster));
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

void Reconciler::Launch(std::shared_ptr<Job> job,
                        std::shared_ptr<const engine::SharedObserved> observed,
                        const std::vector<Seed>& seeds) {
  const Template& of = templates_.Of(job->start.composite);
  if (observer_ != nullptr) observer_->OnPipelineStart(job->start);
  if (!of.error.empty()) {
    engine::PipelineOutcome outcome;
    outcome.status = absl::InvalidArgumentError(of.error);
    End(job.get(), std::move(outcome));
    return;
  }
  engine::PipelineInput input;
  input.composition = Seeded(of, seeds);
  input.shared_observed = std::move(observed);
  input.objects = templates_.ObjectsFor(job->start.composite);
  input.schemas = of.input.schemas;
  input.deadline = wall_->Now() + options_.reconcile_timeout;
  Job* const raw = job.get();
  engine::RunPipeline(std::move(input), caller_, wall_, raw,
                      [this, owner = agenda_.owner(),
                       job = std::move(job)](engine::PipelineOutcome outcome) {
                        End(job.get(), std::move(outcome));
                      });
}

void Reconciler::NoteAnswer(Job* job, CompositeState* composite,
                            uint64_t digest) const {
  if (job->start.settling || options_.start != StartFrom::kCreate) return;
  const absl::optional<uint64_t> before = composite->wanted_digest;
  composite->wanted_digest = digest;
  job->as_before = before == digest || composite->foreign_writes > 0;
  job->differs = before.has_value() && before != digest;
}

absl::Status Reconciler::Write(Job* job, engine::PipelineOutcome outcome) {
  const int i = job->start.composite;
  CompositeState& composite = composites_[i];
  MutexLock lock(&composite.mutex);
  SimulatedCluster* const cluster = composite.cluster.get();
  const bool foreign = composite.foreign_writes != job->foreign_writes;
  ReconcileWrites writes(templates_.Of(i), cluster, job, agenda_.Now());
  absl::Status status = outcome.status;
  // Until a success writes another condition. A conflict writes none.
  job->ready = IsReady(job->composite);
  if (status.ok()) {
    NoteChanges(outcome, job, &composite.wanted);
    job->unmarked = !MarksReadiness(outcome.desired);
    const uint64_t digest = DigestOf(outcome, job->responsive);
    NoteAnswer(job, &composite, digest);
    // An equal answer at an equal version changes nothing again. Most
    // reconciles are so.
    const bool known = composite.noop_digest == digest &&
                       composite.noop_version == cluster->resource_version();
    if (!known) {
      status = writes.Success(std::move(outcome), foreign,
                              SplitMix64(options_.seed, i, kForCluster));
    }
    composite.noop_digest.reset();
    if (status.ok() && job->writes == 0) {
      composite.noop_digest = digest;
      composite.noop_version = cluster->resource_version();
    }
    if (!Same(composite.seeds, job->seeds)) composite.seeds = job->seeds;
  } else {
    status = writes.Failure(outcome, foreign);
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
  job->annotated = PollIntervalOf(job->composite);
  return status;
}

void Reconciler::End(Job* job, engine::PipelineOutcome outcome) {
  const int i = job->start.composite;
  const bool of_driver = job->start.trigger == Trigger::kDriver;
  PipelineEnd end;
  end.start = job->start;
  end.fatal = outcome.fatal;
  end.ttl = outcome.ttl;
  if (of_driver) {
    end.status = outcome.status;
  } else {
    const absl::Time now = agenda_.Now();
    const bool composed = outcome.status.ok();
    end.status = Write(job, std::move(outcome));
    end.write_failed = composed && !end.status.ok();
    if (options_.ready_writes > 0) {
      for (const std::string& resource : job->created) {
        writers_.BeginProvider(i, resource, now);
      }
    }
  }
  end.ended = agenda_.Now();
  end.writes = job->writes;
  if (observer_ != nullptr) observer_->OnPipelineEnd(end);
  if (job->done) job->done(end);
  if (of_driver) {
    queue_.EndOther();
    return;
  }
  const absl::optional<absl::Duration> ready = queue_.Count(*job);
  if (ready.has_value() && !job->start.settling && observer_ != nullptr) {
    observer_->OnReady(i, *ready);
  }
  queue_.End(*job, end);
}

}  // namespace fncache::runner::load::model
