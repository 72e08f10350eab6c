// SPDX-License-Identifier: Apache-2.0
// Connection: one HTTP/2 connection (RFC 9113) on one Loop, of either side,
// over TCP, a unix socket, or TLS on either. Its streams: stream.h.
//
// Frames and header compression are nghttp2's. Around it:
//
// - The output of one event-loop iteration is sent with one writev at its end;
//   bodies are sent by reference (Slice).
// - Windows. The connection's window is returned as bytes are read from the
//   socket, so only a stream's own window delays its sender. A stream begins
//   with `stream_window`, or what SetStreamWindow says, and gets more as its
//   user calls Consume or Grant.
// - Bounds. A header block above `max_field_bytes` is cut off and marked.
//   Frames that do no work are charged to a budget. Beyond it the connection
//   ends with ENHANCE_YOUR_CALM.
//
// A connection owns itself. At its end it notifies its owner (OnClosed), and it
// deletes itself when the iteration ends. Close ends it at once.
//
// Not thread-safe: everything happens on the loop's thread.
#ifndef FNCACHE_HTTP2_CONNECTION_H_
#define FNCACHE_HTTP2_CONNECTION_H_

#include <netinet/in.h>
#include <openssl/types.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "http2/connection_options.h"
#include "http2/fields.h"
#include "http2/frame_budget.h"
#include "http2/frame_heads.h"
#include "http2/loop.h"
#include "http2/session_memory.h"
#include "http2/socket.h"
#include "http2/stream.h"
#include "http2/stream_host.h"

namespace fncache::http2 {

class Connection;

// Why a connection ended.
enum class ConnectionEnd {
  kDone,       // a GOAWAY, or the peer left, with no stream left
  kPeerLeft,   // the peer closed it with streams open, or told of an error
  kError,      // the socket failed
  kHandshake,  // TLS was not agreed upon
  kNotHttp2,   // the peer speaks something else
  kTimeout,    // no preface, or no answer to a PING, in time
  kProtocol,   // the peer broke the rules
  kTooMuch,    // the budget of frames that do no work is used up
  kIdle,       // no stream for too long
  kClosed,     // Close was called
};

class ConnectionOwner {
 public:
  // A server's: a request's header block is there. Returns the user that serves
  // it, or null to refuse it.
  virtual StreamUser* OnRequest(Stream& stream) { return nullptr; }
  // The peer's settings are there: a client may open streams.
  virtual void OnReady(Connection& connection) {}
  // No more streams can be opened here.
  virtual void OnGoingAway(Connection& connection) {}
  // Another stream may be opened: one has ended, a client's peer has changed
  // its settings, or has read the waiting output.
  virtual void OnCapacity(Connection& connection) {}
  // A server's: a stream was reset before its request was complete.
  virtual void OnAbandoned(Connection& connection) {}
  // A server's: the peer opened more streams than it may.
  virtual void OnRefused(Connection& connection) {}
  // The connection is closed, and all streams have been notified. `words` say
  // why.
  virtual void OnClosed(Connection& connection, ConnectionEnd end,
                        const std::string& words) = 0;

