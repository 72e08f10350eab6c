// Any bytes as a request: keyed if and only if protobuf parses them, alike by
// the fast and the slow path, and by every other encoding of the message; a
// changed message has another key.
//
// The first byte picks the masks, and seeds what is random.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/cache/random_request.h"

namespace fncache::cache {
namespace {

void Require(const std::string& wrong) {
  if (wrong.empty()) return;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}

void Fuzz(absl::string_view input) {
  static auto* const checkers = [] {
    auto* all = new std::deque<KeyChecker>();
    for (const MaskSet& masks : MaskSets()) all->emplace_back(masks);
    return all;
  }();
  // Larger ones find nothing that smaller ones do not.
  if (input.empty() || input.size() > 1 << 16) return;
  const auto first = static_cast<uint8_t>(input[0]);
  const absl::string_view bytes = input.substr(1);
  KeyChecker& checker = (*checkers)[first % checkers->size()];
  Require(checker.CheckOne(bytes));
  apiextensions::fn::proto::v1::RunFunctionRequest request;
  if (!ProtobufParses(bytes, &request)) return;
  Random random(first + 256 * bytes.size());
  const Style style = random.OneIn(4) ? Style::kPlain : Style::kWild;
  const std::string again = Encode(request, style, &random);
  bool equal = true;
  Require(checker.CheckOne(again));
  // What was parsed from an entry without a value may be too deep to be written
  // with one.
  apiextensions::fn::proto::v1::RunFunctionRequest parsed_again;
  if (!ProtobufParses(again, &parsed_again)) return;
  Require(checker.CheckPair(bytes, again, &equal));
  if (!equal) Require("another encoding parses as another message");
  Mutate(&request, &random);
  const std::string changed = Encode(request, style, &random);
  Require(checker.CheckPair(bytes, changed));
}

}  // namespace
}  // namespace fncache::cache

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fncache::cache::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
