// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/struct_check.h"

#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "tests/common/long_form.h"

namespace fncache::cache::wire {
namespace {

namespace pb = google::protobuf;

bool Parses(absl::string_view bytes, int depth) {
  const pb::LogSilencer quiet;
  pb::Struct message;
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                              static_cast<int>(bytes.size()));
  in.SetRecursionLimit(depth);
  return message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

// Checks a copy with nothing behind it, so that asan detects reads beyond it.
bool Checks(absl::string_view bytes, int depth) {
  const std::unique_ptr<char[]> copy(new char[bytes.size()]);
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  return IsStruct({copy.get(), bytes.size()}, depth);
}

// Everything that a Struct may hold, with texts of every length around those at
// which the check goes another way.
pb::Struct Everything(int levels) {
  pb::Struct out;
  auto& fields = *out.mutable_fields();
  for (int size : {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 127, 128, 200}) {
    const std::string text(size, 'a');
    fields[text].set_string_value(text);
    fields[absl::StrCat("u", text)].set_string_value(
        absl::StrCat(text, "caf\xc3\xa9"));
    fields[absl::StrCat("\xe2\x82\xac", text)].set_string_value("");
  }
  fields["number"].set_number_value(-0.5);
  fields["true"].set_bool_value(true);
  fields["null"].set_null_value(pb::NULL_VALUE);
  fields["unset"];
  auto* list = fields["list"].mutable_list_value();
  list->add_values()->set_string_value("element");
  list->add_values()->mutable_list_value();
  list->add_values();
  fields["empty"].mutable_struct_value();
  if (levels > 0) {
    *fields["struct"].mutable_struct_value() = Everything(levels - 1);
    *list->add_values()->mutable_struct_value() = Everything(0);
  }
  return out;
}

TEST(StructCheck, TakesWhatEncodersWrite) {
  for (int levels : {0, 1, 2}) {
    const std::string bytes = Everything(levels).SerializeAsString();
    EXPECT_TRUE(Checks(bytes, 100));
  }
  EXPECT_TRUE(Checks("", 0));
}

TEST(StructCheck, AgreesWithProtobufWhicheverByteIsChanged) {
  const std::string good = Everything(1).SerializeAsString();
  std::string bytes = good;
  int refused = 0;
  constexpr int kStep = fncache::testing::kSanitized ? 11 : 1;
  for (size_t i = 0; i < bytes.size(); i += kStep) {
    for (int change : {0x01, 0x08, 0x7f, 0x80}) {
      bytes[i] = static_cast<char>(good[i] ^ change);
      const bool parses = Parses(bytes, 100);
      ASSERT_EQ(Checks(bytes, 100), parses) << i << " " << change;
      refused += parses ? 0 : 1;
    }
    bytes[i] = good[i];
  }
  EXPECT_GT(refused, 1000 / kStep);
}

TEST(StructCheck, AgreesWithProtobufWhereverItIsCutShort) {
  const std::string good = Everything(1).SerializeAsString();
  for (size_t size = 0; size < good.size(); ++size) {
    const absl::string_view bytes(good.data(), size);
    ASSERT_EQ(Checks(bytes, 100), Parses(bytes, 100)) << size;
  }
}

TEST(StructCheck, AgreesWithProtobufOnHowDeepIsTooDeep) {
  pb::Struct deep;
  pb::Struct* at = &deep;
  for (int i = 0; i < 6; ++i) {
    pb::Value& value = (*at->mutable_fields())["k"];
    at = i % 2 == 0
             ? value.mutable_struct_value()
             : value.mutable_list_value()->add_values()->mutable_struct_value();
  }
  (*at->mutable_fields())["k"].set_bool_value(true);
  for (const std::string& bytes :
       {deep.SerializeAsString(), Everything(2).SerializeAsString()}) {
    int refused = 0;
    for (int depth = 0; depth < 40; ++depth) {
      EXPECT_EQ(Checks(bytes, depth), Parses(bytes, depth)) << depth;
      refused += Checks(bytes, depth) ? 0 : 1;
    }
    EXPECT_GT(refused, 5);
    EXPECT_LT(refused, 35);
  }
}

}  // namespace
}  // namespace fncache::cache::wire
