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
  // A request that is larger than what may come unasked.
  class Reader {
   public:
    // Its remainder may come.
    virtual void OnRoom() = 0;

   protected:
    ~Reader() = default;

   private:
    friend class ReadRoom;
    const void* connection_ = nullptr;
    size_t remainder_ = 0;
    bool listed_ = false;
    bool granted_ = false;
  };

  // `inflight` may be null: there is room for all.
  ReadRoom(Inflight* inflight, Worker* worker)
      : inflight_(inflight), worker_(worker) {}
  ReadRoom(const ReadRoom&) = delete;
  ReadRoom& operator=(const ReadRoom&) = delete;

  Inflight* inflight() const { return inflight_; }

  // `reader` has so much to come on its connection. OnRoom may be called at
  // once.
  void Ask(Reader* reader, const void* connection, size_t remainder);
  // It is complete, or has ended. Harmless for one that did not ask.
  void Forget(Reader* reader);

 private:
  void Wait(int change);
  void Grant(Reader* reader);
  // Bytes granted, by connection.
  using Granted = absl::flat_hash_map<const void*, size_t>;
  // Who is next where there is room: the smallest, of a connection that has not
  // had its part while others ask. Precondition: somebody waits.
  Reader* Next(const Granted& granted) const;
  void Look();
  void ArmTimer();

  Inflight* const inflight_;
  Worker* const worker_;
  std::vector<Reader*> readers_;  // in order of arrival
  int waiting_ = 0;               // of them, not granted
  absl::optional<TimerId> timer_;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_READ_ROOM_H_
