// SPDX-License-Identifier: Apache-2.0
// ConnectionOptions: the bounds and times of a connection, of either side.
#ifndef FNCACHE_HTTP2_CONNECTION_OPTIONS_H_
#define FNCACHE_HTTP2_CONNECTION_OPTIONS_H_

#include <openssl/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "http2/changeable.h"

namespace fncache::http2 {

// The initial window of a stream, unless its receiver announces another.
inline constexpr uint32_t kUsualWindow = 64 << 10;
// The limit of a frame's bytes, unless its receiver announces a larger one.
inline constexpr uint32_t kUsualFrame = 16 << 10;

// Options of a Changeable type may change while there are connections.
struct ConnectionOptions {
  bool server = true;
  // Limit of the streams that a peer may have open, announced when a connection
  // begins.
  Changeable<uint32_t> max_streams = 1024;
  // Bytes of a header list (RFC 9113, 6.5.2).
  Changeable<uint32_t> max_field_bytes = 64 << 10;
  // The initial window of each stream, and the window of the connection.
  uint32_t stream_window = kUsualWindow;
  uint32_t connection_window = 16 << 20;
  // Bytes of a frame (RFC 9113, 4.2), from the usual on: what the peer may
  // send, and a client does where its peer takes that. A server's are the usual
  // ones.
  uint32_t largest_frame = kUsualFrame;
  // Below this OnSent comes.
  size_t low_water = 64 << 10;
  // TLS, preface and settings must be done within this.
  absl::Duration handshake_timeout = absl::Seconds(10);
  // The peer must read the last output within this.
  absl::Duration end_timeout = absl::Seconds(10);
  // A connection without streams gets a GOAWAY after this; infinite = never.
  ChangeableDuration idle_timeout = absl::InfiniteDuration();
  // A server's connection gets a GOAWAY at this age; infinite = never.
  ChangeableDuration max_age = absl::InfiniteDuration();
  // A client sends a PING if streams are open and nothing has come for
  // `ping_after`, but at most one every `ping_every`. `ping_timeout` limits the
  // wait for its answer.
  absl::Duration ping_after = absl::InfiniteDuration();
  absl::Duration ping_every = absl::Seconds(310);
  absl::Duration ping_timeout = absl::Seconds(50);
  // The budget of frames that do no work: at the start, a second, for each call
  // answered, and at most.
  double budget = 1000;
  double budget_a_second = 100;
  double budget_a_call = 4;
  double budget_most = 20000;
  // A reset sooner than this, before any answer, is no work.
  absl::Duration young = absl::Milliseconds(100);
  // A server's answer to a peer that speaks HTTP/1; empty = none.
  std::string http1_answer;
  // A client's: says what is wrong with the peer of a handshake; empty =
  // nothing is.
  std::function<std::string(SSL*)> check_peer;
  // Says why a handshake failed, where it knows; empty = it does not.
  std::function<std::string(SSL*)> explain_handshake;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_CONNECTION_OPTIONS_H_
