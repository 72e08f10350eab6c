// SPDX-License-Identifier: Apache-2.0
// Checking the load client's answers: that what came is what a call of the
// function protocol must get.
//
// Every answer: HTTP status 200, one uncompressed gRPC message of the announced
// length, grpc-status 0, the expected `cache-status`, and, where the expected
// answer is known, a body (all but `meta`, which the daemon rewrites) of its
// length. Sampled answers are kept whole: their body must equal the expected
// one byte for byte and their tag the caller's.
//
// Not thread-safe.
#ifndef FNCACHE_BENCH_ANSWER_CHECK_H_
#define FNCACHE_BENCH_ANSWER_CHECK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace fncache::bench {

// The outcome that an answer's `cache-status` header names (RFC 9211).
enum class CacheStatus {
  kNone,  // there was none
  kHit,
  kMiss,
  kStale,    // fwd=stale
  kRequest,  // fwd=request
  kBypass,
  kOther,
};
inline constexpr size_t kCacheStatuses = 7;

// "none", "hit", "miss", "stale", "request", "bypass", "other".
const char* CacheStatusName(CacheStatus status);
absl::optional<CacheStatus> CacheStatusOf(absl::string_view name);

// Of which answers the tag must be the caller's. A server that answers canned
// bytes cannot know it.
enum class TagCheck {
  kNone,
  kHits,  // those whose cache-status says hit or collapsed
  kAll,
};

struct Expectation {
  // The body of every answer: the message without `meta`.
  absl::optional<std::string> body;
  absl::optional<CacheStatus> status;
  TagCheck tags = TagCheck::kHits;
};

// An answer's parts at the top level of the message.
struct AnswerParts {
  std::string body;  // all fields but `meta`, as they were
  std::string tag;   // meta.tag, the last one; "" if there is none
};

// DataLoss if `message` is no sequence of fields.
absl::StatusOr<AnswerParts> SplitAnswer(absl::string_view message);

// One answer while it arrives. Reused from call to call.
class AnswerReader {
 public:
  // A new answer is to come. `sampled`: keep all of it.
  void Reset(bool sampled);

  void OnHeader(absl::string_view name, absl::string_view value);
  void OnData(absl::string_view data);

  // Once it is complete: what is wrong with it, if anything. `tag` tells the
  // call's, where that is needed.
  absl::Status Check(const Expectation& expected,
                     absl::FunctionRef<std::string()> tag) const;

  CacheStatus cache_status() const { return cache_status_; }
  bool stored() const { return stored_; }
  bool collapsed() const { return collapsed_; }

 private:
  absl::Status CheckLength(absl::string_view body) const;
  absl::Status CheckSample(const Expectation& expected,
                           const std::string& tag) const;

  bool sampled_ = false;
  size_t received_ = 0;
  // The gRPC prefix and the first bytes of the message: `meta`'s length.
  std::array<char, 16> head_;
  std::string message_;  // of sampled ones, the prefix included
  int http_status_ = 0;
  int grpc_status_ = -1;
  std::string grpc_message_;
  CacheStatus cache_status_ = CacheStatus::kNone;
  bool stored_ = false;
  bool collapsed_ = false;
};

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_ANSWER_CHECK_H_
