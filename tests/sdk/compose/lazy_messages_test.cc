// SPDX-License-Identifier: Apache-2.0
// The messages with Structs as bytes have the wire of those with Structs, and a
// function that does nothing passes on what it got.
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "proto/function_lazy.pb.h"
#include "tests/sdk/compose/caller.h"

namespace fncache::sdk {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

void Compare(const EnumDescriptor* lazy, const EnumDescriptor* plain) {
  ASSERT_EQ(lazy->value_count(), plain->value_count()) << plain->full_name();
  for (int i = 0; i < plain->value_count(); ++i) {
    EXPECT_EQ(lazy->value(i)->name(), plain->value(i)->name());
    EXPECT_EQ(lazy->value(i)->number(), plain->value(i)->number());
  }
}

// The same names, numbers and types; `repeated bytes` for each Struct.
void Compare(const Descriptor* lazy, const Descriptor* plain) {
  EXPECT_EQ(lazy->name(), plain->name());
  ASSERT_EQ(lazy->field_count(), plain->field_count()) << plain->full_name();
  for (int i = 0; i < plain->field_count(); ++i) {
    const FieldDescriptor* const b = plain->field(i);
    const FieldDescriptor* const a = lazy->FindFieldByNumber(b->number());
    ASSERT_NE(a, nullptr) << b->full_name();
    EXPECT_EQ(a->name(), b->name());
    if (b->message_type() != nullptr &&
        b->message_type()->full_name() == "google.protobuf.Struct") {
      EXPECT_EQ(a->type(), FieldDescriptor::TYPE_BYTES) << b->full_name();
      EXPECT_TRUE(a->is_repeated()) << b->full_name();
      continue;
    }
    EXPECT_EQ(a->type(), b->type()) << b->full_name();
    EXPECT_EQ(a->label(), b->label()) << b->full_name();
    EXPECT_EQ(a->has_presence(), b->has_presence()) << b->full_name();
    if (b->enum_type() != nullptr) Compare(a->enum_type(), b->enum_type());
    if (b->message_type() == nullptr) continue;
    if (a->message_type()->file() == b->message_type()->file()) {
      EXPECT_EQ(a->message_type(), b->message_type());
    } else {
      Compare(a->message_type(), b->message_type());
    }
  }
}

TEST(LazyMessages, HaveTheFieldsOfThePlainOnes) {
  Compare(lazy::RunFunctionRequest::descriptor(),
          v1::RunFunctionRequest::descriptor());
  Compare(lazy::RunFunctionResponse::descriptor(),
          v1::RunFunctionResponse::descriptor());
  EXPECT_EQ(
      lazy::RunFunctionRequest::descriptor()->file()->message_type_count(),
      v1::RunFunctionRequest::descriptor()->file()->message_type_count());
}

// Random messages: any field may be there.
class RandomMessages {
 public:
  explicit RandomMessages(uint32_t seed) : random_(seed) {}

  void Fill(google::protobuf::Message* message, int depth) {
    const auto* const reflection = message->GetReflection();
    for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* const field = message->GetDescriptor()->field(i);
      if (field->is_repeated()) {
        for (int n = Below(4); n-- > 0 && depth > 0;) {
          Set(message, reflection, field, depth);
        }
      } else if (Below(2) == 0) {
        Set(message, reflection, field, depth);
      }
    }
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % end); }

  void Set(google::protobuf::Message* message,
           const google::protobuf::Reflection* reflection,
           const FieldDescriptor* field, int depth) {
    const bool many = field->is_repeated();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth > 0) {
          Fill(many ? reflection->AddMessage(message, field)
                    : reflection->MutableMessage(message, field),
               depth - 1);
        }
        return;
      case FieldDescriptor::CPPTYPE_ENUM: {
        const auto* const value =
            field->enum_type()->value(Below(field->enum_type()->value_count()));
        many ? reflection->AddEnum(message, field, value)
             : reflection->SetEnum(message, field, value);
        return;
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string text = absl::StrCat("k", Below(5));
        if (field->type() == FieldDescriptor::TYPE_BYTES) text += "\xff";
        many ? reflection->AddString(message, field, text)
             : reflection->SetString(message, field, text);
        return;
      }
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection->SetDouble(message, field, Below(100) / 7.0);
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection->SetBool(message, field, Below(2) == 0);
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection->SetInt64(message, field, Below(100));
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection->SetInt32(message, field, Below(100));
      default:
        FAIL() << field->full_name();
    }
  }

  std::mt19937 random_;
};

TEST(LazyMessages, AFunctionThatDoesNothingRespondsAsGosResponseTo) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    v1::RunFunctionRequest request;
    RandomMessages(seed).Fill(&request, 9);
    // response.To of function-sdk-go 0.7.
    v1::RunFunctionResponse wanted;
    wanted.mutable_meta()->set_tag(request.meta().tag());
    wanted.mutable_meta()->mutable_ttl()->set_seconds(60);
    if (request.has_desired()) *wanted.mutable_desired() = request.desired();
    if (request.has_context()) *wanted.mutable_context() = request.context();

    const auto result = sdk::Run([](fn::Context&) {}, fn::Options(),
                                 request.SerializeAsString(), CallInfo());
    ASSERT_TRUE(result.status.ok()) << result.status;
    v1::RunFunctionResponse response;
    ASSERT_TRUE(response.ParseFromString(result.response));
    ASSERT_TRUE(Same(response, wanted)) << "seed " << seed;
  }
}

TEST(LazyMessages, MessagesInPiecesAreJoined) {
  // Protobuf merges messages that stand behind each other.
  Caller one, two;
  one.Observed("a", "{}").Desired("d", "{x: {a: 1}}").Input("{a: 1}");
  *one.request.mutable_context() = FromYaml("{k: {a: 1}}");
  two.request.Clear();
  two.Composite("{spec: {b: 2}}").Input("{b: 2}");
  *two.request.mutable_context() = FromYaml("{k2: 1}");
  const auto function = [](fn::Context& ctx) {
    EXPECT_EQ(ctx.composite().observed()["kind"], "XNet");
    EXPECT_EQ(ctx.composite().observed()["spec"]["b"], 2);
    EXPECT_EQ(ctx.input()["a"], 1);
    EXPECT_EQ(ctx.input()["b"], 2);
    ctx.set_context("new", true);
  };
  const auto result = sdk::Run(
      function, fn::Options(),
      one.request.SerializeAsString() + two.request.SerializeAsString(),
      CallInfo());
  v1::RunFunctionResponse response;
  ASSERT_TRUE(response.ParseFromString(result.response));
  EXPECT_EQ(ToJson(response.context()),
            YamlAsJson("{k: {a: 1}, k2: 1, new: true}"));
}

TEST(LazyMessages, UnknownFieldsOfWhatPassesStay) {
  Caller call;
  call.Desired("a", "{apiVersion: v1, kind: A}");
  auto& a = (*call.request.mutable_desired()->mutable_resources())["a"];
  a.GetReflection()->MutableUnknownFields(&a)->AddVarint(99, 7);
  call([](fn::Context& ctx) { ctx.resource("a", "v1", "A")["spec"]["x"] = 1; });
  const auto& out = call.response.desired().resources().at("a");
  EXPECT_EQ(out.GetReflection()->GetUnknownFields(out).field(0).varint(), 7u);
}

}  // namespace
}  // namespace fncache::sdk
