// SPDX-License-Identifier: Apache-2.0
// Any bytes as responses: two of them, and both in one (their merger). A digest
// exists if and only if protobuf parses them. Digests differ as the messages
// do, whatever encodes them.
//
// The first byte seeds what is random, the next two say how long the first one
// is.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"
#include "tests/cache/response_digest_checker.h"

namespace fncache::cache {
namespace {

void Require(const std::string& wrong) {
  if (wrong.empty()) return;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}

void Fuzz(absl::string_view input) {
  static auto* const checker = new ResponseDigestChecker();
  if (input.size() < 3 || input.size() > 1 << 16) return;
  const auto byte = [input](size_t i) {
    return static_cast<uint8_t>(input[i]);
  };
  const absl::string_view rest = input.substr(3);
  const absl::string_view a = rest.substr(0, byte(1) + 256 * byte(2));
  const absl::string_view b = rest.substr(a.size());
  const std::string both = absl::StrCat(a, b);
  for (const absl::string_view bytes : {a, b, absl::string_view(both)}) {
    Require(checker->CheckOne(bytes));
  }
  Require(checker->CheckPair(a, b));
  Require(checker->CheckPair(both, absl::StrCat(b, a)));
  Require(checker->CheckPair(both, a));
  v1::RunFunctionResponse response;
  if (!ParseAsProtobufDoes(both, &response)) return;
  response.clear_meta();
  key::Random random(byte(0) + 256 * input.size());
  const key::Style style =
      random.OneIn(3) ? key::Style::kAnyEncoder : key::Style::kWild;
  const std::string again = key::Encode(response, style, &random);
  Require(checker->CheckOne(again));
  bool equal = true;
  Require(checker->CheckPair(both, again, &equal));
  if (!equal) Require("another encoding parses as another message");
  key::Mutate(&response, &random);
  Require(checker->CheckPair(both, key::Encode(response, style, &random)));
}

}  // namespace
}  // namespace fncache::cache

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fncache::cache::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
