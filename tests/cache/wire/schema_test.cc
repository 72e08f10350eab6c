// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/schema.h"

#include <set>

#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "proto/function_v1beta1.pb.h"

namespace fncache::cache::wire {
namespace {

namespace pb = google::protobuf;

FieldKind KindOf(const pb::FieldDescriptor& field) {
  switch (field.type()) {
    case pb::FieldDescriptor::TYPE_STRING:
      return FieldKind::kString;
    case pb::FieldDescriptor::TYPE_BYTES:
      return FieldKind::kBytes;
    case pb::FieldDescriptor::TYPE_BOOL:
      return FieldKind::kBool;
    case pb::FieldDescriptor::TYPE_ENUM:
      return FieldKind::kEnum;
    case pb::FieldDescriptor::TYPE_INT32:
      return FieldKind::kInt32;
    case pb::FieldDescriptor::TYPE_INT64:
      return FieldKind::kInt64;
    case pb::FieldDescriptor::TYPE_DOUBLE:
      return FieldKind::kDouble;
    case pb::FieldDescriptor::TYPE_MESSAGE:
      return FieldKind::kMessage;
    default:
      ADD_FAILURE() << "the schema has no kind for " << field.full_name();
      return FieldKind::kBytes;
  }
}

void ExpectSame(const MessageType& type, const pb::Descriptor& descriptor,
                std::set<const MessageType*>* seen) {
  if (!seen->insert(&type).second) return;
  EXPECT_EQ(type.name, descriptor.name());
  ASSERT_EQ(type.field_count, descriptor.field_count()) << type.name;
  for (size_t i = 0; i < type.field_count; ++i) {
    const FieldType& ours = type.fields[i];
    const pb::FieldDescriptor* theirs =
        descriptor.FindFieldByNumber(static_cast<int>(ours.number));
    ASSERT_NE(theirs, nullptr) << type.name << ' ' << ours.number;
    SCOPED_TRACE(theirs->full_name());
    EXPECT_EQ(ours.number, i + 1);
    EXPECT_EQ(ours.name, theirs->name());
    EXPECT_EQ(type.Find(ours.number), &ours);
    EXPECT_EQ(type.Find(theirs->name()), &ours);
    EXPECT_EQ(ours.label == FieldLabel::kMap, theirs->is_map());
    EXPECT_EQ(ours.label == FieldLabel::kRepeated,
              theirs->is_repeated() && !theirs->is_map());
    EXPECT_EQ(ours.label == FieldLabel::kExplicit, theirs->has_presence());
    const pb::OneofDescriptor* const oneof = theirs->real_containing_oneof();
    EXPECT_EQ(ours.in_oneof, oneof != nullptr && oneof->field_count() > 1);
    const pb::FieldDescriptor* element = theirs;
    if (theirs->is_map()) {
      EXPECT_EQ(theirs->message_type()->map_key()->type(),
                pb::FieldDescriptor::TYPE_STRING);
      element = theirs->message_type()->map_value();
    }
    EXPECT_EQ(ours.kind, KindOf(*element));
    ASSERT_EQ(ours.message != nullptr, element->message_type() != nullptr);
    if (ours.message != nullptr) {
      ExpectSame(*ours.message, *element->message_type(), seen);
    }
  }
  EXPECT_EQ(type.Find(0), nullptr);
  EXPECT_EQ(type.Find(type.field_count + 1), nullptr);
}

TEST(Schema, TablesAreTheProtocols) {
  namespace v1 = apiextensions::fn::proto::v1;
  namespace v1beta1 = apiextensions::fn::proto::v1beta1;
  for (const pb::Descriptor* request :
       {v1::RunFunctionRequest::descriptor(),
        v1beta1::RunFunctionRequest::descriptor()}) {
    std::set<const MessageType*> seen;
    ExpectSame(kRunFunctionRequestType, *request, &seen);
    EXPECT_EQ(seen.size(), 11);
  }
  for (const pb::Descriptor* response :
       {v1::RunFunctionResponse::descriptor(),
        v1beta1::RunFunctionResponse::descriptor()}) {
    std::set<const MessageType*> seen;
    ExpectSame(kRunFunctionResponseType, *response, &seen);
    EXPECT_EQ(seen.size(), 14);
  }
}

}  // namespace
}  // namespace fncache::cache::wire
