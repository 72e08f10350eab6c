// SPDX-License-Identifier: Apache-2.0
// Validation over any schema and object: bytes are two JSON texts with a line
// of `---` between. For any of them, problems are bounded and repeat. A schema
// with problems of values matches nothing, so `not` of it has none.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fncache/function/value.h"
#include "google/protobuf/struct.pb.h"
#include "sdk/model/node.h"
#include "sdk/schema/input.h"
#include "sdk/schema/problems.h"
#include "sdk/schema/validate.h"
#include "tests/fuzz/check.h"
#include "text/json.h"

namespace {

using fncache::function::Problem;
using fncache::function::Value;
using fncache::fuzz::Check;

// The document of a Struct; absent where it is too deep.
struct Parsed {
  explicit Parsed(const google::protobuf::Struct& from)
      : bytes(from.SerializeAsString()) {
    std::string error;
    valid = fncache::sdk::DecodeStruct(bytes, value.ref().get(), &error);
  }
  const std::string bytes;
  Value value;
  bool valid;
};

std::vector<Problem> Validated(const Parsed& schema, const Parsed& object) {
  return fncache::sdk::schema::Validate(schema.value.ref().get(),
                                        object.value.ref().get());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr absl::string_view kBetween = "\n---\n";
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t between = input.find(kBetween);
  if (size > 8192 || between == absl::string_view::npos) return 0;
  const auto first = fncache::text::ParseJsonStruct(input.substr(0, between));
  const auto second =
      fncache::text::ParseJsonStruct(input.substr(between + kBetween.size()));
  if (!first.ok() || !second.ok()) return 0;
  const Parsed schema(*first), object(*second);
  if (!schema.valid || !object.valid) return 0;
  const std::vector<Problem> problems = Validated(schema, object);
  Check(problems.size() <= fncache::sdk::schema::kMaxProblems);
  const std::vector<Problem> again = Validated(schema, object);
  Check(again.size() == problems.size());
  bool values = false;
  for (size_t i = 0; i < problems.size(); ++i) {
    Check(problems[i].path == again[i].path);
    Check(problems[i].text == again[i].text);
    values = values || problems[i].text != "is not known";
  }
  google::protobuf::Struct opposite;
  *(*opposite.mutable_fields())["not"].mutable_struct_value() = *first;
  const Parsed other(opposite);
  if (other.valid && values) Check(Validated(other, object).empty());
  const auto of_input = fncache::sdk::schema::CheckInput(
      input.substr(0, between), object.value.ref().get());
  Check(of_input.size() == problems.size());
  return 0;
}
