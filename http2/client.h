// SPDX-License-Identifier: Apache-2.0
// Client: the connections of one loop to one target.
//
// From the first call on it has a connection to every address of the target,
// and assigns streams to them round robin. Names are resolved on a separate
// thread, again every `resolve_every` and when connecting failed. Connecting is
// retried with a growing pause, also if peers accept and then send a GOAWAY. If
// all connections have as many streams as the peer allows, more are made: at
// once if the last one took calls, else also with that pause.
//
// Not thread-safe: it is used and destroyed on the loop's thread, or while that
// does not run.
#ifndef FNCACHE_HTTP2_CLIENT_H_
#define FNCACHE_HTTP2_CLIENT_H_

#include <openssl/types.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "http2/connection.h"
#include "http2/loop.h"
#include "http2/target.h"

namespace fncache::http2 {

struct ClientOptions {
  ConnectionOptions connection;
  // TLS for one more connection; null = plaintext.
  std::function<SSL*()> new_ssl;
  absl::Duration first_pause = absl::Milliseconds(100);
  absl::Duration longest_pause = absl::Seconds(2);
  absl::Duration resolve_every = absl::Seconds(30);
  // To one address, where the peer limits streams.
  size_t most_connections = 256;
  // The target can be reached, when that changes; or it cannot, and why, at
  // every attempt that fails. Where its last connection ended before it was of
  // any use, it can be reached once one is: a call has ended there, or it has
  // lasted `proof`.
  std::function<void(bool reachable, const std::string& why)> changed;
  // A connection ended with calls on it, and why.
  std::function<void(const std::string& why)> lost;
  // The number of connections that can take calls has changed by `change`.
  std::function<void(int change)> connected;
  absl::Duration proof = absl::Seconds(10);
};

class Client final : private ConnectionOwner {
 public:
  // Waits for a connection.
  class Waiter {
   public:
    // A stream may be opened on it, now.
    virtual void OnConnection(Connection& connection) = 0;

   protected:
    ~Waiter() = default;

   private:
    friend class Client;
    bool waiting_ = false;
    std::list<Waiter*>::iterator position_;  // where it waits
  };

  // The options outlive the client.
  Client(Loop* loop, Target target, const ClientOptions* options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // A connection on which a stream may be opened now; null if there is none.
  Connection* Take();
  // Calls OnConnection when there is one. Earlier waiters come first.
  void Wait(Waiter* waiter);
  void Forget(Waiter* waiter);

  // Why there is no connection; empty while nothing has failed.
  const std::string& why() const { return why_; }
  // Describes the wait of callers, for people: also if nothing has failed, and
  // if there are connections.
  std::string WhyWaiting() const;
  size_t connections() const;
  // Connections whose peer can be sent calls.
  size_t ready() const;

  // Makes new connections, which calls get from now on; those there are go when
  // their streams have ended. For certificates that were replaced.
  void Renew();

  // Closes all connections when their streams have ended. The client must not
  // be used any more.
  void Drain();

 private:
  struct Peer;  // an address
  struct Resolution;

  void Cancel(absl::optional<TimerId>* timer);
  void Start();
  void ResolveSoon();
  bool IsGood(const Connection& connection, int64_t since) const;
  // True if the peer of any usable connection allows streams.
  bool AllowsStreams() const;
  void TellAllowed();
  void StartResolving();
  void OnResolved(absl::StatusOr<std::vector<Endpoint>> found);
  void SetEndpoints(std::vector<Endpoint> endpoints);
  void Connect(Peer* peer);
  void ConnectLater(Peer* peer);
  bool HasChance() const;
  void Failed(const std::string& why);
  void TellFailed(const std::string& why);
  void Lost(const std::string& why);
  void Found();
  void TellReachable();
  void Up();
  void Prove();
  void Down();
  void ServeWaiting();
  void WantMore();
  void Trim();
  void TrimLater();
  Peer* PeerOf(const Connection& connection);

  void OnReady(Connection& connection) override;
  void OnGoingAway(Connection& connection) override;
  void OnCapacity(Connection& connection) override;
  void OnClosed(Connection& connection, ConnectionEnd end,
                const std::string& words) override;

  Loop* const loop_;
  const Target target_;
  const ClientOptions& options_;
  bool started_ = false;
  bool draining_ = false;
  bool serving_ = false;
  bool reachable_ = true;  // as last reported
  bool barred_ = false;    // no connection allows streams
  // Since there are connections to give: one was given to a call, and was of
  // use.
  bool taken_ = false;
  bool proven_ = false;
  bool doubted_ = false;  // the last ones ended before they were of use
  std::string why_;
  std::vector<std::unique_ptr<Peer>> peers_;
  size_t next_ = 0;
  std::list<Waiter*> waiting_;
  std::shared_ptr<Resolution> resolving_;
  absl::optional<TimerId> timer_;  // of the next resolution
  absl::optional<TimerId> lost_;   // until a lost target is reported
  absl::optional<TimerId> proof_;  // until connections have lasted
  absl::Time resolved_ = absl::InfinitePast();
  int failed_resolutions_ = 0;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_CLIENT_H_
