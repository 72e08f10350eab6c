// SPDX-License-Identifier: Apache-2.0
#include "runner/demo/traffic.h"

#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/sha256.h"
#include "google/protobuf/util/json_util.h"
#include "runner/client/function_client.h"
#include "runner/demo/encoding.h"

namespace fncache::runner::demo {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;

constexpr absl::Duration kPatience = absl::Seconds(30);

// $0 the composite's name, $1 the number of buckets. Its conditions are those
// of one that the runner has seen before.
constexpr char kComposite[] = R"({
  "apiVersion": "shop.example.org/v1alpha1", "kind": "Lake",
  "metadata": {
    "name": "$0", "uid": "0f0f0f0f-5555-6666-7777-888888888888",
    "generation": 3, "creationTimestamp": "2026-08-01T09:12:44Z",
    "finalizers": ["composite.apiextensions.crossplane.io"],
    "labels": {"crossplane.io/composite": "$0", "team": "storage"}},
  "spec": {
    "region": "eu-central-1", "versioning": true, "buckets": $1,
    "retention": {"days": 30, "mode": "governance"},
    "crossplane": {
      "compositionRef": {"name": "lakes"},
      "compositionUpdatePolicy": "Automatic"}},
  "status": {"conditions": [
    {"type": "Synced", "status": "True", "reason": "ReconcileSuccess",
     "lastTransitionTime": "2026-08-01T09:12:50Z"},
    {"type": "Ready", "status": "True", "reason": "Available",
     "lastTransitionTime": "2026-08-01T09:13:31Z"},
    {"type": "Responsive", "status": "True", "reason": "WatchCircuitClosed",
     "lastTransitionTime": "2026-08-01T09:12:50Z", "observedGeneration": 3}]}})";

// $0 the composite's name, $1 the bucket's number.
constexpr char kBucket[] = R"({
  "apiVersion": "storage.example.org/v1", "kind": "Bucket",
  "metadata": {
    "name": "$0-$1", "generateName": "$0-",
    "uid": "1a2b3c4d-0000-4000-8000-00000000$1",
    "resourceVersion": "77$1", "generation": 2,
    "creationTimestamp": "2026-08-01T09:12:46Z",
    "annotations": {
      "crossplane.io/composition-resource-name": "bucket-$1",
      "crossplane.io/external-name": "$0-$1",
      "crossplane.io/external-create-succeeded": "2026-08-01T09:12:48Z"},
    "labels": {"crossplane.io/composite": "$0"},
    "ownerReferences": [{
      "apiVersion": "shop.example.org/v1alpha1", "kind": "Lake", "name": "$0",
      "uid": "0f0f0f0f-5555-6666-7777-888888888888", "controller": true,
      "blockOwnerDeletion": true}]},
  "spec": {
    "deletionPolicy": "Delete", "managementPolicies": ["*"],
    "providerConfigRef": {"name": "default"},
    "forProvider": {
      "region": "eu-central-1", "objectLockEnabled": false,
      "tags": {"crossplane-kind": "bucket.storage.example.org",
               "crossplane-name": "$0-$1", "lake": "$0"}}},
  "status": {
    "atProvider": {
      "arn": "arn:aws:s3:::$0-$1", "id": "$0-$1",
      "bucketDomainName": "$0-$1.s3.example.org",
      "hostedZoneId": "Z21DNDUVLTQW6Q", "requestPayer": "BucketOwner",
      "versioning": {"enabled": true, "mfaDelete": false}},
    "conditions": [
      {"type": "LastAsyncOperation", "status": "True", "reason": "Success",
       "lastTransitionTime": "2026-08-01T09:13:02Z"},
      {"type": "Synced", "status": "True", "reason": "ReconcileSuccess",
       "lastTransitionTime": "2026-08-01T09:12:49Z"},
      {"type": "Ready", "status": "True", "reason": "Available",
       "lastTransitionTime": "2026-08-01T09:13:30Z"}]}})";

