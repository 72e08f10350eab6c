// SPDX-License-Identifier: Apache-2.0
// Any bytes are a hint or are refused, whole or in two fields. A hint is within
// its bounds, written from its paths it is the same hint, and a key by it can
// be made.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "cache/key/digest.h"
#include "cache/key/hint.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fncache::cache::key::Hint;
  using fncache::fuzz::Check;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t half = text.find('\n');
  const absl::string_view fields[] = {
      text.substr(0, half),
      half == text.npos ? absl::string_view() : text.substr(half + 1)};
  const auto hint =
      Hint::Parse(absl::MakeConstSpan(fields, half == text.npos ? 1 : 2));
  if (!hint.ok()) {
    Check(hint.status().message().size() < 100);
    return 0;
  }
  Check(size <= Hint::kMostBytes + 1);
  Check(hint->reads().size() <= Hint::kMostPaths);
  Check(hint->memory() <= Hint::kMostMemory);
  std::string again = "reads=(";
  for (const std::string& path : hint->reads()) {
    Check(hint->Counts(absl::string_view(path)));
    absl::StrAppend(&again, "\"",
                    absl::StrReplaceAll(path, {{"\\", "\\\\"}, {"\"", "\\\""}}),
                    "\" ");
  }
  absl::StrAppend(&again, hint->pure() ? "),pure" : ")");
  const absl::string_view value[] = {again};
  const auto same = Hint::Parse(value);
  Check(same.ok() && *same == *hint);

  static const fncache::cache::key::Digester digester({}, {"f", "m", "g"}, {});
  static fncache::cache::key::DigestScratch scratch;
  const std::string prefix = digester.HintPrefix(*hint);
  // observed.composite.resource.spec.a.b is true.
  constexpr char kRequest[] =
      "\x12\x22\x0a\x20\x0a\x1e\x0a\x1c\x0a\x04spec\x12\x14\x2a\x12\x0a\x10\x0a"
      "\x01"
      "a\x12\x0b\x2a\x09\x0a\x07\x0a\x01"
      "b\x12\x02\x20\x01";
  const absl::string_view request(kRequest, sizeof kRequest - 1);
  Check(digester.ComputeByHint(request, *hint, prefix, &scratch).keyed);
  return 0;
}
