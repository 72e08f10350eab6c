// SPDX-License-Identifier: Apache-2.0
// Connection: one HTTP/2 connection (RFC 9113) on one Loop, of either side,
// over TCP, a unix socket, or TLS on either; and Stream, one request and its
// answer.
//
// Frames and header compression are nghttp2's. Around it:
//
// - What a turn of the loop queues leaves in one writev at the turn's end;
//   bodies are sent by reference (Slice).
// - Windows. The connection's is given back as bytes leave the socket: only a
//   stream's own window holds its sender back. A stream begins with
//   `stream_window` and gets more as its user calls Consume or Grant.
// - Bounds. A header block of more than `max_field_bytes` is cut off and
// marked;
//   frames that do no work come out of a budget, beyond which the connection
//   ends with ENHANCE_YOUR_CALM.
//
// A connection belongs to itself: it tells its owner of its end (OnClosed) and
// deletes itself when the turn ends. Close ends it at once.
//
// Not thread-safe: everything happens on the loop's thread.
#ifndef FNCACHE_HTTP2_CONNECTION_H_
#define FNCACHE_HTTP2_CONNECTION_H_

#include <openssl/types.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "http2/changeable.h"
#include "http2/fields.h"
#include "http2/loop.h"
#include "http2/recycler.h"
#include "http2/slice.h"

struct nghttp2_session;

namespace fncache::http2 {

class Connection;
class Stream;

// Error codes of RFC 9113, section 7.
enum ErrorCode : uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kFlowControlError = 3,
  kStreamClosed = 5,
  kRefusedStream = 7,
  kCancel = 8,
  kEnhanceYourCalm = 11,
};
// "PROTOCOL_ERROR"...
const char* ErrorCodeName(uint32_t code);

// How a stream ended.
struct StreamEnd {
  enum class Kind {
    kComplete,   // both sides have ended
    kPeerReset,  // the peer reset it
    kReset,      // this side did, or nghttp2 where the peer broke the rules
    kLost,       // the connection has gone
  };
  Kind kind = Kind::kComplete;
  uint32_t code = kNoError;
  // The peer has provably done nothing with the request: it was refused, lies
  // beyond its GOAWAY, or was never sent.
  bool unprocessed = false;
  // Of kLost: why the connection ended, in words.
  std::string why;
};

// Who uses a stream. None of these may delete the connection; all may send,
// reset and grant. Nothing is called after OnClosed.
class StreamUser {
 public:
  // A client's answer has begun: stream.fields() is its header block.
  virtual void OnAnswer(Stream& stream) {}
  virtual void OnData(Stream& stream, absl::string_view bytes) = 0;
  // stream.trailers() are there; the end follows.
  virtual void OnTrailers(Stream& stream) {}
  // The peer sends no more.
  virtual void OnPeerEnd(Stream& stream) = 0;
  // Less than `low_water` is queued again, after more was.
  virtual void OnSent(Stream& stream) {}
  // The last that is heard of the stream, which is gone afterwards.
  virtual void OnClosed(Stream& stream, const StreamEnd& end) = 0;

 protected:
  ~StreamUser() = default;
};

class Stream final : public Recycled {
 public:
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Connection& connection() const { return *connection_; }
  int32_t id() const { return id_; }
  void set_user(StreamUser* user) { user_ = user; }

  // The peer's header block: a server's request, a client's answer.
  const Fields& fields() const { return fields_; }
  const Fields& trailers() const { return trailers_; }
  // Fields beyond the bound were left out of the last of these.
  bool oversized() const { return oversized_; }
  bool peer_ended() const { return peer_ended_; }
  // A server's answer has begun. Nothing may follow a call that ends it.
  bool answered() const { return answered_; }
  bool ended() const { return ended_; }

  // A server's header block. With `end` nothing follows.
  void Answer(const Fields& fields, bool end);
  // More of the body; sent by reference.
  void Send(Slice bytes);
  // More of the body; copied. Small pieces join where more waits before them,
  // so that they take no more than their bytes.
  void SendCopy(absl::string_view bytes);
  // Ends this side, after what was sent; with trailers if they are not empty.
  void End();
  void EndWith(Fields trailers);
  // Ends both sides at once; what waits to be sent is dropped. OnClosed follows
  // in this turn.
  void Reset(uint32_t code);

  // Of what Send took, what has not been given to the socket yet.
  size_t unsent() const { return unsent_; }

  // The user is done with so many bytes of those that came, and as many may
  // come instead.
  void Consume(size_t bytes);
  // So many bytes more may come, beyond the window.
  void Grant(size_t bytes);
  // From now on the window is so large, where that is more.
  void GrowWindow(uint32_t window);

 private:
  friend class Connection;
  friend struct Callbacks;  // nghttp2's
  explicit Stream(Connection* connection) : connection_(connection) {}

