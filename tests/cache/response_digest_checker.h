// SPDX-License-Identifier: Apache-2.0
// The rules for the digests of responses, with protobuf as the judge. For the
// property test and the fuzzer.
#ifndef FNCACHE_TESTS_CACHE_RESPONSE_DIGEST_CHECKER_H_
#define FNCACHE_TESTS_CACHE_RESPONSE_DIGEST_CHECKER_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cache/key/canonical_walk.h"
#include "cache/key/canonicalizer.h"
#include "cache/key/plain_wire.h"
#include "cache/key/reencode.h"
#include "cache/response.h"
#include "cache/response_digest.h"
#include "cache/wire/schema.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/key_oracle.h"
#include "tests/cache/response_properties.h"

namespace fncache::cache {

// Each check returns what is wrong, or nothing. Belongs to one thread.
class ResponseDigestChecker {
 public:
  // For a response with or without meta.
  ResponseDigest Compute(absl::string_view bytes) {
    const auto view = ReadResponse(bytes);
    if (!view.ok()) return {};
    // Every part on the heap and of exactly its size, so that a sanitizer sees
    // what is read beyond it.
    std::vector<std::vector<char>> exact;
    std::vector<absl::string_view> body;
    for (const absl::string_view part : view->body) {
      exact.emplace_back(part.begin(), part.end());
      body.emplace_back(exact.back().data(), exact.back().size());
    }
    return digester_.Compute(body, &canonicalizer_);
  }

  // Readable if and only if protobuf reads it; the same canonical form by the
  // slow path. `fast`, if given, tells whether it was plain.
  std::string CheckOne(absl::string_view bytes, bool* fast = nullptr) {
    v1::RunFunctionResponse message;
    const bool readable = ParseAsProtobufDoes(bytes, &message);
    if (Compute(bytes).readable != readable) {
      return absl::StrCat("readable by protobuf: ", readable);
    }
    if (!readable) return "";
    const auto view = ReadResponse(bytes);
    std::string body;
    for (const absl::string_view part : view->body) {
      absl::StrAppend(&body, part);
    }
    std::string form, plain, slow;
    const bool is_plain = Walk(body, wire::kMaxDepth, &form);
    if (fast != nullptr) *fast = is_plain;
    if (!key::ReencodeResponse(body, &plain)) return "the slow path refuses it";
    if (!Walk(plain, key::kMaxPlainDepth, &slow)) {
      return "the slow path's form is not plain";
    }
    return is_plain && form != slow ? "fast and slow path differ" : "";
  }

  // Equal digests if and only if equal messages without meta. `equal`, if
  // given, tells, where both can be read.
  std::string CheckPair(absl::string_view a, absl::string_view b,
                        bool* equal = nullptr) {
    v1::RunFunctionResponse message_a, message_b;
    if (!ParseAsProtobufDoes(a, &message_a) ||
        !ParseAsProtobufDoes(b, &message_b)) {
      return "";
    }
    const ResponseDigest digest_a = Compute(a);
    const ResponseDigest digest_b = Compute(b);
    if (!digest_a.readable || !digest_b.readable) return "not readable";
    message_a.clear_meta();
    message_b.clear_meta();
    const std::string said = absl::StrCat(message_a.ShortDebugString(), " and ",
                                          message_b.ShortDebugString());
    const bool same = key::SameMessage(message_a, message_b);
    if (equal != nullptr) *equal = same;
    if (same != (digest_a.digest == digest_b.digest)) {
      return absl::StrCat(
          same ? "equal messages, two digests: " : "two messages, one digest: ",
          said);
    }
    if (same != ResponseDigester::FieldsDiffering(digest_a, digest_b).empty()) {
      return absl::StrCat("the fields do not say so: ", said);
    }
    return "";
  }

 private:
  bool Walk(absl::string_view bytes, int depth, std::string* form) {
    form->assign(key::CanonicalWalk::Capacity(bytes.size()), '\0');
    const char* const end = walk_.RunResponse(bytes, depth, &(*form)[0]);
    if (end != nullptr) form->resize(end - form->data());
    return end != nullptr;
  }

  const ResponseDigester digester_;
  key::Canonicalizer canonicalizer_;
  key::CanonicalWalk walk_;
};

}  // namespace fncache::cache

#endif  // FNCACHE_TESTS_CACHE_RESPONSE_DIGEST_CHECKER_H_
