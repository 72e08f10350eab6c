// SPDX-License-Identifier: Apache-2.0
// Relay: a port of 127.0.0.1 that leads to another one, until a test cuts it.
//
// It stands for a network between a daemon and its server, and for a service
// whose server changes. Thread-safe.
#ifndef FNCACHE_TESTS_INTEGRATION_RELAY_H_
#define FNCACHE_TESTS_INTEGRATION_RELAY_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "tests/common/loopback_socket.h"

namespace fncache::testing {

class Relay {
 public:
  explicit Relay(int to);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return socket_.port(); }
  std::string url() const;

  // Closes all connections, and each new one at once.
  void Cut() { Become(kCut); }
  // Moves no byte any more. New connections come about and get no answer.
  void Hang() { Become(kHang); }
  // Works again. Connections that hung go on.
  void Heal() { Become(kPass); }
  // New connections lead there. Present ones are closed.
  void LeadTo(int port);

 private:
  enum Mode { kPass, kCut, kHang };
  struct Pair {
    int ends[2];
  };

  void Become(Mode mode);
  // Makes the thread look again.
  void Wake();
  void Run();
  void CloseAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves what there is; false at the end of the connection.
  static bool Move(int from, int to);

  const LoopbackSocket socket_;
  int wake_[2];
  Mutex mutex_;
  int to_ ABSL_GUARDED_BY(mutex_);
  Mode mode_ ABSL_GUARDED_BY(mutex_) = kPass;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Pair> pairs_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_INTEGRATION_RELAY_H_