 protected:
  ~ConnectionOwner() = default;
};

class Connection final : private Loop::Watcher,
                         private Loop::Ender,
                         private Loop::LongWorker {
 public:
  // Takes over `fd`, a non-blocking socket that is connected, or about to be,
  // and `ssl`, if not null, which is set up for its side. Owner and options
  // outlive it. The owner is not called before this returns.
  static Connection* Create(Loop* loop, int fd, SSL* ssl,
                            const ConnectionOptions* options,
                            ConnectionOwner* owner);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Loop* loop() const { return loop_; }
  int fd() const { return socket_.fd(); }
  // A server's: the address of its client, for people; empty if it has none.
  std::string peer() const;
  // The peer's settings are known.
  bool ready() const { return ready_; }
  bool going_away() const { return going_away_; }
  size_t streams() const { return stream_count_; }
  // It ended with streams open.
  bool lost_streams() const { return lost_streams_; }
  // A client may open a stream now.
  bool CanOpen() const;
  // A client opens no more streams: too many bytes wait to be sent
  // (kMostToOpen), or the window has been used up for too long (kBlocked).
  bool full() const;
  // It has answered a call of a client's.
  bool served() const { return served_; }
  // The number of streams that the peer allows.
  size_t peer_max_streams() const;
  // Bytes of HTTP/2 that came from the socket, and went to it.
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes_written() const { return bytes_written_; }

  // A server's: streams that the client opens once it knows begin with another
  // window than the options', up to 16 MiB. Those that are open have at least
  // what they began with. Has no effect until the client has acknowledged the
  // previous change.
  void SetStreamWindow(uint32_t window);
  uint32_t stream_window() const { return stream_window_; }
  // A server's: how many streams its client may have open.
  uint32_t max_streams() const { return max_streams_; }
  // A server's: whether it reads its client's input. If the client leaves while
  // it does not, the unread input is lost.
  void SetReading(bool reads);
  // For its user, which counts here the bytes that it keeps of its streams, or
  // kept when they ended. On the connection's thread.
  const std::shared_ptr<size_t>& account() const { return account_; }

  // Opens a stream with this header block. Precondition: CanOpen().
  Stream* Open(const Fields& fields, bool end, StreamUser* user);

  // Sends a GOAWAY in two steps a moment apart (RFC 9113, 6.8), and ends when
  // the open streams have ended.
  void GoAway();
  // Applies the options' times after a change.
  void LookAtTimes();
  // Ends it now. OnClosed comes before this returns.
  void Close(const std::string& words);

 private:
  struct Callbacks;  // nghttp2's

  enum class State {
    kConnecting,  // TCP
    kHandshake,   // TLS
    kOpen,
    kEnding,  // what is left is written, and nothing is served any more
    kLinger,  // output is shut down; input is dropped
    kOver,
  };

  Connection(Loop* loop, int fd, SSL* ssl, const ConnectionOptions* options,
             ConnectionOwner* owner);
  ~Connection();

  void Prefetch() const override;
  void OnReady(uint32_t events) override;
  void OnIterationEnd() override;
  void OnLongWork() override;

  void Start();
  int SocketError() const;
  void Shake();
  void Begin();  // HTTP/2
  void MakeSession();
  size_t ReadSize() const;
  void ReadSome();
  void PeerLeft();
  void ReadFailed();
  const char* Silence() const;
  // May write into it (see FrameHeads).
  void TakeInput(absl::Span<char> input);
  bool TakePreface(absl::string_view* bytes);
  bool TakeStart(absl::string_view bytes);
  // Gives nghttp2 what has come. False: it has ended the session for that.
  bool Feed(absl::string_view bytes);
  // DATA of a stream that nghttp2 does not know any more, and drops.
  void OnStrayData(int32_t stream, size_t length);
  bool HoldsSettings() const;
  // Writes a server's bound into the settings that are its first frame.
  void TellMaxStreams(std::string* frame) const;
  void Gather();
  // False where the socket is full.
  bool WriteSome();
  void Written(size_t bytes);
  void Flush();
  void WatchFor(uint32_t events);
  uint32_t InputEvents() const;
  // Ends it after the queued output has been written.
  void EndSoon(ConnectionEnd end, std::string words);
  void EndNow(ConnectionEnd end, std::string words);
  void Linger();
  void CloseStream(Stream* stream, const StreamEnd& end);
  Stream* NewStream(int32_t id);
  void Touch() { host_.Touch(); }
  void LookAtWindow();
  void WatchStuck();
  void Spend(double cost);
  // On a frame that may be an answer to what was sent.
  void SpendOfSent();
  // The n-th field of a block has come. nghttp2 does not report every field of
  // a block.
  void SpendOfField(uint32_t n);
  void SpendOfUnheard();
  void SpendOfSettings(size_t length);
  bool IsYoung(const Stream& stream) const;
  bool HasEnded(int32_t id) const;
  // The window that the peer's streams begin with, as it has acknowledged.
  uint32_t AcknowledgedWindow() const;
  // Sends the second GOAWAY in a moment.
  void TellLast();
  // When a client may ask whether its peer is there, if nothing comes.
  int64_t PingDue() const;
  void ArmCheck();
  void Check();
  std::string TlsFailure() const;

  Loop* const loop_;
  Socket socket_;
  const ConnectionOptions& options_;
  ConnectionOwner* owner_;
  StreamHost host_;
  State state_ = State::kConnecting;
  ConnectionEnd end_ = ConnectionEnd::kDone;
  std::string words_;
  bool lost_streams_ = false;
  sockaddr_in6 peer_ = {};  // or sockaddr_in
  // nghttp2's message about the last received frame.
  std::string complaint_;
  uint32_t stream_window_;    // as last announced to the peer
  uint32_t max_streams_ = 0;  // a server's, as announced to its client
  bool sent_max_streams_ = false;
  bool reported_closed_ = false;  // OnClosed was called
  bool ready_ = false;
  bool served_ = false;
  bool going_away_ = false;   // on either side's request
  bool last_notice_ = false;  // the second GOAWAY was sent
  int notices_ = 0;           // it was waited to send it
  bool in_session_ = false;   // inside of nghttp2
  bool closing_ = false;      // Close was called from there
  uint32_t watched_ = 0;
  // Bytes of the preface, or of `start_`, that have come.
  size_t magic_ = 0;
  std::array<char, 4> start_ = {};
  std::string other_;  // the start of a client that does not say the preface
  FrameHeads heads_;
  uint64_t frames_ = 0;          // that have begun
  uint32_t refused_fields_ = 0;  // of a block whose stream was refused
  size_t reported_bytes_ = 0;    // of header blocks, by nghttp2
  int64_t block_since_ = 0;      // when the present header block began
  int64_t stuck_since_ = 0;      // the socket is full, and takes nothing
  int64_t blocked_since_ = 0;    // a client's window is used up
  bool small_reads_ = false;
  bool reads_ = true;

  Stream* streams_ = nullptr;
  size_t stream_count_ = 0;

  // The last streams that their peers had ended, as they closed: nothing may
  // follow there. Those that this side ended may still be sent to.
  std::array<int32_t, 16> ended_ = {};
  size_t next_ended_ = 0;

  FrameBudget budget_;
  int64_t last_read_;
  int64_t idle_since_;
  int64_t busy_since_ = 0;
  int64_t opened_;
  int64_t ending_since_ = 0;
  int64_t last_ping_ = 0;
  bool ping_waits_ = false;
  absl::optional<TimerId> check_;
  absl::optional<TimerId> notice_;
  uint64_t bytes_read_ = 0;
  uint64_t bytes_written_ = 0;
  const std::shared_ptr<size_t> account_ = std::make_shared<size_t>(0);
  SessionMemory memory_;  // is the most of it, and so the last
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_CONNECTION_H_
