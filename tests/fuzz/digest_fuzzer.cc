// SPDX-License-Identifier: Apache-2.0
// Any bytes as a request: keyed if and only if protobuf parses them, alike by
// the fast and the slow path, and by every other encoding of the message; a
// changed message has another key. With `key: tag`, the same holds for the tag
// and the fields that the tag does not cover, whatever is skipped. With drift,
// the drift digest of a request is the same by every path, and that of equal
// keys is equal if and only if all drift is. Its origin is the one that
// protobuf finds.
//
// The first byte picks the settings, and seeds what is random.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"
#include "cache/wire/origin.h"
#include "cache/wire/wire.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/key_checker.h"
#include "tests/cache/key/key_oracle.h"
#include "tests/cache/key/random_drift.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"

namespace fncache::cache {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;

void Require(const std::string& wrong) {
  if (wrong.empty()) return;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}

constexpr char kTag[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

void CheckOrigin(absl::string_view bytes) {
  const wire::Origin origin = wire::OriginOf(bytes);
  RunFunctionRequest request;
  if (!key::ProtobufParses(bytes, &request)) return;
  const bool composite = request.observed().composite().has_resource();
  if (origin !=
      (composite ? wire::Origin::kComposite : wire::Origin::kOperation)) {
    Require("another origin than protobuf's");
  }
}

void Check(absl::string_view bytes, key::KeyChecker* checker,
           key::Random* random) {
  CheckOrigin(bytes);
  Require(checker->CheckOne(bytes));
  RunFunctionRequest request;
  const bool by_tag = checker->by_tag() &&
                      key::ProtobufParsesTagFields(bytes, &request) &&
                      request.meta().tag() == kTag;
  if (!by_tag && !key::ProtobufParses(bytes, &request)) return;
  const key::Style style =
      random->OneIn(3) ? key::Style::kAnyEncoder : key::Style::kWild;
  const auto encode = [&] {
    std::string again = key::Encode(request, style, random);
    return by_tag
               ? key::SkippedByTag(random) + again + key::SkippedByTag(random)
               : again;
  };
  const std::string again = encode();
  bool equal = true;
  Require(checker->CheckOne(again));
  // A message parsed from an entry without a value may be too deep to be
  // written with one.
  RunFunctionRequest parsed_again;
  if (by_tag ? key::ProtobufParsesTagFields(again, &parsed_again)
             : key::ProtobufParses(again, &parsed_again)) {
    Require(checker->CheckPair(bytes, again, &equal));
    if (!equal) Require("another encoding parses as another message");
  }
  key::Mutate(&request, random);
  Require(checker->CheckPair(bytes, encode()));
  if (by_tag) return;
  key::AddDrift(&request, random);
  const std::string drifted = encode();
  Require(checker->CheckOne(drifted));
  key::MutateDrift(&request, random);
  Require(checker->CheckPair(drifted, encode()));
}

void Fuzz(absl::string_view input) {
  struct Checkers {
    std::deque<key::KeyChecker> by_content;
    std::deque<key::KeyChecker> by_tag;
  };
  static auto* const checkers = [] {
    auto* all = new Checkers();
    for (const key::MaskSet& masks : key::MaskSets()) {
      all->by_content.emplace_back(masks);
    }
    all->by_content.emplace_back(key::MaskSet(), key::KeySource::kContent,
                                 key::KeyHash::kSha256);
    for (const key::MaskSet& masks : key::MaskSets()) {
      all->by_content.emplace_back(masks, key::KeySource::kContent,
                                   key::KeyHash::kXxh3, /*drift=*/true);
    }
    all->by_content.emplace_back(key::MaskSet(), key::KeySource::kContent,
                                 key::KeyHash::kSha256, /*drift=*/true);
    for (const key::KeyHash hash :
         {key::KeyHash::kXxh3, key::KeyHash::kSha256}) {
      all->by_tag.emplace_back(key::MaskSet(), key::KeySource::kTag, hash);
    }
    return all;
  }();
  // Larger ones find nothing that smaller ones do not.
  if (input.empty() || input.size() > 1 << 16) return;
  const auto first = static_cast<uint8_t>(input[0]);
  const absl::string_view bytes = input.substr(1);
  key::Random random(first + 256 * bytes.size());
  if (first % 2 == 0) {
    auto& all = checkers->by_content;
    return Check(bytes, &all[first / 2 % all.size()], &random);
  }
  auto& all = checkers->by_tag;
  key::KeyChecker& checker = all[first / 2 % all.size()];
  Require(checker.CheckOne(bytes));
  // With a tag to go by, which few inputs have: the last one counts (unless
  // what is in front of it runs on over it).
  std::string tag;
  wire::AppendBytesField(&tag, 1, kTag);
  std::string tagged(bytes);
  wire::AppendBytesField(&tagged, 1, tag);
  Check(tagged, &checker, &random);
}

}  // namespace
}  // namespace fncache::cache

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fncache::cache::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
