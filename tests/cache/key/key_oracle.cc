// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/key/key_oracle.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cache/key/reencode.h"
#include "cache/wire/schema.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/unknown_field_set.h"

namespace fncache::cache::key {
namespace {

namespace pb = google::protobuf;
namespace v1 = apiextensions::fn::proto::v1;
using Field = pb::FieldDescriptor;

// Orders fields by their numbers; those of one number stay in their order.
void Order(pb::UnknownFieldSet* fields) {
  std::map<int, pb::UnknownFieldSet> by_number;
  for (int i = 0; i < fields->field_count(); ++i) {
    pb::UnknownField* const field = fields->mutable_field(i);
    if (field->type() == pb::UnknownField::TYPE_GROUP) {
      Order(field->mutable_group());
    }
    by_number[field->number()].AddField(*field);
  }
  fields->Clear();
  for (const auto& [number, some] : by_number) fields->MergeFrom(some);
}

// The same for a message and every one below it.
void Order(pb::Message* message) {
  const pb::Reflection& reflection = *message->GetReflection();
  if (!reflection.GetUnknownFields(*message).empty()) {
    Order(reflection.MutableUnknownFields(message));
  }
  std::vector<const Field*> fields;
  reflection.ListFields(*message, &fields);
  for (const Field* const field : fields) {
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Order(reflection.MutableMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      Order(reflection.MutableRepeatedMessage(message, field, i));
    }
  }
}

// One encoding for all equal messages: known fields by their numbers, entries
// of maps by their keys, then the unknown fields.
std::string Encoded(const pb::Message& message) {
  const std::unique_ptr<pb::Message> copy(message.New());
  copy->CopyFrom(message);
  Order(copy.get());
  std::string bytes;
  {
    pb::io::StringOutputStream stream(&bytes);
    pb::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    copy->SerializeToCodedStream(&out);
  }
  return bytes;
}

bool Parse(absl::string_view bytes, pb::Message* message) {
  pb::LogSilencer silence;
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                              static_cast<int>(bytes.size()));
  in.SetRecursionLimit(wire::kMaxDepth);
  return message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

bool Is64HexDigits(const std::string& tag) {
  return tag.size() == 64 &&
         tag.find_first_not_of("0123456789abcdefABCDEF") == tag.npos;
}

}  // namespace

bool SameMessage(const pb::Message& a, const pb::Message& b) {
  return Encoded(a) == Encoded(b);
}

bool SameRequest(const MaskSet& masks, v1::RunFunctionRequest a,
                 v1::RunFunctionRequest b) {
  ClearMasked(masks, &a);
  ClearMasked(masks, &b);
  return SameMessage(a, b);
}

bool ProtobufParses(absl::string_view bytes, v1::RunFunctionRequest* request) {
  return Parse(bytes, request);
}

bool ProtobufParsesTagFields(absl::string_view bytes,
                             v1::RunFunctionRequest* rest) {
  // A message without fields of its own keeps each field as it came. A skipped
  // field is bytes there, whatever they are.
  static const auto* const kSkipped = [] {
    auto* const numbers = new std::set<int>();
    for (const char* name : {"observed", "desired", "input", "credentials"}) {
      numbers->insert(v1::RunFunctionRequest::descriptor()
                          ->FindFieldByName(name)
                          ->number());
    }
    return numbers;
  }();
  pb::Empty all;
  if (!Parse(bytes, &all)) return false;
  pb::Empty kept;
  const pb::UnknownFieldSet& fields =
      all.GetReflection()->GetUnknownFields(all);
  for (int i = 0; i < fields.field_count(); ++i) {
    const pb::UnknownField& field = fields.field(i);
    if (field.type() == pb::UnknownField::TYPE_LENGTH_DELIMITED &&
        kSkipped->count(field.number()) > 0) {
      continue;
    }
    kept.GetReflection()->MutableUnknownFields(&kept)->AddField(field);
  }
  return Parse(kept.SerializeAsString(), rest);
}

Judged Judge(absl::string_view bytes, KeySource source) {
  Judged judged;
  if (source == KeySource::kTag) {
    if (!ProtobufParsesTagFields(bytes, &judged.message)) return judged;
    judged.by_tag = Is64HexDigits(judged.message.meta().tag());
    judged.keyed = judged.by_tag;
    if (judged.keyed) return judged;
    judged.message.Clear();
  }
  judged.keyed = ProtobufParses(bytes, &judged.message);
  return judged;
}

bool SameKey(const MaskSet& masks, const Judged& a, const Judged& b) {
  if (a.by_tag != b.by_tag) return false;
  if (a.by_tag && a.message.meta().tag() != b.message.meta().tag()) {
    return false;
  }
  return SameRequest(masks, a.message, b.message);
}

}  // namespace fncache::cache::key
