// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/other_writers.h"

#include "absl/strings/string_view.h"
#include "runner/load/model/cluster.h"
#include "runner/load/model/provider_status.h"
#include "text/object.h"

namespace fncache::runner::load::model {

using google::protobuf::Struct;

namespace {

uint64_t Fnv(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

void OtherWriters::ScheduleProvider(int i, const std::string& resource,
                                    absl::Time created, int write) {
  // While all settle, a composite's resources are written to together: that
  // comes to the same, with fewer reconciles.
  SplitMix64 random(options_.seed, i, kForProvider + Fnv(resource));
  const double spread = agenda_.simulates() ? 1 : random.Between(0.9, 1.1);
  const absl::Duration after =
      options_.ready_after * spread * write / options_.ready_writes;
  agenda_.At(created + after, [this, i, resource, created, write] {
    ProviderWrites(i, resource, created, write);
  });
}

void OtherWriters::ProviderWrites(int i, const std::string& resource,
                                  absl::Time created, int write) {
  CompositeState& composite = composites_[i];
  const absl::Time now = agenda_.Now();
  const bool last = write >= options_.ready_writes;
  {
    MutexLock lock(&composite.mutex);
    SimulatedCluster* const cluster = composite.cluster.get();
    const size_t k = cluster->Find(resource);
    if (last || k == cluster->size()) --composite.pending_provider;
    if (k == cluster->size()) return;
    if (write == 1) cluster->NameExternally(k, now);
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
  queue_.NoteOtherCause(i);
  if (options_.realtime) queue_.Events(i, {2});
  if (!last) ScheduleProvider(i, resource, created, write + 1);
}

void OtherWriters::ScheduleResync(int i, absl::Duration after,
                                  SplitMix64 random) {
  agenda_.At(agenda_.Now() + after, [this, i, random]() mutable {
    if (!queue_.Resync(i)) return;
    const absl::Duration next = random.Jitter(options_.resync);
    ScheduleResync(i, next, random);
  });
}

void OtherWriters::ScheduleChurn(int i, int kind, double per_hour,
                                 absl::Time after, SplitMix64 random) {
  const absl::Time at = after + random.Gap(per_hour);
  const uint64_t which = random.Next();
  agenda_.At(at, [this, i, kind, per_hour, at, which, random] {
    if (queue_.stopped()) return;
    ChurnWrite(i, kind, which);
    ScheduleChurn(i, kind, per_hour, at, random);
  });
}

void OtherWriters::ChurnWrite(int i, int kind, uint64_t which) {
  CompositeState& composite = composites_[i];
  const absl::Time now = agenda_.Now();
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
  if (to_composite || options_.realtime) queue_.Events(i, {2});
}

void OtherWriters::Flap(int i, absl::Time next, absl::Time end,
                        absl::Duration gap, bool up) {
  if (next >= end) {
    // It ends as it began.
    if (!up) return;
    next = end;
  }
  agenda_.At(next, [this, i, next, end, gap, up] {
    CompositeState& composite = composites_[i];
    const absl::Time now = agenda_.Now();
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
    if (written && options_.realtime) queue_.Events(i, {2});
    if (queue_.stopped()) return;
    Flap(i, next + gap, end, gap, !up);
  });
}

void OtherWriters::BeginFlapping(const ScenarioEvent& event, absl::Time now) {
  const absl::Duration gap = absl::Seconds(1 / event.rate);
  for (int i = 0; i < options_.composites; ++i) {
    SplitMix64 random(options_.seed, i, kForFlapping);
    if (random.Uniform() >= event.share) continue;
    Flap(i, now + random.Uniform() * gap, now + event.length, gap,
         /*up=*/false);
  }
}

void OtherWriters::Begin(int i, absl::Time now) {
  if (options_.resync != absl::InfiniteDuration()) {
    SplitMix64 random(options_.seed, i, kForResync);
    // In a steady state, a composite may be at any point of its resync period.
    const absl::Duration first = options_.start == StartFrom::kSteady
                                     ? random.Uniform() * options_.resync
                                     : random.Jitter(options_.resync);
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

}  // namespace fncache::runner::load::model
