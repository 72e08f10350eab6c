// SPDX-License-Identifier: Apache-2.0
// ReadGrants: which of one worker's large requests may arrive as a whole. The
// oldest that fits into the budget and its connection's cap is first. The
// oldest one that does not fit may continue, too, one at a time among all
// workers (Budget::Quota::kBeyond). It also sets the windows of connections,
// within which bytes arrive without a grant.
//
// Not thread-safe: on its worker's thread only.
#ifndef FNCACHE_PROXY_LIMITS_READ_GRANTS_H_
#define FNCACHE_PROXY_LIMITS_READ_GRANTS_H_

#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "http2/connection.h"
#include "http2/loop.h"
#include "proxy/limits/budget.h"
#include "proxy/limits/connection_cap.h"

namespace fncache::proxy::limits {

class ReadGrants {
 public:
  // A request that is, or becomes, larger than its first window.
  class Reader {
   public:
    // The remainder may arrive. The whole request is to be counted as `quota`.
    virtual void OnGranted(Budget::Quota quota) = 0;

   protected:
    ~Reader() = default;
    // It has asked, and its remainder may not arrive yet.
    bool waits() const { return state_ == State::kWaits; }

   private:
    friend class ReadGrants;
    enum class State { kNone, kWaits, kArrives };
    State state_ = State::kNone;
    const void* connection_ = nullptr;
    size_t bytes_ = 0;
    size_t granted_ = 0;  // of its connection's bytes in granted_
  };

  // `budget` may be null: then every request is granted.
  ReadGrants(Budget* budget, http2::Loop* loop)
      : budget_(budget), cap_(budget), loop_(loop) {}
  ReadGrants(const ReadGrants&) = delete;
  ReadGrants& operator=(const ReadGrants&) = delete;

  Budget* budget() const { return budget_; }

  // `reader` asks to use `bytes` of its connection. OnGranted may be called
  // before this returns.
  void Ask(Reader* reader, const void* connection, size_t bytes);
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
  const ConnectionCap& cap() const { return cap_; }

 private:
  bool Fits(const Reader& reader, size_t bytes) const;
  void Grant(Reader* reader, Budget::Quota quota);
  void StopWaiting(Reader* reader);
  void SetGranted(Reader* reader, size_t bytes);
  // Grants what fits, in order of arrival.
  void Look();
  void LookIn(absl::Duration delay);

  Budget* const budget_;
  const ConnectionCap cap_;
  http2::Loop* const loop_;
  std::vector<Reader*> waiting_;  // in order of arrival
  // Granted bytes by connection.
  absl::flat_hash_map<const void*, size_t> granted_;
  absl::optional<http2::TimerId> timer_;
  bool soon_ = false;  // timer_ fires in the next event-loop iteration
};

}  // namespace fncache::proxy::limits

#endif  // FNCACHE_PROXY_LIMITS_READ_GRANTS_H_
