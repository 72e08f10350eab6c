// SPDX-License-Identifier: Apache-2.0
// AnswerCheck: checks that an answer of the load client is what a call of the
// function protocol must get.
//
// Every answer must be one uncompressed gRPC message of the announced length,
// with a body of the expected length. The body is all but `meta`, which comes
// first, and which the daemon rewrites. A sampled answer is kept whole: its
// body must equal the expected one, and its tag must be the caller's.
//
// Not thread-safe.
#ifndef FNCACHE_BENCH_ANSWER_CHECK_H_
#define FNCACHE_BENCH_ANSWER_CHECK_H_

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace fncache::bench {

// How many bytes `meta` takes at the beginning of a message, with its tag and
// its length; 0 if the message does not begin with it. The first bytes of the
// message are enough. DataLoss if they cannot be read.
absl::StatusOr<size_t> MetaBytes(absl::string_view message);

// One answer while it arrives. Reused from call to call.
class AnswerCheck {
 public:
  // A new answer follows. `sampled`: keep all of it.
  void Reset(bool sampled);

  void OnData(absl::string_view data);

  bool sampled() const { return sampled_; }
  // The bytes of a sampled answer that have arrived, with the gRPC prefix.
  absl::string_view message() const { return message_; }

  // Checks the answer once it is complete. Without `body` a sampled answer may
  // be any message. Without `tag` it may have any tag.
  absl::Status Check(const absl::optional<std::string>& body,
                     const absl::optional<std::string>& tag) const;

 private:
  bool sampled_ = false;
  size_t received_ = 0;
  // The gRPC prefix and the first bytes of the message: `meta`'s length.
  std::array<char, 16> head_;
  std::string message_;  // of sampled ones, the prefix included
};

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_ANSWER_CHECK_H_
