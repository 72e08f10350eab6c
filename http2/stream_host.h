// SPDX-License-Identifier: Apache-2.0
// StreamHost: the state of a connection that its streams share: nghttp2's
// session, the output, and the end of the loop's iteration, when output is
// written.
//
// It is the connection's, and lives on its thread.
#ifndef FNCACHE_HTTP2_STREAM_HOST_H_
#define FNCACHE_HTTP2_STREAM_HOST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "http2/loop.h"
#include "http2/output.h"

struct nghttp2_session;

namespace fncache::http2 {

class Connection;

struct StreamHost {
  StreamHost(Connection* connection, Loop* loop, Loop::Ender* ender,
             size_t low_water)
      : connection(connection),
        loop(loop),
        ender(ender),
        low_water(low_water) {}
  // Requests writing, or the end, when this iteration ends.
  void Touch() { loop->AtIterationEnd(ender); }

  Connection* const connection;
  Loop* const loop;
  Loop::Ender* const ender;  // the connection
  const size_t low_water;    // below it StreamUser::OnSent comes
  nghttp2_session* session = nullptr;
  Output output;
  std::vector<int32_t> held_back;  // streams whose bodies wait for room there
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_STREAM_HOST_H_