constexpr char kComposition[] = R"({
  "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
  "metadata": {"name": "lakes"},
  "spec": {
    "compositeTypeRef": {
      "apiVersion": "shop.example.org/v1alpha1", "kind": "Lake"},
    "mode": "Pipeline",
    "pipeline": [{
      "step": "buckets", "functionRef": {"name": "function-template"},
      "input": {
        "apiVersion": "function.fncache.dev/v1alpha1", "kind": "Template",
        "spec": {
          "resources": [{
            "name": "bucket-${index}",
            "count": "${observed.composite.resource.spec.buckets}",
            "base": {
              "apiVersion": "storage.example.org/v1", "kind": "Bucket",
              "metadata": {"labels": {"team":
                "${observed.composite.resource.metadata.labels.team}"}},
              "spec": {"forProvider": {
                "region": "${observed.composite.resource.spec.region}",
                "versioning": "${observed.composite.resource.spec.versioning}",
                "tags": {
                  "lake": "${observed.composite.resource.metadata.name}",
                  "arn": "${observed.resources.bucket-${index}.resource.status.atProvider.arn|pending}"}}}}}],
          "status": {"first":
            "${observed.resources.bucket-0.resource.metadata.name|pending}"},
          "results": [{"message":
            "${observed.composite.resource.spec.buckets} buckets for ${observed.composite.resource.metadata.name}"}]}}
    }, {
      "step": "policy", "functionRef": {"name": "function-template"},
      "input": {
        "apiVersion": "function.fncache.dev/v1alpha1", "kind": "Template",
        "spec": {
          "resources": [{
            "name": "policy",
            "ready": true,
            "base": {
              "apiVersion": "storage.example.org/v1", "kind": "Policy",
              "spec": {
                "region": "${desired.resources.bucket-0.resource.spec.forProvider.region}",
                "retention": "${observed.composite.resource.spec.retention}",
                "of": "${desired.composite.resource.status.first}"}}}]}}}]}})";

google::protobuf::Struct FromJson(const std::string& json) {
  google::protobuf::Struct read;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &read);
  if (!status.ok()) read.Clear();
  return read;
}

// Keeps every call of a reconcile.
class Recorder : public engine::PipelineObserver {
 public:
  explicit Recorder(DemoReconcile* reconcile) : reconcile_(reconcile) {}

  void OnCall(const engine::CallReport& report) override {
    DemoCall call;
    call.composite = reconcile_->composite;
    call.step = report.step_index;
    call.tag = TagOfBuild(report.request.meta().tag(), reconcile_->build);
    call.status = report.result.status;
    call.started = report.started;
    call.latency = report.result.round_trip;
    call.cache_status = report.result.cache_status;
    call.response = report.result.response;
    reconcile_->calls.push_back(std::move(call));
  }

 private:
  DemoReconcile* const reconcile_;
};

// Runs the reconciles: each one's end begins the next. Every reconcile holds
// it, because the last one's end lets go of the mutex after Run has returned.
class Driver : public std::enable_shared_from_this<Driver> {
 public:
  // A caller for each build of the runner.
  Driver(std::vector<client::FunctionCaller*> callers,
         const std::vector<engine::EngineInput>& inputs, size_t at_once,
         const std::function<void(size_t)>& progress,
         std::vector<DemoReconcile>* reconciles)
      : callers_(std::move(callers)),
        inputs_(inputs),
        at_once_(at_once),
        progress_(progress),
        reconciles_(*reconciles) {}

  void Run() {
    MutexLock lock(&mutex_);
    for (;;) {
      // Not from a reconcile's end: one that is answered at once must not nest.
      while (next_ < reconciles_.size() && open_.size() < at_once_ &&
             open_.insert(reconciles_[next_].composite).second) {
        DemoReconcile* const begun = &reconciles_[next_++];
        mutex_.Unlock();
        Begin(begun);
        mutex_.Lock();
      }
      if (done_ == reconciles_.size()) return;
      changed_.Wait(&mutex_);
    }
  }