  Connection* const connection_;
  StreamUser* user_ = nullptr;
  int32_t id_ = -1;
  bool oversized_ = false;
  bool peer_ended_ = false;
  bool answered_ = false;
  bool ended_ = false;  // this side: nothing more is queued
  bool end_sent_ = false;
  bool deferred_ = false;          // nghttp2 waits for more of the body
  bool was_full_ = false;          // OnSent is due
  bool reset_ = false;             // by us
  bool peer_reset_ = false;        // its frame has come
  int64_t opened_ = 0;             // monotonic nanoseconds
  uint64_t sent_at_ = UINT64_MAX;  // the output's offset of its header block
  size_t list_size_ = 0;           // of the block that is being received
  Fields fields_;
  Fields trailers_;
  Fields own_trailers_;
  absl::InlinedVector<Slice, 3> body_;
  size_t body_first_ = 0;  // of those that were not sent
  size_t unsent_ = 0;
  Buffer tail_;
  bool tail_open_ = false;  // the last of `body_` ends where `tail_` does
  Stream* next_ = nullptr;
  Stream** link_ = nullptr;
};

// Why a connection ended.
enum class ConnectionEnd {
  kDone,       // told to go, or the peer left, with no stream left
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
  // A server's: a request's header block is there. Returns who serves it.
  // Null: it is refused.
  virtual StreamUser* OnRequest(Stream& stream) { return nullptr; }
  // The peer's settings are there: a client may open streams.
  virtual void OnReady(Connection& connection) {}
  // No more streams can be opened here.
  virtual void OnGoingAway(Connection& connection) {}
  // A stream has ended, so that another one may be opened.
  virtual void OnRoom(Connection& connection) {}
  // A server's: a stream was reset before its request was complete.
  virtual void OnAbandoned(Connection& connection) {}
  // A server's: the peer opened more streams than it may.
  virtual void OnRefused(Connection& connection) {}
  // It is over, all streams have been told. `words` say why.
  virtual void OnClosed(Connection& connection, ConnectionEnd end,
                        const std::string& words) = 0;

 protected:
  ~ConnectionOwner() = default;
};

// Those that may be changed while there are connections say so by their types.
struct ConnectionOptions {
  bool server = true;
  // Streams that a peer may have open: told to it when a connection begins.
  Changeable<uint32_t> max_streams = 1024;
  // Bytes of a header list (RFC 9113, 6.5.2).
  Changeable<uint32_t> max_field_bytes = 64 << 10;
  // Of each stream, and of the connection.
  uint32_t stream_window = 64 << 10;
  uint32_t connection_window = 16 << 20;
  // Below this OnSent comes.
  size_t low_water = 64 << 10;
  // TLS, preface and settings must be done within this.
  absl::Duration handshake_timeout = absl::Seconds(10);
  // A connection without streams is told to go after this; infinite = never.
  ChangeableDuration idle_timeout = absl::InfiniteDuration();
  // A server's is told to go at this age; infinite = never.
  ChangeableDuration max_age = absl::InfiniteDuration();
  // A client's PING where streams are open and nothing has come for so long;
  // and how long its answer may take.
  absl::Duration ping_after = absl::InfiniteDuration();
  absl::Duration ping_every = absl::Seconds(310);
  absl::Duration ping_timeout = absl::Seconds(20);
  // The budget of frames that do no work: at the start, a second, for each call
  // answered, and at most.
  double budget = 1000;
  double budget_a_second = 100;
  double budget_a_call = 4;
  double budget_most = 20000;
  // A reset sooner than this, before any answer, is no work.
  absl::Duration young = absl::Milliseconds(100);
  // What a server says to a peer that speaks HTTP/1; empty = nothing.
  std::string http1_answer;
  // A client's: says what is wrong with the peer of a handshake; empty =
  // nothing is.
  std::function<std::string(SSL*)> check_peer;
  // Says why a handshake failed, where it knows; empty = it does not.
  std::function<std::string(SSL*)> explain_handshake;
};

class Connection final : private Loop::Watcher, private Loop::Ender {
 public:
  // Takes over `fd`, a non-blocking socket that is connected, or about to be,
  // and `ssl`, if not null, which is set up for its side. Owner and options
  // outlive it; the owner hears nothing before this returns.
  static Connection* Create(Loop* loop, int fd, SSL* ssl,
                            const ConnectionOptions* options,
                            ConnectionOwner* owner);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Loop* loop() const { return loop_; }
  int fd() const { return fd_; }
  // The peer's settings are known.
  bool ready() const { return ready_; }
  bool going_away() const { return going_away_; }
  size_t streams() const { return stream_count_; }
  // A client may open a stream now.
  bool CanOpen() const;
  // The number of streams that the peer allows.
  size_t peer_max_streams() const;
  // Bytes of HTTP/2 that came from the socket, and went to it.
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes_written() const { return bytes_written_; }

