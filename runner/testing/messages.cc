// SPDX-License-Identifier: Apache-2.0
#include "runner/testing/messages.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/unknown_field_set.h"
#include "google/protobuf/util/json_util.h"
#include "insight/request/response_difference.h"
#include "nlohmann/json.hpp"
#include "runner/client/parse.h"
#include "sdk/model/node.h"
#include "text/deterministic_bytes.h"

namespace fncache::function::testing {

namespace proto = apiextensions::fn::proto::v1;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Struct;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;
using text::Json;

namespace {

std::string Shuffled(const std::string& bytes, const Descriptor& type,
                     uint64_t* random) {
  UnknownFieldSet in;
  in.ParseFromString(bytes);
  std::vector<int> order;
  std::map<int, std::vector<size_t>> entries;  // of each map: places in `order`
  for (int i = 0; i < in.field_count(); ++i) {
    const FieldDescriptor* const field =
        type.FindFieldByNumber(in.field(i).number());
    if (field != nullptr && field->is_map()) {
      entries[field->number()].push_back(order.size());
    }
    order.push_back(i);
  }
  for (const auto& [number, at] : entries) {
    for (size_t i = at.size(); i > 1; --i) {
      std::swap(order[at[i - 1]], order[at[NextRandom(random) % i]]);
    }
  }
  UnknownFieldSet out;
  for (const int i : order) {
    const UnknownField& from = in.field(i);
    const FieldDescriptor* const field = type.FindFieldByNumber(from.number());
    if (field != nullptr && field->message_type() != nullptr) {
      out.AddLengthDelimited(
          from.number(),
          Shuffled(from.length_delimited(), *field->message_type(), random));
    } else {
      out.AddField(from);
    }
  }
  std::string shuffled;
  out.SerializeToString(&shuffled);
  return shuffled;
}

// Moves the Struct out of the message, because protobuf's own JSON ends at 64
// levels.
Json Taken(proto::Resource* resource) {
  Json to = Json::object();
  if (resource->has_resource()) {
    to["resource"] = text::FromStruct(resource->resource());
  }
  for (const auto& [key, value] : resource->connection_details()) {
    to["connection_details"][key] = absl::StrCat(value.size(), " bytes");
  }
  resource->clear_resource();
  resource->clear_connection_details();
  return to;
}

}  // namespace

uint64_t NextRandom(uint64_t* state) {  // SplitMix64
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Json ToJson(const proto::RunFunctionResponse& response) {
  proto::RunFunctionResponse flat = response;
  Json structs = Json::object();
  if (flat.has_context()) structs["context"] = text::FromStruct(flat.context());
  if (flat.has_output()) structs["output"] = text::FromStruct(flat.output());
  flat.clear_context();
  flat.clear_output();
  proto::State& desired = *flat.mutable_desired();
  for (auto& [name, resource] : *desired.mutable_resources()) {
    structs["desired"]["resources"][name] = Taken(&resource);
  }
  if (desired.has_composite()) {
    structs["desired"]["composite"] = Taken(desired.mutable_composite());
  }
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string printed;
  if (google::protobuf::util::MessageToJsonString(flat, &printed, options)
          .ok()) {
    if (absl::StatusOr<Json> json = text::ParseJson(printed); json.ok()) {
      text::MergeInto(&*json, structs);
      return *std::move(json);
    }
  }
  return structs;
}

std::string Difference(const proto::RunFunctionResponse& a,
                       const proto::RunFunctionResponse& b) {
  proto::RunFunctionResponse one = a;
  proto::RunFunctionResponse other = b;
  one.mutable_meta()->clear_tag();
  other.mutable_meta()->clear_tag();
  if (text::DeterministicBytes(one) == text::DeterministicBytes(other)) {
    return "";
  }
  one.clear_meta();
  other.clear_meta();
  insight::request::ResponseComparer comparer(
      insight::request::FingerprintSecret::Random(), {});
  const auto found = comparer.Compare({one.SerializeAsString()},
                                      {other.SerializeAsString()}, 1);
  return found.empty() ? "meta.ttl" : found[0].path;
}

std::string ShuffledBytes(const google::protobuf::Message& message,
                          uint64_t* random) {
  return Shuffled(message.SerializeAsString(), *message.GetDescriptor(),
                  random);
}

Value ToValue(const Struct& object) {
  Value value;
  sdk::Document* const document = value.ref().get()->document;
  document->SetBytes(document->arena()->Keep(object.SerializeAsString()));
  return Value(internal::Ref(document->root()));
}

Struct ToStruct(const Value& value) {
  const std::string bytes = sdk::EncodeStruct(value.ref().get());
  google::protobuf::io::ArrayInputStream in(bytes.data(),
                                            static_cast<int>(bytes.size()));
  Struct object;
  if (!runner::client::ParseNested(&in, &object)) object.Clear();
  return object;
}

}  // namespace fncache::function::testing
