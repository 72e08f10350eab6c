// SPDX-License-Identifier: Apache-2.0
// Unary gRPC calls as a load makes them, over http2's client: for raw_load.h,
// which serves `fncache load --request` and the benchmark's load client.
//
// It must cost little beside the server that it measures. The headers that all
// calls to a server share are encoded once. Bodies are sent without a copy.
// Receive windows are as large as possible, so that updates are rare. A
// connection connects once, when asked to, and never reconnects automatically.
// Its owner paces the calls and starts them.
//
// Not thread-safe: everything happens on the loop's thread.
#ifndef FNCACHE_RUNNER_LOAD_UNARY_CONNECTION_H_
#define FNCACHE_RUNNER_LOAD_UNARY_CONNECTION_H_

#include <openssl/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "http2/connection.h"
#include "http2/fields.h"
#include "http2/loop.h"
#include "http2/slice.h"

namespace fncache::runner::load::unary {

// How a call ended.
struct End {
  enum class Kind {
    kComplete,  // the server ended it, with whatever answer
    kReset,     // the server reset it, with `code`
    kRefused,   // the server did not process it: it may be sent again
    kLost,      // the connection has gone
  };
  Kind kind = Kind::kComplete;
  uint32_t code = 0;
  std::string why;  // of kLost
};

// One call at a time. A derived class adds the fields that its user needs. The
// connection owns it from Begin until OnEnd.
class Call : private http2::StreamUser {
 public:
  // A field of the answer, or of its trailers.
  virtual void OnField(absl::string_view name, absl::string_view value) = 0;
  virtual void OnBody(absl::string_view bytes) = 0;
  // It may be begun again from here, but for kLost.
  virtual void OnEnd(const End& end) = 0;

 protected:
  ~Call() = default;

 private:
  friend class Connection;
  void OnAnswer(http2::Stream& stream) override;
  void OnData(http2::Stream& stream, absl::string_view bytes) override;
  void OnTrailers(http2::Stream& stream) override;
  void OnPeerEnd(http2::Stream& stream) override;
  void OnClosed(http2::Stream& stream, const http2::StreamEnd& end) override;

  bool complete_ = false;
};

// A server, and the headers of every call to it. It must outlive the loop of
// its connections.
class Server {
 public:
  // `target` is HOST:PORT, `path` /package.Service/Method. `metadata`: names in
  // lower case. `tls`, not owned: null = plaintext. Peers are checked as
  // FunctionCredentials does: their certificates (common/peer_certificate.h)
  // and whether these are for the target's host.
  Server(std::string target, absl::string_view path,
         const std::vector<std::pair<std::string, std::string>>& metadata,
         SSL_CTX* tls = nullptr);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& target() const { return target_; }

 private:
  friend class Connection;

  const std::string target_;
  const std::string host_;
  SSL_CTX* const tls_;
  http2::Fields fields_;
  http2::ConnectionOptions options_;
};

// A place for a connection to a server: none, one, or the next one.
class Connection final : private http2::ConnectionOwner {
 public:
  class User {
   public:
    // A call may be begun: the server's settings are there, or a call ended.
    virtual void OnCapacity(Connection& connection) {}
    // It is closed, and its calls have got OnEnd. kDone: the server sent a
    // GOAWAY, and no call was left. kHandshake: it never served.
    virtual void OnLost(Connection& connection, http2::ConnectionEnd end,
                        const std::string& words) = 0;

   protected:
    ~User() = default;
  };

  // All three must outlive it, the server also the loop.
  Connection(http2::Loop* loop, const Server* server, User* user)
      : loop_(loop), server_(*server), user_(user) {}
  // Ends it. Its calls get OnEnd; the user gets no OnLost.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const Server& server() const { return server_; }

  // Waits until TCP is connected; TLS and HTTP/2 follow as the loop runs. Says
  // why there is no connection. Precondition: !open().
  absl::Status Open();
  bool open() const { return connection_ != nullptr; }
  // The server's settings are known.
  bool ready() const { return open() && connection_->ready(); }
  bool CanBegin() const { return open() && connection_->CanOpen(); }
  size_t calls() const { return open() ? connection_->streams() : 0; }

  // Sends a call with this body, one framed message in pieces, which it takes
  // over, at the end of the event-loop iteration. Precondition: CanBegin().
  void Begin(Call* call, absl::Span<http2::Slice> body);
  // Ends it now, with OnLost before this returns. Precondition: open(), and
  // not from within a Call.
  void Close(const std::string& words) { connection_->Close(words); }

  // The sums over all its connections.
  uint64_t bytes_read() const;
  uint64_t bytes_written() const;

 private:
  void OnReady(http2::Connection& connection) override;
  void OnCapacity(http2::Connection& connection) override;
  void OnGoingAway(http2::Connection& connection) override;
  void OnClosed(http2::Connection& connection, http2::ConnectionEnd end,
                const std::string& words) override;

  http2::Loop* const loop_;
  const Server& server_;
  User* user_;
  http2::Connection* connection_ = nullptr;  // its own
  bool got_goaway_ = false;
  uint64_t past_read_ = 0;
  uint64_t past_written_ = 0;
};

}  // namespace fncache::runner::load::unary

#endif  // FNCACHE_RUNNER_LOAD_UNARY_CONNECTION_H_
