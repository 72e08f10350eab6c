// SPDX-License-Identifier: Apache-2.0
// FrameBudget: the limit of frames from a peer that do no work. It starts with
// a balance and earns more with time and with work. It is used up when the peer
// has spent more than that.
//
// Not thread-safe.
#ifndef FNCACHE_HTTP2_FRAME_BUDGET_H_
#define FNCACHE_HTTP2_FRAME_BUDGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "http2/connection_options.h"

namespace fncache::http2 {

class FrameBudget {
 public:
  // From `now` on, in nanoseconds of the monotonic clock. The options outlive
  // it.
  FrameBudget(const ConnectionOptions& options, int64_t now)
      : options_(options), left_(options.budget), since_(now) {}

  // A call was answered.
  void EarnCall() { Earn(options_.budget_a_call); }
  // A piece of a body was sent. Its receiver has to say that it has taken it,
  // on the stream and on the connection, and may measure how fast it came: that
  // is paid for apart, and by small pieces, too. But where a window of the
  // receiver's `cut` it, by no more than its bytes are worth, or a window of a
  // byte would pay for the next.
  void EarnSent(size_t bytes, bool cut) {
    EarnBytes(bytes);
    const auto sent = static_cast<double>(bytes);
    const double piece =
        cut ? std::min(kAnswersAPiece, sent / kCutAnAnswer) : kAnswersAPiece;
    sent_ =
        std::min(options_.budget_most, sent_ + piece + sent / kSentAnAnswer);
  }
  // Whether a frame that answers what was sent is paid for.
  bool SpendOfSent() {
    if (sent_ < 1) return false;
    sent_ -= 1;
    return true;
  }
  // Counts bytes of bodies that were received or sent.
  void EarnBytes(size_t bytes) {
    moved_ += bytes;
    if (moved_ < kMovedAFrame) return;
    const uint64_t frames = moved_ / kMovedAFrame;
    moved_ %= kMovedAFrame;
    Earn(static_cast<double>(frames));
  }
  // False: that was more than there is.
  bool Spend(double cost, int64_t now) {
    left_ -= cost;
    if (left_ >= 0) return true;
    Earn(static_cast<double>(now - since_) * 1e-9 * options_.budget_a_second);
    since_ = now;
    return left_ >= 0;
  }

 private:
  // The bytes of bodies that pay for one frame that does no work.
  static constexpr uint64_t kMovedAFrame = 4096;
  // The prices of answers to sent bodies: Go's net/http answers each 4 KiB
  // twice.
  static constexpr double kAnswersAPiece = 4;
  static constexpr double kSentAnAnswer = 1024;
  static constexpr double kCutAnAnswer = 64;

  void Earn(double frames) {
    left_ = std::min(options_.budget_most, left_ + frames);
  }

  const ConnectionOptions& options_;
  double left_;
  double sent_ = 0;  // answers to what was sent that are paid for
  int64_t since_;
  uint64_t moved_ = 0;  // bytes not yet turned into frames
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_FRAME_BUDGET_H_