  // Opens a stream with this header block. Precondition: CanOpen().
  Stream* Open(const Fields& fields, bool end, StreamUser* user);

  // Tells the peer that no more streams are taken, in two steps a moment apart
  // (RFC 9113, 6.8), and ends when those there are have ended.
  void GoAway();
  // The options' times have changed: keeps to them.
  void LookAtTimes();
  // Ends it now. OnClosed comes before this returns.
  void Close(const std::string& words);

 private:
  friend class Stream;
  friend struct Callbacks;  // nghttp2's

  enum class State {
    kConnecting,  // TCP
    kHandshake,   // TLS
    kOpen,
    kEnding,  // what is left is written, and nothing is served any more
    kLinger,  // the peer is told that no more comes; what it sends is dropped
    kOver,
  };

  Connection(Loop* loop, int fd, SSL* ssl, const ConnectionOptions* options,
             ConnectionOwner* owner);
  ~Connection();

  void OnReady(uint32_t events) override;
  void OnTurnEnd() override;

  void Start();
  void Shake();
  void Begin();  // HTTP/2
  void ReadSome();
  void TakeInput(absl::string_view bytes);
  bool TakePreface(absl::string_view* bytes);
  bool TakeStart(absl::string_view bytes);
  // Gives nghttp2 what has come. False: it has ended the session for that.
  bool Feed(absl::string_view bytes);
  // How many of these bytes come before the next DATA frame's payload; all, if
  // there is none. Sets `data` to the frame's stream and length.
  size_t NextData(absl::string_view bytes, int32_t* stream, size_t* length);
  // DATA of a stream that nghttp2 does not know any more, and drops.
  void OnStrayData(int32_t stream, size_t length);
  void Gather();
  // False where the socket is full.
  bool WriteSome();
  void Written(size_t bytes);
  void Flush();
  void WatchFor(uint32_t events);
  // Ends it after what is queued has been written.
  void EndSoon(ConnectionEnd end, std::string words);
  void EndNow(ConnectionEnd end, std::string words);
  void Linger();
  void CloseStream(Stream* stream, const StreamEnd& end);
  Stream* NewStream(int32_t id);
  void Touch() { loop_->AtTurnEnd(this); }
  void Spend(double cost);
  bool IsYoung(const Stream& stream) const;
  bool HasEnded(int32_t id) const;
  void ArmCheck();
  void Check();
  void CopyOut(absl::string_view bytes);
  std::string TlsFailure() const;
  ssize_t ReadSocket(char* to, size_t size);
  ssize_t WriteSocket();

  Loop* const loop_;
  const int fd_;
  SSL* const ssl_;
  const ConnectionOptions& options_;
  ConnectionOwner* owner_;
  nghttp2_session* session_ = nullptr;
  State state_ = State::kConnecting;
  ConnectionEnd end_ = ConnectionEnd::kDone;
  std::string words_;
  bool told_ = false;  // OnClosed was called
  bool ready_ = false;
  bool going_away_ = false;   // whoever says so
  bool last_notice_ = false;  // the second GOAWAY was sent
  bool in_session_ = false;   // inside of nghttp2
  bool closing_ = false;      // Close was called from there
  uint32_t watched_ = 0;
  // Bytes of the preface, or of `start_`, that have come.
  size_t magic_ = 0;
  std::array<char, 4> start_ = {};
  // Where the frames begin: bytes of the next one's head, and what is left of
  // the payload before it.
  std::array<uint8_t, 9> head_ = {};
  size_t head_size_ = 0;
  size_t payload_left_ = 0;
  uint64_t frames_ = 0;  // that have begun
  bool small_reads_ = false;

  Stream* streams_ = nullptr;
  size_t stream_count_ = 0;

  // Output: slices, and small bytes copied into the last of `chunks_`.
  std::vector<Slice> out_;
  size_t out_first_ = 0;  // of those that were not written
  Buffer chunk_;
  bool chunk_open_ = false;  // the last of `out_` ends where `chunk_` does
  size_t out_bytes_ = 0;
  std::vector<int32_t> held_back_;  // streams whose bodies wait for room there
  uint64_t out_total_ = 0;          // ever queued
  std::string record_;              // of TLS, while it is not written

  // The last streams that their peers had ended, as they closed: nothing may
  // follow there. Those that this side ended may still be sent to.
  std::array<int32_t, 16> ended_ = {};
  size_t next_ended_ = 0;

  double budget_;
  int64_t budget_at_;
  int64_t last_read_;
  int64_t idle_since_;
  int64_t opened_;
  int64_t last_ping_ = 0;
  bool ping_waits_ = false;
  absl::optional<TimerId> check_;
  absl::optional<TimerId> notice_;
  uint64_t moved_ = 0;  // body bytes not yet turned into budget
  uint64_t bytes_read_ = 0;
  uint64_t bytes_written_ = 0;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_CONNECTION_H_
