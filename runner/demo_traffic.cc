#include "runner/demo_traffic.h"

#include <openssl/sha.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "runner/parse.h"

namespace fncache::runner {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::io::CodedOutputStream;

constexpr char kMethod[] =
    "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

// $0 the composite's name, $1 the number of buckets, $2 their references.
constexpr char kComposite[] = R"({"resource": {
  "apiVersion": "shop.example.org/v1alpha1", "kind": "Lake",
  "metadata": {
    "name": "$0", "uid": "0f0f0f0f-5555-6666-7777-888888888888",
    "resourceVersion": "10$1", "generation": 3,
    "creationTimestamp": "2026-08-01T09:12:44Z",
    "finalizers": ["composite.apiextensions.crossplane.io"],
    "labels": {"crossplane.io/composite": "$0", "team": "storage"}},
  "spec": {
    "region": "eu-central-1", "versioning": true, "buckets": $1,
    "retention": {"days": 30, "mode": "governance"},
    "crossplane": {
      "compositionRef": {"name": "lakes"},
      "compositionUpdatePolicy": "Automatic",
      "resourceRefs": [$2]}},
  "status": {"conditions": [
    {"type": "Synced", "status": "True", "reason": "ReconcileSuccess",
     "lastTransitionTime": "2026-08-01T09:12:50Z"},
    {"type": "Ready", "status": "True", "reason": "Available",
     "lastTransitionTime": "2026-08-01T09:13:31Z"}]}}})";

// $0 the composite's name, $1 the bucket's number.
constexpr char kBucket[] = R"({"resource": {
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
       "lastTransitionTime": "2026-08-01T09:13:30Z"}]}}})";

constexpr char kInput[] = R"({
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
      "${observed.composite.resource.spec.buckets} buckets for ${observed.composite.resource.metadata.name}"}]}})";

// One field's value, tag included; `index` is -1 for a singular field.
void EncodeField(const Message& message, const FieldDescriptor* field,
                 int index, std::mt19937* random, CodedOutputStream* out) {
  const Reflection& reflection = *message.GetReflection();
  const uint32_t number = static_cast<uint32_t>(field->number()) << 3;
  const auto write_bytes = [&](const std::string& bytes) {
    out->WriteTag(number | 2);
    out->WriteVarint32(static_cast<uint32_t>(bytes.size()));
    out->WriteString(bytes);
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

struct OpenCall {
  DemoCall* call;
  grpc::ClientContext context;
  grpc::ByteBuffer response;
  grpc::Status status;
  absl::Time start;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

void Finish(OpenCall* open) {
  DemoCall& call = *open->call;
  if (!open->status.ok()) {
    call.status =
        absl::Status(static_cast<absl::StatusCode>(open->status.error_code()),
                     open->status.error_message());
    return;
  }
  const auto& headers = open->context.GetServerInitialMetadata();
  const auto found = headers.find("cache-status");
  if (found != headers.end()) {
    call.cache_status.assign(found->second.data(), found->second.size());
  }
  grpc::ProtoBufferReader reader(&open->response);
  if (!reader.status().ok() || !ParseNested(&reader, &call.response)) {
    call.status = absl::DataLossError("the answer is not a response");
  }
}

}  // namespace

fn::RunFunctionRequest DemoRequest(int composite, int buckets) {
  const std::string name = absl::StrCat("lake-", composite);
  std::vector<std::string> references, observed;
  for (int i = 0; i < buckets; ++i) {
    references.push_back(absl::Substitute(
        R"({"apiVersion": "storage.example.org/v1", "kind": "Bucket",
            "name": "$0-$1"})",
        name, i));
    observed.push_back(absl::StrCat(
        "\"bucket-", i, "\": ", absl::Substitute(kBucket, name, i)));
  }
  const std::string json = absl::StrCat(
      R"({"meta": {"capabilities": [1, 2, 3, 4, 5]}, "observed": {"composite":)",
      absl::Substitute(kComposite, name, buckets,
                       absl::StrJoin(references, ",")),
      R"(, "resources": {)", absl::StrJoin(observed, ","), R"(}}, "input": )",
      kInput, "}");
  fn::RunFunctionRequest request;
  const auto status =
      google::protobuf::util::JsonStringToMessage(json, &request);
  // The text is ours: were it wrong, every test of it would say so.
  if (!status.ok()) request.Clear();
  return request;
}

std::string DemoTag(const fn::RunFunctionRequest& request, int build) {
  fn::RunFunctionRequest untagged = request;
  untagged.clear_meta();
  std::string bytes = absl::StrCat(build);
  {
    google::protobuf::io::StringOutputStream out(&bytes);
    CodedOutputStream coded(&out);
    coded.SetSerializationDeterministic(true);
    untagged.SerializeToCodedStream(&coded);
  }
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof digest));
}

std::string EncodeShuffled(const Message& message, std::mt19937* random) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    CodedOutputStream out(&stream);
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (!field->is_repeated()) {
        EncodeField(message, field, -1, random, &out);
        continue;
      }
      std::vector<int> order(reflection.FieldSize(message, field));
      std::iota(order.begin(), order.end(), 0);
      if (field->is_map()) std::shuffle(order.begin(), order.end(), *random);
      for (const int index : order) {
        EncodeField(message, field, index, random, &out);
      }
    }
  }
  return bytes;
}

void Drive(const std::string& address, size_t at_once,
           const std::function<void(size_t)>& progress,
           std::vector<DemoCall>* calls) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A connection of its own, as another runner would have.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments));
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<OpenCall>> answered;
  std::set<int> open_composites;
  size_t sent = 0;
  size_t done = 0;
  const auto send = [&] {
    auto* open = new OpenCall;
    open->call = &(*calls)[sent++];
    grpc::Slice slice(open->call->bytes);
    const grpc::ByteBuffer request(&slice, 1);
    open->call->bytes.clear();
    open->context.set_wait_for_ready(true);
    open->context.set_deadline(
        absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    open->start = absl::Now();
    open->reader =
        stub.PrepareUnaryCall(&open->context, kMethod, request, &queue);
    open->reader->StartCall();
    open->reader->Finish(&open->response, &open->status, open);
  };
  const auto send_all = [&] {
    while (sent < calls->size() && open_composites.size() < at_once &&
           open_composites.insert((*calls)[sent].composite).second) {
      send();
    }
  };
  send_all();
  while (done < calls->size()) {
    void* tag = nullptr;
    bool ok = false;
    if (!queue.Next(&tag, &ok)) break;
    auto* open = static_cast<OpenCall*>(tag);
    open->call->latency = absl::Now() - open->start;
    open_composites.erase(open->call->composite);
    send_all();
    answered.emplace_back(open);
    progress(++done);
  }
  // Read only now: it must not add to the latency of what is under way.
  for (const auto& open : answered) Finish(open.get());
}

}  // namespace fncache::runner
