// SPDX-License-Identifier: Apache-2.0
// ReadRoom: which of one worker's large requests may come as a whole, as long
// as there is room to read (inflight.h): the smallest remainder first, and the
// oldest one always.
//
// Not thread-safe: on its worker's thread only.
#ifndef FNCACHE_PROXY_TRANSPORT_READ_ROOM_H_
#define FNCACHE_PROXY_TRANSPORT_READ_ROOM_H_

#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proxy/transport/inflight.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class ReadRoom {
 public:
  // A request that is larger than what may come unasked, or becomes so.
  class Reader {
   public:
    // Its remainder may come, and all of it is to be counted as `share`.
    virtual void OnRoom(Inflight::Share share) = 0;

   protected:
    ~Reader() = default;

   private:
    friend class ReadRoom;
    enum class State { kNone, kWaits, kComes };
    State state_ = State::kNone;
    const void* connection_ = nullptr;
    size_t remainder_ = 0;
    size_t bytes_ = 0;
    size_t has_ = 0;     // of its connection's part
    int64_t since_ = 0;  // when it began to wait
  };

  // `inflight` may be null: there is room for all.
  ReadRoom(Inflight* inflight, Worker* worker)
      : inflight_(inflight), worker_(worker) {}
  ReadRoom(const ReadRoom&) = delete;
  ReadRoom& operator=(const ReadRoom&) = delete;

  Inflight* inflight() const { return inflight_; }

  // Of `bytes` that `reader` will hold, `remainder` is to come on its
  // connection. OnRoom may be called at once.
  void Ask(Reader* reader, const void* connection, size_t remainder,
           size_t bytes);
  // It wants to hold so much in all, unpacked: false if there is no room for
  // that.
  bool Hold(Reader* reader, const void* connection, size_t bytes);
  // It is complete, and holds what it does until it is forgotten. Harmless for
  // one that did not ask.
  void Complete(Reader* reader);
  // It has ended, or let go of its bytes. Harmless for one that did not ask.
  void Forget(Reader* reader);

 private:
  void StopWaiting(Reader* reader);
  void Grant(Reader* reader, Inflight::Share share);
  // Who is next of those for whom there is room: the smallest, of a connection
  // that has not had its part while others ask. Null if there is none.
  Reader* Next() const;
  // `reader` may have so much where there is room for `room` bytes: as much is
  // left for others as its connection has then.
  bool Fits(const Reader& reader, size_t bytes, size_t room) const;
  void Have(Reader* reader, size_t bytes);
  size_t PartOf(const void* connection) const;
  void Look();
  void LookIn(absl::Duration delay);

  Inflight* const inflight_;
  Worker* const worker_;
  std::vector<Reader*> waiting_;  // in order of arrival
  // Bytes that there was room for, by connection.
  absl::flat_hash_map<const void*, size_t> parts_;
  absl::optional<TimerId> timer_;
  bool soon_ = false;  // it goes off in the next turn
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_READ_ROOM_H_
