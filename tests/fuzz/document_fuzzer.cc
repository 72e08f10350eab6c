// SPDX-License-Identifier: Apache-2.0
// JSON text through all that the command line makes of it: what is printed as
// YAML reads as the same again, except that a whole number is then int64 or a
// double; and a Struct keeps all but the digits beyond 2^53.
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/merge_key.h"
#include "text/json.h"
#include "text/kubernetes_yaml.h"
#include "text/object.h"
#include "text/yaml_writer.h"

namespace {

using fncache::testing::Check;
using fncache::testing::HasMergeKey;
using fncache::text::Json;

// As reading YAML leaves numbers.
Json Unstructured(const Json& json) {
  Json result = json;
  if (json.is_structured()) {
    for (Json& child : result) child = Unstructured(child);
  } else if (json.is_number_float()) {
    result = fncache::text::FromValue(fncache::text::ToValue(json));
  }
  if (result.is_number_unsigned() && result.get<uint64_t>() > INT64_MAX) {
    result = result.get<double>();
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 8192) return 0;
  const auto json = fncache::text::ParseJson(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!json.ok() || HasMergeKey(*json)) return 0;
  const std::string printed = fncache::text::ToYaml(*json);
  Check(fncache::IsUtf8(printed));
  const auto again = fncache::text::ParseKubernetesYaml(printed);
  Check(again.ok());
  Check(*again == Unstructured(*json));
  Check(fncache::text::ToYaml(*again) ==
        fncache::text::ToYaml(Unstructured(*json)));

  const auto value = fncache::text::ToValue(*json);
  const Json back = fncache::text::FromValue(value);
  Check(fncache::text::Equal(fncache::text::ToValue(back), value));
  Json merged = back;
  fncache::text::MergeInto(&merged, back);
  Check(merged == back);
  return 0;
}
