// SPDX-License-Identifier: Apache-2.0
// ScriptedServer: a peer on a unix socket, or a port, that does what a test
// says.
//
// It answers PING with PONG and every other command by the script, which runs
// on a thread of the connection.
#ifndef FNCACHE_TESTS_RESP_SCRIPTED_SERVER_H_
#define FNCACHE_TESTS_RESP_SCRIPTED_SERVER_H_

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/mutex.h"
#include "resp/client.h"
#include "tests/common/temp_dir.h"

namespace fncache::resp::testing {

class ScriptedServer {
 public:
  // A connection. Send returns false once the peer has closed it.
  class Peer {
   public:
    explicit Peer(int fd) : fd_(fd) {}
    bool Send(absl::string_view bytes) const;
    void Close() const;

   private:
    const int fd_;
  };
  using Words = std::vector<std::string>;
  // True: it has dealt with the command. False: the command gets the usual
  // reply (PONG, or an error).
  using Script = std::function<bool(const Words& words, const Peer& peer)>;

  // `tcp`: a free port of all addresses of this machine.
  explicit ScriptedServer(Script script, bool tcp = false);
  ~ScriptedServer();

  Endpoint endpoint() const;
  int connections() const;  // that came

 private:
  void Accept();
  void Serve(int fd);

  const Script script_;
  fncache::testing::TempDir dir_;
  int listener_ = -1;
  int port_ = 0;  // with `tcp`
  mutable Mutex mutex_;
  std::set<int> open_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  int came_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace fncache::resp::testing

#endif  // FNCACHE_TESTS_RESP_SCRIPTED_SERVER_H_
