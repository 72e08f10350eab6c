#include "runner/demo/traffic.h"

#include <string.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/sha256.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/json_util.h"
#include "runner/client/function_client.h"

namespace fncache::runner::demo {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Struct;
using google::protobuf::io::CodedOutputStream;

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

void WriteBytes(int field, const std::string& bytes, CodedOutputStream* out) {
  out->WriteTag(static_cast<uint32_t>(field) << 3 | 2);
  out->WriteVarint32(static_cast<uint32_t>(bytes.size()));
  out->WriteString(bytes);
}

// A map whose values are messages, in random order. Not by reflection, which
// copies a map to look at it.
template <typename Map>
void EncodeMap(int field, const Map& map, std::mt19937* random,
               CodedOutputStream* out) {
  std::vector<const typename Map::value_type*> entries;
  entries.reserve(map.size());
  for (const auto& entry : map) entries.push_back(&entry);
  std::shuffle(entries.begin(), entries.end(), *random);
  for (const auto* entry : entries) {
    std::string bytes;
    {
      google::protobuf::io::StringOutputStream stream(&bytes);
      CodedOutputStream one(&stream);
      WriteBytes(1, entry->first, &one);
      WriteBytes(2, EncodeShuffled(entry->second, random), &one);
    }
    WriteBytes(field, bytes, out);
  }
}

// One field's value, tag included; `index` is -1 for a singular field.
void EncodeField(const Message& message, const FieldDescriptor* field,
                 int index, std::mt19937* random, CodedOutputStream* out) {
  const Reflection& reflection = *message.GetReflection();
  const uint32_t number = static_cast<uint32_t>(field->number()) << 3;
  const auto write_bytes = [&](const std::string& bytes) {
    WriteBytes(field->number(), bytes, out);
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      write_bytes(EncodeShuffled(
          index < 0 ? reflection.GetMessage(message, field)
                    : reflection.GetRepeatedMessage(message, field, index),
          random));
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      write_bytes(index < 0
                      ? reflection.GetString(message, field)
                      : reflection.GetRepeatedString(message, field, index));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = reflection.GetDouble(message, field);
      uint64_t bits;
      static_assert(sizeof bits == sizeof value);
      memcpy(&bits, &value, sizeof bits);
      out->WriteTag(number | 1);
      out->WriteLittleEndian64(bits);
      break;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      out->WriteTag(number);
      out->WriteVarint32(reflection.GetBool(message, field) ? 1 : 0);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      out->WriteTag(number);
      out->WriteVarint32SignExtended(
          index < 0 ? reflection.GetEnumValue(message, field)
                    : reflection.GetRepeatedEnumValue(message, field, index));
      break;
    default:
      // Requests have no other types.
      break;
  }
}

// All fields but that of number `but`.
void EncodeFields(const Message& message, int but, std::mt19937* random,
                  CodedOutputStream* out) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->number() == but) continue;
    if (const auto* object = dynamic_cast<const Struct*>(&message)) {
      EncodeMap(field->number(), object->fields(), random, out);
      continue;
    }
    const auto* state = dynamic_cast<const fn::State*>(&message);
    if (state != nullptr && field->is_map()) {
      EncodeMap(field->number(), state->resources(), random, out);
      continue;
    }
    if (!field->is_repeated()) {
      EncodeField(message, field, -1, random, out);
      continue;
    }
    std::vector<int> order(reflection.FieldSize(message, field));
    std::iota(order.begin(), order.end(), 0);
    if (field->is_map()) std::shuffle(order.begin(), order.end(), *random);
    for (const int index : order) {
      EncodeField(message, field, index, random, out);
    }
  }
}

// As EncodeShuffled, under the tag of build number `build`.
std::string EncodeAsBuild(const fn::RunFunctionRequest& request, int build,
                          std::mt19937* random) {
  fn::RequestMeta meta = request.meta();
  meta.set_tag(TagOfBuild(meta.tag(), build));
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    CodedOutputStream out(&stream);
    out.WriteTag(fn::RunFunctionRequest::kMetaFieldNumber << 3 | 2);
    const std::string encoded = EncodeShuffled(meta, random);
    out.WriteVarint32(static_cast<uint32_t>(encoded.size()));
    out.WriteString(encoded);
    EncodeFields(request, fn::RunFunctionRequest::kMetaFieldNumber, random,
                 &out);
  }
  return bytes;
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
    call.latency = report.took;
    call.cache_status = report.result.cache_status;
    call.response = report.result.response;
    reconcile_->calls.push_back(std::move(call));
  }

 private:
  DemoReconcile* const reconcile_;
};

// Runs the reconciles: each one's end begins the next.
class Driver {
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
    engine::Render(
        inputs_[reconcile->composite], options, callers_[reconcile->build],
        &clock_, recorder.get(),
        [this, reconcile, recorder](const engine::EngineOutcome& outcome) {
          reconcile->status = outcome.status;
          reconcile->composed = outcome.output.composed_resources_size();
          MutexLock lock(&mutex_);
          open_.erase(reconcile->composite);
          progress_(++done_);
          changed_.Signal();
        });
  }

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

std::string EncodeShuffled(const Message& message, std::mt19937* random) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    CodedOutputStream out(&stream);
    EncodeFields(message, 0, random, &out);
  }
  return bytes;
}

absl::Status Drive(const std::string& address,
                   const std::vector<engine::EngineInput>& inputs,
                   size_t at_once, const std::function<void(size_t)>& progress,
                   std::vector<DemoReconcile>* reconciles) {
  std::vector<std::unique_ptr<client::FunctionClient>> clients;
  std::vector<client::FunctionCaller*> callers;
  for (int build = 0; build < kDemoBuilds; ++build) {
    client::FunctionClientOptions options;
    options.functions = {{kDemoFunction, address}};
    options.threads = 1;
    options.encode = [build](const fn::RunFunctionRequest& request) {
      thread_local std::mt19937 random{std::random_device{}()};
      return EncodeAsBuild(request, build, &random);
    };
    auto client = client::FunctionClient::Create(std::move(options));
    if (!client.ok()) return client.status();
    clients.push_back(*std::move(client));
    callers.push_back(clients.back().get());
  }
  Driver driver(std::move(callers), inputs, at_once, progress, reconciles);
  driver.Run();
  // Until the last call's end has let go of the driver.
  clients.clear();
  return absl::OkStatus();
}

}  // namespace fncache::runner::demo
