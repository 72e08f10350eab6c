// SPDX-License-Identifier: Apache-2.0
// Plays a trace of level full again: sends its messages to a function or a
// daemon, with the pauses between them, and compares the answers with those
// that are recorded.
//
// Answers are compared in their canonical form, without meta, and with secrets
// redacted as traces have them. Requests are sent as the trace has them, their
// secrets redacted, too.
#ifndef FNCACHE_RUNNER_REPLAY_PLAY_H_
#define FNCACHE_RUNNER_REPLAY_PLAY_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace fncache::runner::replay {

struct PlayOptions {
  std::string trace;
  std::string target;
  // How much faster than it was; none: without pauses.
  absl::optional<double> speed = 1;
  std::string tls_dir;
};

struct Played {
  uint64_t sent = 0;
  uint64_t same = 0;             // the answer is the one recorded
  uint64_t different = 0;        // it is another one, or one of the two is none
  uint64_t unknown = 0;          // the trace has no answer
  uint64_t without_message = 0;  // calls that were not sent
  std::map<std::string, uint64_t> outcomes;  // as a cache in between says
  std::string example;                       // of a difference
  double seconds = 0;
};

// Blocks until all answers are there. NotFound, InvalidArgument or
// FailedPrecondition says why it could not be played.
absl::StatusOr<Played> Play(const PlayOptions& options);

std::string PlayedText(const Played& played);
std::string PlayedJson(const Played& played);

}  // namespace fncache::runner::replay

#endif  // FNCACHE_RUNNER_REPLAY_PLAY_H_
