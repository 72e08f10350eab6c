// SPDX-License-Identifier: Apache-2.0
// The calls that a server has open. They are needed where something ends them
// other than their callers: a stop, or a peer that does not move.
//
// A thread looks after them while there are any. Once a server is quiet, it
// returns memory that calls have used to the system.
//
// Thread-safe.
#ifndef FNCACHE_SDK_SERVE_LIVE_CALLS_H_
#define FNCACHE_SDK_SERVE_LIVE_CALLS_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace fncache::sdk::serve {

class LiveCall {
 public:
  virtual ~LiveCall() = default;
  // Cancels the call at gRPC. It must not wait for a reaction of the call.
  virtual void Cancel() = 0;
  // The server stops; a call that lasts as long as its caller likes ends.
  virtual void OnStop() {}

  // The call waits for its peer from now on, to send or to read.
  void WaitsForPeer() { since_ = absl::ToUnixNanos(absl::Now()); }
  void WaitsNoMore() { since_ = 0; }

 private:
  friend class LiveCalls;
  std::atomic<int64_t> since_{0};
  std::list<LiveCall*>::iterator position_;
  std::map<std::string, int>::iterator peer_;
};

class LiveCalls {
 public:
  struct Options {
    // A call that waits for its peer longer than this is cancelled.
    absl::Duration stuck;
    // The server is quiet once it had no call for this time.
    absl::Duration quiet;
    // A connection with more calls is closed.
    int most_calls;
  };

  explicit LiveCalls(const Options& options);
  // Precondition: no call is left.
  ~LiveCalls();

  // `peer`: as gRPC names the other end of the connection.
  void Add(LiveCall* call, const std::string& peer);
  // The call is not used after this returns.
  void Remove(LiveCall* call);
  // Calls OnStop of each, also of those that are added from now on.
  void Stop();

 private:
  void Look();
  void CancelStuck() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  std::list<LiveCall*> all_ ABSL_GUARDED_BY(mutex_);
  // How many of them each connection has.
  std::map<std::string, int> peers_ ABSL_GUARDED_BY(mutex_);
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_LIVE_CALLS_H_
