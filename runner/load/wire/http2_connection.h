// SPDX-License-Identifier: Apache-2.0
// Http2Connection: the client's end of one HTTP/2 connection, as far as unary
// gRPC calls need it: for `fncache load --request` and for the benchmark's load
// client. Plaintext, or through a SecureStream.
//
// Made to cost little beside the server that it measures: bodies are given as
// parts that stay where they are and leave by writev; header blocks are encoded
// once per connection (afterwards every header is a reference to the dynamic
// table, as grpc-go sends them); windows for receiving are as large as they can
// be, so that hardly an update is needed. DATA frames have at most 16 KiB and
// streams take turns, both as grpc-go does. Response headers are decoded by
// libnghttp2. Peers may do whatever HTTP/2 allows: split header blocks,
// padding, flow control, a lower limit of streams, GOAWAY.
//
// Single-threaded, for non-blocking sockets: call Read when the socket is
// readable, Flush when it is writable and after opening streams. A status that
// is not OK ends the connection. Handler and streams belong to the caller and
// outlive the connection's use of them: a stream is the connection's from Open
// until OnEnd, and what its body refers to until no longer wants_write().
#ifndef FNCACHE_RUNNER_LOAD_WIRE_HTTP2_CONNECTION_H_
#define FNCACHE_RUNNER_LOAD_WIRE_HTTP2_CONNECTION_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

struct nghttp2_hd_inflater;

namespace fncache::runner::load::wire {

// One call. What the caller derives from this carries what it needs itself.
struct Http2Stream {
  // The request's DATA, one part after the other; set before Open. Parts of up
  // to kCopied bytes are copied at Open or later, but before OnEnd.
  std::array<absl::string_view, 5> body;

  // The connection's own.
  uint32_t id = 0;
  size_t body_left = 0;
  size_t part = 0;
  int64_t window = 0;
  bool waiting = false;  // has its place among those with something to send
};

// How a stream ended.
enum class StreamEnd {
  kComplete,  // the peer ended it
  kReset,     // the peer reset it; `code` is its HTTP/2 error code
  kRefused,   // the peer said that it did not process it: may be sent again
};

class Http2Handler {
 public:
  virtual ~Http2Handler() = default;
  // A header of the response or of its trailers.
  virtual void OnHeader(Http2Stream* stream, absl::string_view name,
                        absl::string_view value) = 0;
  virtual void OnData(Http2Stream* stream, absl::string_view data) = 0;
  // The stream is the caller's again; a new one may be opened from here.
  virtual void OnEnd(Http2Stream* stream, StreamEnd end, uint32_t code) = 0;
};

// What bytes go through on their way to and from the socket. Returns and errno
// are those of read(2) and writev(2) of a non-blocking socket.
class SecureStream {
 public:
  virtual ~SecureStream() = default;
  virtual ssize_t Read(char* data, size_t size) = 0;
  // What was not written comes again, at the front of what is there then.
  virtual ssize_t Write(const iovec* parts, int count) = 0;
  // What was wrong where errno is EPROTO.
  virtual std::string Why() const = 0;
};

class Http2Connection {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  // Takes over `fd`, a non-blocking socket that is connected or about to be.
  // `headers` are those of every request, pseudo-headers first, names in lower
  // case. `secure` is on that socket; null = plaintext.
  Http2Connection(int fd, Headers headers, Http2Handler* handler,
                  std::unique_ptr<SecureStream> secure = nullptr);
  ~Http2Connection();
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  int fd() const { return fd_; }
  // Whether a stream may be opened now: the peer's settings are known, its
  // limit is not reached, and it did not say that it goes away.
  bool CanOpen() const {
    return ready_ && !going_away_ && streams_.size() < max_streams_;
  }
  bool ready() const { return ready_; }
  bool going_away() const { return going_away_; }
  size_t open_streams() const { return streams_.size(); }

  // Sends a request, with the next Flush. Needs CanOpen().
  void Open(Http2Stream* stream);

  // Reads what has arrived, at most `buffer` once, and calls the handler.
  absl::Status Read(std::vector<char>* buffer);
  // Writes what there is to write, until nothing is left or the socket is full.
  absl::Status Flush();
  // Whether Flush must be called again once the socket is writable.
  bool wants_write() const { return first_out_ < out_.size(); }

  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  // Parts up to this size are copied behind what was written before, instead of
  // being an entry of their own in writev.
  static constexpr size_t kCopied = 64;

  // A part of the output: bytes elsewhere, or a few of its own.
  struct Out {
    const char* data = nullptr;  // nullptr: the bytes are in `own`
    size_t size = 0;
    std::array<char, 112> own;
  };

  struct DeleteInflater {
    void operator()(nghttp2_hd_inflater* inflater) const;
  };

  void Copy(absl::string_view bytes);
  void Refer(absl::string_view bytes);
  void FrameHeader(size_t length, uint8_t type, uint8_t flags, uint32_t id);
  void WindowUpdate(uint32_t id, uint32_t increment);

  std::string FirstHeaderBlock();
  void SetTableSize(uint32_t size);

  void Pump();
  void SendData(Http2Stream* stream, size_t size);
  absl::Status WriteOnce();

  absl::Status Consume(absl::string_view* in);
  absl::Status StartData(absl::string_view* in, size_t length, uint8_t flags,
                         uint32_t id);
  void Data(absl::string_view* in);
  absl::Status Frame(uint8_t type, uint8_t flags, uint32_t id,
                     absl::string_view payload);
  absl::Status HeadersFrame(uint8_t flags, absl::string_view payload);
  absl::Status Inflate();
  absl::Status Settings(uint8_t flags, absl::string_view payload);
  absl::Status WindowUpdated(uint32_t id, uint32_t increment);
  void GoAway(uint32_t last_id);
  void End(Http2Stream* stream, StreamEnd end, uint32_t code);
  Http2Stream* Find(uint32_t id);

  const int fd_;
  const Headers headers_;
  Http2Handler* const handler_;
  const std::unique_ptr<SecureStream> secure_;

  // The peer's limits.
  bool ready_ = false;
  bool going_away_ = false;
  size_t max_streams_ = 0;
  size_t max_frame_ = 16384;
  int64_t initial_window_ = 65535;
  int64_t window_ = 65535;
  uint32_t table_size_ = 4096;

  // Header blocks: the first fills the dynamic table, the others refer to it.
  std::string first_block_;
  std::string block_;

  uint32_t next_id_ = 1;
  absl::flat_hash_map<uint32_t, Http2Stream*> streams_;
  // Those with a body to send and a window for it, in turn.
  std::deque<Http2Stream*> senders_;

  std::vector<Out> out_;
  size_t first_out_ = 0;
  size_t out_bytes_ = 0;

  // Input: what is left of a frame that has not arrived whole.
  std::string pending_;
  uint32_t data_id_ = 0;
  size_t data_left_ = 0;
  size_t padding_left_ = 0;
  bool data_ends_ = false;
  bool in_data_ = false;
  uint64_t unacknowledged_ = 0;

  // A header block under way.
  std::string header_block_;
  uint32_t header_id_ = 0;
  bool header_ends_ = false;
  bool header_goes_on_ = false;
  std::unique_ptr<nghttp2_hd_inflater, DeleteInflater> inflater_;

  uint64_t bytes_read_ = 0;
  uint64_t bytes_written_ = 0;
};

}  // namespace fncache::runner::load::wire

#endif  // FNCACHE_RUNNER_LOAD_WIRE_HTTP2_CONNECTION_H_
