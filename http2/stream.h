// SPDX-License-Identifier: Apache-2.0
// Stream: one request and its answer on a connection. StreamUser gets its
// events. Bodies are sent by reference (Slice), as fast as the peer's window
// and the socket allow.
//
// A stream belongs to its connection, and lives on its thread.
#ifndef FNCACHE_HTTP2_STREAM_H_
#define FNCACHE_HTTP2_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "http2/fields.h"
#include "http2/recycler.h"
#include "http2/slice.h"

namespace fncache::http2 {

class Connection;
class Stream;
struct StreamHost;

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
  kInadequateSecurity = 12,
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
  // It lies beyond the peer's GOAWAY.
  bool went_away = false;
  // For kLost: why the connection ended, in words.
  std::string why;
};

// Gets the events of a stream. No callback may delete the connection; all may
// send, reset and grant. OnClosed is the last call.
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
  // The last event of the stream, which is destroyed afterwards.
  virtual void OnClosed(Stream& stream, const StreamEnd& end) = 0;

 protected:
  ~StreamUser() = default;
};

class Stream final : public Recycled {
 public:
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Connection& connection() const;
  int32_t id() const { return id_; }
  void set_user(StreamUser* user) { user_ = user; }

  // The peer's header block: a server's request, a client's answer.
  const Fields& fields() const { return fields_; }
  const Fields& trailers() const { return trailers_; }
  // The header block is the caller's from now on.
  Fields TakeFields() {
    Fields taken = std::move(fields_);
    fields_.Clear();
    return taken;
  }
  // Whether trailers are kept; a user that does not want them has them take no
  // memory. OnTrailers is called for them all the same.
  void KeepTrailers(bool keep) { keeps_trailers_ = keep; }
  // Fields beyond the bound were left out of the last of these.
  bool oversized() const { return oversized_; }
  bool peer_ended() const { return peer_ended_; }
  // A server's: the bytes of the request that may come before Consume and
  // Grant.
  uint32_t first_window() const { return first_window_; }
  // A server's request is served as it comes, however long it does: resets cost
  // what those of complete ones do.
  void set_passes() { passes_ = true; }
  // A server's answer has begun. Nothing may follow a call that ends it.
  bool answered() const { return answered_; }
  bool ended() const { return ended_; }
  // And that has been said to the peer: no window holds it back.
  bool end_sent() const { return end_sent_; }

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
  // in this event-loop iteration.
  void Reset(uint32_t code);
  // The same, but once what waits has been sent. Nothing may follow.
  void ResetWhenSent(uint32_t code);

  // The bytes that Send took and that were not written to the socket yet.
  size_t unsent() const { return unsent_; }
  // Its peer has used its window up, and takes no more of it for now.
  bool blocked() const;
  // The last of that. Precondition: there is some.
  const Slice& last_unsent() const { return body_.back(); }
  // The trailers that EndWith took, while they wait behind that.
  const Fields& unsent_trailers() const { return own_trailers_; }

  // The user has consumed `bytes` of the input, and as many more may come.
  void Consume(size_t bytes);
  // Lets `bytes` more come, beyond the window.
  void Grant(size_t bytes);
  // Raises the window to `window`. A smaller value has no effect.
  void GrowWindow(uint32_t window);

 private:
  friend class Connection;
  struct BodyReader;  // nghttp2's
  explicit Stream(StreamHost* host) : host_(*host) {}

  // A client's header block. With `end` nothing follows.
  void Ask(const Fields& fields, bool end);
  void OnHeadersSent();
  // Drops the bytes that Send took and that were not sent.
  void ForgetBody();
  // Moves a DATA frame, whose head nghttp2 has made, to what is written.
  void WriteBody(absl::string_view head, size_t size);
  // New settings make the peer change its window by `change`. The stream keeps
  // at least its first window.
  void ShiftWindow(int64_t change);
  // nghttp2 waits for more of the body no longer.
  void Resume();

  StreamHost& host_;
  StreamUser* user_ = nullptr;
  int32_t id_ = -1;
  uint32_t first_window_ = 0;
  int64_t window_shift_ = 0;  // what it has besides, by changes of settings
  bool keeps_trailers_ = true;
  bool passes_ = false;
  bool oversized_ = false;
  bool peer_ended_ = false;
  bool answered_ = false;
  bool ended_ = false;  // this side: nothing more is queued
  bool end_sent_ = false;
  bool deferred_ = false;    // nghttp2 waits for more of the body
  bool was_full_ = false;    // OnSent is due
  bool reset_ = false;       // by us
  bool peer_reset_ = false;  // its frame has come
  // The code of the reset that follows the queued bytes in place of an end.
  std::optional<uint32_t> last_reset_;
  int64_t opened_ = 0;             // monotonic nanoseconds
  uint64_t sent_at_ = UINT64_MAX;  // the output's offset of its header block
  size_t list_size_ = 0;           // of the block that is being received
  uint32_t block_fields_ = 0;      // of it
  uint32_t dropped_fields_ = 0;    // for its size
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

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_STREAM_H_
