// SPDX-License-Identifier: Apache-2.0
// ReadGrants: which of one worker's large requests may arrive as a whole while
// the quota for reading (inflight.h) has capacity. The smallest remainder comes
// first; the oldest request may exceed the quota.
// It also sets the windows of connections, within which bytes arrive without a
// grant, and limits what one connection may use of them.
//
// Not thread-safe: on its worker's thread only.
#ifndef FNCACHE_PROXY_TRANSPORT_READ_GRANTS_H_
#define FNCACHE_PROXY_TRANSPORT_READ_GRANTS_H_

#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "http2/connection.h"
#include "proxy/transport/inflight.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class ReadGrants {
 public:
  // A request that is, or becomes, larger than its first window.
  class Reader {
   public:
    // The remainder may arrive. The whole request is to be counted as `quota`.
    virtual void OnGranted(Inflight::Quota quota) = 0;

   protected:
    ~Reader() = default;
    // It has asked, and its remainder may not arrive yet.
    bool waits() const { return state_ == State::kWaits; }

   private:
    friend class ReadGrants;
    enum class State { kNone, kWaits, kComes };
    State state_ = State::kNone;
    const void* connection_ = nullptr;
    size_t remainder_ = 0;
    size_t bytes_ = 0;
    size_t has_ = 0;     // of its connection's bytes in granted_
    int64_t since_ = 0;  // when it began to wait
  };

  // `inflight` may be null: then every request is granted.
  ReadGrants(Inflight* inflight, Worker* worker)
      : inflight_(inflight), worker_(worker) {}
  ReadGrants(const ReadGrants&) = delete;
  ReadGrants& operator=(const ReadGrants&) = delete;

  Inflight* inflight() const { return inflight_; }

  // `reader` asks to use `bytes`, of which `remainder` have not arrived on its
  // connection. OnGranted may be called before this returns.
  void Ask(Reader* reader, const void* connection, size_t remainder,
           size_t bytes);
  // `reader` asks to use `bytes` in all, decompressed. False if they do not
  // fit.
  bool Hold(Reader* reader, const void* connection, size_t bytes);
  // `reader` is complete, and keeps its bytes until Forget. No effect if it did
  // not ask.
  void Complete(Reader* reader);
  // `reader` has ended, or has released its bytes. No effect if it did not ask.
  void Forget(Reader* reader);

  // Grows the window of the connection's next streams, if the connection has
  // few calls and the windows fit. For a request that was larger than the usual
  // window, and granted.
  void GrowWindow(http2::Connection& connection) const;
  // Takes that back, if others wait or the connection has many calls. Before
  // each request.
  void ShrinkWindow(http2::Connection& connection) const;
  // True if a connection may use `more` bytes than are charged. Windows limit
  // the bytes that arrive without a grant, but a peer may not know of the last
  // change yet. So all calls of a connection may use little more than with the
  // usual window, and must leave capacity for others.
  bool MayHold(http2::Connection& connection, size_t more) const;

 private:
  void StopWaiting(Reader* reader);
  void Grant(Reader* reader, Inflight::Quota quota);
  // The smallest waiting request that fits, preferring connections below their
  // quota. Null if none fits.
  Reader* Next() const;
  // True if `reader` may use `bytes` of `capacity` free ones. The growth must
  // leave others at least as much as its connection then has.
  bool Fits(const Reader& reader, size_t bytes, size_t capacity) const;
  void Have(Reader* reader, size_t bytes);
  size_t GrantedTo(const void* connection) const;
  void Look();
  void LookIn(absl::Duration delay);

  Inflight* const inflight_;
  Worker* const worker_;
  std::vector<Reader*> waiting_;  // in order of arrival
  // Granted bytes by connection.
  absl::flat_hash_map<const void*, size_t> granted_;
  absl::optional<TimerId> timer_;
  bool soon_ = false;  // timer_ fires in the next event-loop iteration
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_READ_GRANTS_H_
