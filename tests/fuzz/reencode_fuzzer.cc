// SPDX-License-Identifier: Apache-2.0
// The slow path: two requests. It makes the first, the second, and both in one
// (their merger) plain. The result is plain to the fast path, is its own plain
// form, and parses as an equal message. Keys of the requests differ as their
// messages do, with masks and after ClearMasked.
//
// The first byte picks the masks, the next two say how long the first one is.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cache/key/reencode.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/key_checker.h"
#include "tests/cache/key/key_oracle.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"

namespace fncache::cache {
namespace {

void Require(const std::string& wrong) {
  if (wrong.empty()) return;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}

// The slow path alone.
void CheckPlain(absl::string_view bytes, key::KeyChecker* checker) {
  apiextensions::fn::proto::v1::RunFunctionRequest request;
  std::string plain;
  const bool parses = key::ProtobufParses(bytes, &request);
  if (key::Reencode(bytes, &plain) != parses) Require("parsed by one alone");
  if (!parses) return;
  apiextensions::fn::proto::v1::RunFunctionRequest again;
  if (!key::ProtobufParses(plain, &again))
    return;  // too deep by one, see kMaxPlainDepth
  if (!key::SameRequest(key::MaskSet(), request, again)) {
    Require("the plain form is another message");
  }
  bool fast = false;
  Require(checker->CheckOne(plain, &fast));
  if (!fast) Require("the plain form is not plain");
  std::string twice;
  if (!key::Reencode(plain, &twice) || twice != plain) {
    Require("the plain form is not its own");
  }
}

void Fuzz(absl::string_view input) {
  static auto* const checkers = [] {
    auto* all = new std::deque<key::KeyChecker>();
    for (const key::MaskSet& masks : key::MaskSets()) all->emplace_back(masks);
    return all;
  }();
  if (input.size() < 3 || input.size() > 1 << 16) return;
  const auto byte = [input](size_t i) {
    return static_cast<uint8_t>(input[i]);
  };
  const size_t index = byte(0) % checkers->size();
  key::KeyChecker& checker = (*checkers)[index];
  const absl::string_view rest = input.substr(3);
  const absl::string_view a = rest.substr(0, byte(1) + 256 * byte(2));
  const absl::string_view b = rest.substr(a.size());
  const std::string both = absl::StrCat(a, b);
  const std::string reversed = absl::StrCat(b, a);
  CheckPlain(a, &checker);
  CheckPlain(b, &checker);
  CheckPlain(both, &checker);
  Require(checker.CheckPair(a, b));
  Require(checker.CheckPair(both, reversed));
  Require(checker.CheckPair(both, a));
  Require(checker.CheckPair(both, b));
  // A masked field may as well not be there.
  apiextensions::fn::proto::v1::RunFunctionRequest request;
  if (!key::ProtobufParses(both, &request)) return;
  key::ClearMasked(key::MaskSets()[index], &request);
  key::Random random(input.size());
  const std::string cleared = key::Encode(request, key::Style::kWild, &random);
  bool equal = true;
  Require(checker.CheckPair(both, cleared, &equal));
  if (!equal) Require("clearing what is masked changed what is not");
}

}  // namespace
}  // namespace fncache::cache

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fncache::cache::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