 private:
  void Begin(DemoReconcile* reconcile) {
    auto recorder = std::make_shared<Recorder>(reconcile);
    engine::EngineOptions options;
    options.deadline = clock_.Now() + kPatience;
    engine::Render(inputs_[reconcile->composite], options,
                   callers_[reconcile->build], &clock_, recorder.get(),
                   [self = shared_from_this(), reconcile,
                    recorder](const engine::EngineOutcome& outcome) {
                     reconcile->status = outcome.status;
                     reconcile->composed =
                         outcome.output.composed_resources_size();
                     self->End(*reconcile);
                   });
  }

  void End(const DemoReconcile& reconcile) {
    MutexLock lock(&mutex_);
    open_.erase(reconcile.composite);
    progress_(++done_);
    changed_.Signal();
  }

  // The references are to what lives as long as Run; so do the callers.
  const std::vector<client::FunctionCaller*> callers_;
  const std::vector<engine::EngineInput>& inputs_;
  const size_t at_once_;
  const std::function<void(size_t)>& progress_;
  std::vector<DemoReconcile>& reconciles_;
  SystemClock clock_;

  Mutex mutex_;
  CondVar changed_;
  std::set<int> open_ ABSL_GUARDED_BY(mutex_);  // composites
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::shared_ptr<const engine::Composition> DemoComposition() {
  auto composition = engine::ParseComposition(FromJson(kComposition));
  if (!composition.ok()) return std::make_shared<const engine::Composition>();
  return std::make_shared<const engine::Composition>(*std::move(composition));
}

engine::EngineInput DemoInput(
    std::shared_ptr<const engine::Composition> composition, int composite,
    int buckets) {
  const std::string name = absl::StrCat("lake-", composite);
  engine::EngineInput input;
  input.composition = std::move(composition);
  input.composite = FromJson(absl::Substitute(kComposite, name, buckets));
  std::vector<google::protobuf::Struct> observed;
  for (int i = 0; i < buckets; ++i) {
    observed.push_back(FromJson(absl::Substitute(kBucket, name, i)));
  }
  input.observed =
      std::make_shared<const std::vector<google::protobuf::Struct>>(
          std::move(observed));
  return input;
}

std::string TagOfBuild(const std::string& tag, int build) {
  if (build == 0) return tag;
  return Sha256Hex(absl::StrCat(build, ":", tag));
}

struct DemoRunners::Impl {
  const std::vector<engine::EngineInput>* inputs;
  // By build. Destroyed before anything else of the demo: they wait for the
  // ends of their calls.
  std::vector<std::unique_ptr<client::FunctionClient>> clients;
};

DemoRunners::DemoRunners(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

DemoRunners::~DemoRunners() = default;

absl::StatusOr<std::unique_ptr<DemoRunners>> DemoRunners::Create(
    const std::string& address,
    const std::vector<engine::EngineInput>* inputs) {
  auto impl = std::make_unique<Impl>();
  impl->inputs = inputs;
  for (int build = 0; build < kDemoBuilds; ++build) {
    client::FunctionClientOptions options;
    options.functions = {{kDemoFunction, address}};
    options.threads = 1;
    options.encode = [build](const fn::RunFunctionRequest& request) {
      thread_local std::mt19937 random{std::random_device{}()};
      fn::RequestMeta meta = request.meta();
      meta.set_tag(TagOfBuild(meta.tag(), build));
      return EncodeShuffled(request, meta, &random);
    };
    auto client = client::FunctionClient::Create(std::move(options));
    if (!client.ok()) return client.status();
    impl->clients.push_back(*std::move(client));
  }
  return std::unique_ptr<DemoRunners>(new DemoRunners(std::move(impl)));
}

void DemoRunners::Drive(size_t at_once,
                        const std::function<void(size_t)>& progress,
                        std::vector<DemoReconcile>* reconciles) {
  std::vector<client::FunctionCaller*> callers;
  callers.reserve(impl_->clients.size());
  for (const auto& client : impl_->clients) callers.push_back(client.get());
  std::make_shared<Driver>(std::move(callers), *impl_->inputs, at_once,
                           progress, reconciles)
      ->Run();
}

}  // namespace fncache::runner::demo
