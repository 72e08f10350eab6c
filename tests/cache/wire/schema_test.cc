#include "cache/wire/schema.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "proto/function_v1beta1.pb.h"

namespace fncache::cache::wire {
namespace {

namespace pb = google::protobuf;
using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;

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

bool Parses(const std::string& bytes, int depth = kMaxDepth) {
  RunFunctionRequest request;
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                              static_cast<int>(bytes.size()));
  in.SetRecursionLimit(depth);
  return request.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

bool Valid(const std::string& bytes) {
  return Validate(kRunFunctionRequestType, bytes);
}

std::string Field(uint32_t number, absl::string_view bytes) {
  std::string out;
  AppendBytesField(&out, number, bytes);
  return out;
}

TEST(Validate, AgreesWithProtobufOnOddBytes) {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  const std::string in_context[] = {
      ""s,
      // A map entry without key, without value, empty, with unknown fields.
      Field(1, ""),
      Field(1, Field(1, "k")),
      Field(1, Field(2, "")),
      Field(1, Field(1, "k") + Field(2, "") + Field(3, "\xff")),
      Field(1, Field(2, "") + Field(1, "k")),
      // Keys and strings that are no UTF-8, and unknown bytes that need not be.
      Field(1, Field(1, "\xff")),
      Field(1, Field(2, Field(3, "\xc0\x80"))),
      Field(1, Field(1, "\xff") + Field(1, "k")),
      Field(9, "\xff"),
      Field(1, Field(2, Field(3, "\xed\xa0\x80"))),
      Field(1, Field(2, Field(3, "\xf0\x9f\x98\x80"))),
      // The wrong wire type.
      "\x08\x01"s,
      "\x0d\x01\x02\x03\x04"s,
      "\x09\1\2\3\4\5\6\7\x08"s,
      // Field number 0, wire types 6 and 7, tags that end nothing.
      "\x02\x00"s,
      "\x00"s,
      "\x00\x00"s,
      "\x01\1\2\3\4\5\6\7\x08"s,
      "\x05\1\2\3\4"s,
      "\x0e"s,
      "\x0f"s,
      "\x0c"s,
      "\x04"s,
      "\x03\x04"s,
      // Groups: whole, of another number, open, nested, crossing.
      "\x53\x54"s,
      "\x53\x5c"s,
      "\x53"s,
      "\x53\x5b\x08\x01\x5c\x54"s,
      "\x53\x5b\x54\x5c"s,
      "\x0b\x0c"s,
      // Long tags, lengths and varints; too long ones.
      "\x8a\x00\x00"s,
      "\x8a\x80\x80\x80\x00\x00"s,
      "\x8a\x80\x80\x80\x80\x00\x00"s,
      "\x8a\x80\x80\x80\x70\x00"s,
      "\x80\x80\x80\x80\x10\x00"s,
      "\x0a\x80\x00"s,
      "\x0a\x80\x80\x80\x80\x00"s,
      "\x0a\x80\x80\x80\x80\x80\x00"s,
      "\x0a\x80\x80\x80\x80\x10"s,
      "\x0a\xff\xff\xff\xff\x07"s,
      "\x0a\xff\xff\xff\xff\x0f"s,
      "\x50\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"s,
      "\x50\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f"s,
      "\x50\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"s,
      "\xfa\xff\xff\xff\x0f\x00"s,
      "\xf8\xff\xff\xff\xff\x01"s,
      // Cut short.
      "\x0a"s,
      "\x0a\x01"s,
      "\x50"s,
      "\x50\x80"s,
      "\x51\1\2\3"s,
      "\x55\1\2\3"s,
      "\x8a"s,
      "\x0a\x80"s,
  };
  int valid = 0;
  int number = 0;
  for (const std::string& bytes : in_context) {
    SCOPED_TRACE(number++);
    for (const std::string& whole :
         {Field(5, bytes), bytes, Field(5, bytes) + bytes}) {
      EXPECT_EQ(Valid(whole), Parses(whole));
      valid += Valid(whole) ? 1 : 0;
    }
  }
  EXPECT_GT(valid, 20);
}

TEST(Validate, PackedAndUnpackedVarints) {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  for (const std::string& meta :
       {"\x12\x00"s, "\x12\x02\x01\x02"s, "\x10\x01\x10\x02"s, "\x12\x01\x80"s,
        "\x12\x02\x80\x80\x10\x01"s, "\x12\x02\x81\x00"s,
        "\x12\x03\x01\x80\x80"s + Field(3, std::string(40, '\1')),
        "\x12\x0b\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"s,
        "\x12\x28"s + std::string(39, '\1') + "\x81"s,
        "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s}) {
    const std::string bytes = Field(1, meta);
    EXPECT_EQ(Valid(bytes), Parses(bytes)) << testing::PrintToString(meta);
  }
  EXPECT_TRUE(Valid(Field(1, "\x12\x02\x01\x02")));
  EXPECT_FALSE(Valid(Field(1, "\x12\x02\x01\x82")));
}

// `levels` messages below the outermost, each in the one before.
std::string NestedJson(int levels) {
  // From the inside out: Struct in Value in entry in Struct...
  std::string bytes;
  const uint32_t numbers[] = {5, 2, 1};  // struct_value, entry value, fields
  // The outermost field is `context`, a Struct.
  for (int level = levels - 1; level >= 1; --level) {
    // Level 1 is an entry in the context Struct.
    const uint32_t number = numbers[(3 - level % 3) % 3];
    bytes = Field(number, bytes);
  }
  return Field(5, bytes);
}

std::string NestedGroups(int levels) {
  std::string bytes;
  for (int i = 0; i < levels; ++i) bytes += '\x53';
  for (int i = 0; i < levels; ++i) bytes += '\x54';
  return bytes;
}

TEST(Validate, DepthIsProtobufs) {
  for (int levels : {1, 2, 3, 4, 5, 99, 100, 101, 998, 999, 1000, 1001, 1002,
                     1003, 1004, 20000}) {
    SCOPED_TRACE(levels);
    EXPECT_EQ(Valid(NestedJson(levels)), Parses(NestedJson(levels)));
    EXPECT_EQ(Valid(NestedJson(levels)), levels <= 1000);
    EXPECT_EQ(Valid(NestedGroups(levels)), Parses(NestedGroups(levels)));
    EXPECT_EQ(Valid(NestedGroups(levels)), levels <= 1000);
    // A group within messages, and within a map entry.
    const std::string mixed =
        Field(5, Field(1, NestedGroups(levels) + Field(1, "k")));
    EXPECT_EQ(Valid(mixed), Parses(mixed));
    EXPECT_EQ(Valid(mixed), levels <= 998);
  }
}

TEST(Validate, DepthCanBeSet) {
  EXPECT_TRUE(Validate(kRunFunctionRequestType, NestedJson(100), 100));
  EXPECT_FALSE(Validate(kRunFunctionRequestType, NestedJson(101), 100));
  EXPECT_TRUE(Parses(NestedJson(100), 100));
  EXPECT_FALSE(Parses(NestedJson(101), 100));
}

TEST(Validate, ResponsesToo) {
  RunFunctionResponse response;
  response.mutable_meta()->mutable_ttl()->set_seconds(60);
  response.add_results()->set_message("caf\xc3\xa9");
  auto& selector = (*response.mutable_requirements()->mutable_resources())["r"];
  (*selector.mutable_match_labels()->mutable_labels())["a"] = "b";
  std::string bytes = response.SerializeAsString();
  EXPECT_TRUE(Validate(kRunFunctionResponseType, bytes));
  const size_t at = bytes.find('\xc3');
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'x';
  EXPECT_FALSE(Validate(kRunFunctionResponseType, bytes));
  // match_labels' values are strings, checked in the map entry.
  const std::string labels =
      Field(5, Field(2, Field(2, Field(4, Field(1, Field(2, "\xff"))))));
  EXPECT_FALSE(RunFunctionResponse().ParseFromString(labels));
  EXPECT_FALSE(Validate(kRunFunctionResponseType, labels));
}

}  // namespace
}  // namespace fncache::cache::wire
