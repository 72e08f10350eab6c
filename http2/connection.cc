// SPDX-License-Identifier: Apache-2.0
#include "http2/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fncache::http2 {
namespace {

// What a client says first (RFC 9113, 3.4).
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Output runs so far ahead of the socket.
constexpr size_t kMostUnwritten = 256 << 10;
// And where what is no body makes it more than this, no more is read: of a peer
// that asks, and does not read.
constexpr size_t kMostAsked = 1 << 20;
constexpr size_t kChunk = 4 << 10;
// Slices up to this size are copied behind what was written before, instead of
// being an entry of their own in writev.
constexpr size_t kCopied = 256;
constexpr int kVectors = 256;
// Pieces of bodies that are at most so large are joined.
constexpr size_t kJoined = 1 << 10;
// Slices that were sent are taken off a queue so many at a time.
constexpr size_t kDropTogether = 64;
// Reads of a socket that has much, so that others are served between them.
constexpr int kReadsATurn = 4;
// A read whose frames are smaller than this is its turn's last, the next are
// smaller, and streams that were answered go at once: or many connections'
// requests would be in memory together, and keep others waiting.
constexpr size_t kSmallFrame = 256;
constexpr size_t kSmallRead = 16 << 10;
// What a record of TLS holds.
constexpr size_t kRecord = 16384;
// So many bytes of bodies pay for a frame that does no work.
constexpr uint64_t kMovedAFrame = 4096;
// Between the two steps of a GOAWAY: what the peer sent before it knew arrives.
constexpr absl::Duration kNotice = absl::Milliseconds(100);
// A peer that is told of an error may take so long to read it.
constexpr absl::Duration kLinger = absl::Milliseconds(500);

// Out of reach: the budget ends before.
constexpr size_t kMostAcks = 1 << 20;
constexpr size_t kMostFields = 256 << 10;

int64_t Nanos(absl::Duration duration) {
  return absl::ToInt64Nanoseconds(duration);
}

std::string ErrnoText(absl::string_view what) {
  std::array<char, 128> text;
  const int error = errno;
  return absl::StrCat(what, ": ", strerror_r(error, text.data(), text.size()));
}

// As nghttp2 takes them; valid until the next call on this thread.
const std::vector<nghttp2_nv>& Values(const Fields& fields) {
  static thread_local std::vector<nghttp2_nv> out;
  out.clear();
  for (const Field field : fields) {
    nghttp2_nv nv;
    // nghttp2 only reads them: its interface is older than const.
    nv.name = reinterpret_cast<uint8_t*>(const_cast<char*>(field.name.data()));
    nv.namelen = field.name.size();
    nv.value =
        reinterpret_cast<uint8_t*>(const_cast<char*>(field.value.data()));
    nv.valuelen = field.value.size();
    nv.flags = NGHTTP2_NV_FLAG_NONE;
    out.push_back(nv);
  }
  return out;
}

// What the first bytes of a peer that does not speak HTTP/2 look like.
std::string OtherProtocol(absl::string_view bytes) {
  if (bytes.size() >= 2 && (bytes[0] == 0x15 || bytes[0] == 0x16) &&
      bytes[1] == 0x03) {
    return "the peer speaks TLS, not plaintext";
  }
  for (const absl::string_view start : {"GET ", "POST", "HEAD", "PUT ", "OPTI",
                                        "DELE", "PATC", "CONN", "HTTP"}) {
    if (absl::StartsWith(bytes, start)) return "the peer speaks HTTP/1";
  }
  return "the peer does not speak HTTP/2";
}

}  // namespace

const char* ErrorCodeName(uint32_t code) {
  return nghttp2_http2_strerror(code);
}

// nghttp2's callbacks.
struct Callbacks {
  static Connection* Of(void* data) { return static_cast<Connection*>(data); }
  static Stream* Find(nghttp2_session* session, int32_t id) {
    return static_cast<Stream*>(
        nghttp2_session_get_stream_user_data(session, id));
  }

  static int OnBeginFrame(nghttp2_session* session,
                          const nghttp2_frame_hd* head, void* data) {
    Connection* const self = Of(data);
    ++self->frames_;
    switch (head->type) {
      case NGHTTP2_PRIORITY:
        // nghttp2 does not look at those that have no effect.
        if (head->stream_id == 0) {
          nghttp2_session_terminate_session(session, NGHTTP2_PROTOCOL_ERROR);
        }
        self->Spend(1);
        break;
      case NGHTTP2_HEADERS:
        if (self->HasEnded(head->stream_id)) {
          nghttp2_session_terminate_session(session, NGHTTP2_STREAM_CLOSED);
        }
        break;
      case NGHTTP2_CONTINUATION:
        break;
      case NGHTTP2_DATA:
        if (self->HasEnded(head->stream_id)) {
          nghttp2_session_terminate_session(session, NGHTTP2_STREAM_CLOSED);
        }
        if (head->length == 0 && (head->flags & NGHTTP2_FLAG_END_STREAM) == 0) {
          self->Spend(1);
        }
        break;
      case NGHTTP2_RST_STREAM:
        // One of a stream that there is, is counted as that ends.
        if (Find(session, head->stream_id) == nullptr) self->Spend(1);
        break;
      case NGHTTP2_PING:
      case NGHTTP2_SETTINGS:
        if ((head->flags & NGHTTP2_FLAG_ACK) == 0) self->Spend(1);
        break;
      default:
        self->Spend(1);
    }
    return 0;
  }

  static int OnBeginHeaders(nghttp2_session* session,
                            const nghttp2_frame* frame, void* data) {
    Connection* const self = Of(data);
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      Stream* const stream = self->NewStream(frame->hd.stream_id);
      nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                           stream);
    } else if (Stream* const stream = Find(session, frame->hd.stream_id)) {
      stream->list_size_ = 0;
      stream->oversized_ = false;
    }
    return 0;
  }

  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame,
                      const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size,
                      uint8_t /*flags*/, void* data) {
    Connection* const self = Of(data);
    Stream* const stream = Find(session, frame->hd.stream_id);
    if (stream == nullptr) return 0;
    const size_t size = name_size + value_size + 32;
    const size_t before = stream->list_size_;
    stream->list_size_ += size;
    const size_t limit = self->options_.max_field_bytes;
    if (stream->list_size_ > limit) {
      stream->oversized_ = true;
      // Decoding what is not kept is work without use.
      if (before / limit != stream->list_size_ / limit) self->Spend(1);
      return 0;
    }
    // A client's first block after those of 1xx answers is its answer.
    const bool trailers =
        !stream->fields_.empty() && frame->headers.cat == NGHTTP2_HCAT_HEADERS;
    Fields& fields = trailers ? stream->trailers_ : stream->fields_;
    fields.Add({reinterpret_cast<const char*>(name), name_size},
               {reinterpret_cast<const char*>(value), value_size});
    return 0;
  }

  static void OnHeadersDone(Connection* self, Stream* stream) {
    if (self->options_.server) {
      if (stream->user_ == nullptr && !stream->answered_ && !stream->reset_ &&
          stream->trailers_.empty()) {
        stream->user_ = self->owner_->OnRequest(*stream);
        if (stream->user_ == nullptr && !stream->answered_) {
          stream->Reset(kRefusedStream);
        }
        return;
      }
      if (stream->user_ != nullptr) stream->user_->OnTrailers(*stream);
      return;
    }
    if (stream->user_ == nullptr) return;
    if (!stream->answered_) {
      const absl::string_view status = stream->fields_.Find(":status");
      if (!status.empty() && status[0] == '1') {
        stream->fields_.Clear();
        return;
      }
      stream->answered_ = true;
      stream->user_->OnAnswer(*stream);
      return;
    }
    stream->user_->OnTrailers(*stream);
  }

  static int OnFrame(nghttp2_session* session, const nghttp2_frame* frame,
                     void* data) {
    Connection* const self = Of(data);
    switch (frame->hd.type) {
      case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0 && !self->ready_) {
          self->ready_ = true;
          self->ArmCheck();
          self->owner_->OnReady(*self);
        }
        return 0;
      case NGHTTP2_GOAWAY:
        if (frame->goaway.error_code != NGHTTP2_NO_ERROR) {
          const absl::string_view debug(
              reinterpret_cast<const char*>(frame->goaway.opaque_data),
              frame->goaway.opaque_data_len);
          self->words_ =
              absl::StrCat("the peer ended the connection with ",
                           ErrorCodeName(frame->goaway.error_code),
                           debug.empty() ? "" : ": ", debug.substr(0, 100));
          if (self->end_ == ConnectionEnd::kDone) {
            self->end_ = ConnectionEnd::kPeerLeft;
          }
        }
        if (!self->going_away_) {
          self->going_away_ = true;
          self->owner_->OnGoingAway(*self);
        }
        return 0;
      case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
          self->ping_waits_ = false;
        }
        return 0;
      case NGHTTP2_RST_STREAM:
        if (Stream* const stream = Find(session, frame->hd.stream_id)) {
          stream->peer_reset_ = true;
        }
        return 0;
      case NGHTTP2_HEADERS:
      case NGHTTP2_DATA:
        break;
      default:
        return 0;
    }
    Stream* stream = Find(session, frame->hd.stream_id);
    if (stream == nullptr) return 0;
    const bool ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    stream->peer_ended_ = ended;
    if (frame->hd.type == NGHTTP2_HEADERS) OnHeadersDone(self, stream);
    if (!ended) return 0;
    if (stream->user_ != nullptr) stream->user_->OnPeerEnd(*stream);
    return 0;
  }

  static int OnDataChunk(nghttp2_session* session, uint8_t /*flags*/,
                         int32_t id, const uint8_t* bytes, size_t size,
                         void* data) {
    Connection* const self = Of(data);
    nghttp2_session_consume_connection(session, size);
    self->moved_ += size;
    if (self->moved_ >= kMovedAFrame) {
      const uint64_t frames = self->moved_ / kMovedAFrame;
      self->moved_ %= kMovedAFrame;
      self->budget_ = std::min(self->options_.budget_most,
                               self->budget_ + static_cast<double>(frames));
    }
    Stream* const stream = Find(session, id);
    if (stream == nullptr) return 0;
    if (stream->user_ == nullptr) {
      // Nobody wants it; the window need not stay closed for that.
      nghttp2_session_consume_stream(session, id, size);
      return 0;
    }
    stream->user_->OnData(
        *stream, absl::string_view(reinterpret_cast<const char*>(bytes), size));
    return 0;
  }

  static int OnStreamClose(nghttp2_session* session, int32_t id, uint32_t code,
                           void* data) {
    Connection* const self = Of(data);
    Stream* const stream = Find(session, id);
    if (stream == nullptr) return 0;
    nghttp2_session_set_stream_user_data(session, id, nullptr);
    StreamEnd end;
    end.code = code;
    if (code == NGHTTP2_NO_ERROR && stream->peer_ended_ && stream->end_sent_) {
      end.kind = StreamEnd::Kind::kComplete;
    } else if (stream->reset_) {
      end.kind = StreamEnd::Kind::kReset;
    } else {
      end.kind = StreamEnd::Kind::kPeerReset;
      end.unprocessed = !self->options_.server && code == kRefusedStream;
    }
    const bool complete = stream->peer_ended_;
    if (complete || stream->peer_reset_) {
      self->ended_[self->next_ended_++ % self->ended_.size()] = id;
    }
    if (stream->answered_ && stream->end_sent_) {
      self->budget_ = std::min(self->options_.budget_most,
                               self->budget_ + self->options_.budget_a_call);
    } else if (!stream->reset_ && !stream->answered_ &&
               (!complete || self->IsYoung(*stream))) {
      self->Spend(1);
    }
    if (!complete && !stream->reset_ && self->options_.server &&
        !stream->answered_) {
      self->owner_->OnAbandoned(*self);
    }
    self->CloseStream(stream, end);
    return 0;
  }

  static int OnFrameSent(nghttp2_session* session, const nghttp2_frame* frame,
                         void* data) {
    Connection* const self = Of(data);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      if (frame->goaway.error_code != NGHTTP2_NO_ERROR &&
          self->end_ == ConnectionEnd::kDone) {
        self->end_ = ConnectionEnd::kProtocol;
        if (self->words_.empty()) {
          self->words_ = absl::StrCat("the peer broke the rules of HTTP/2: ",
                                      ErrorCodeName(frame->goaway.error_code));
        }
      }
      return 0;
    }
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) {
      return 0;
    }
    Stream* const stream = Find(session, frame->hd.stream_id);
    if (stream == nullptr) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && stream->sent_at_ == UINT64_MAX) {
      stream->sent_at_ = self->out_total_;
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    stream->end_sent_ = true;
    if (self->options_.server && !stream->peer_ended_ && !stream->reset_) {
      // The answer is complete, and the rest of the request is of no use
      // (RFC 9113, 8.1). It may be under way.
      stream->reset_ = true;
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id_,
                                NGHTTP2_NO_ERROR);
    }
    return 0;
  }

  static int OnFrameNotSent(nghttp2_session* session,
                            const nghttp2_frame* frame, int error, void* data) {
    Connection* const self = Of(data);
    if (self->options_.server || frame->hd.type != NGHTTP2_HEADERS ||
        frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
      return 0;
    }
    for (Stream* stream = self->streams_; stream != nullptr;
         stream = stream->next_) {
      if (stream->id_ != frame->hd.stream_id) continue;
      // Whether or not nghttp2 has opened it.
      nghttp2_session_set_stream_user_data(session, stream->id_, nullptr);
      StreamEnd end;
      end.kind = StreamEnd::Kind::kReset;
      // Nothing of it was sent; but one that cannot be sent never can.
      end.unprocessed = error == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED ||
                        error == NGHTTP2_ERR_SESSION_CLOSING ||
                        error == NGHTTP2_ERR_STREAM_CLOSING;
      end.code = end.unprocessed ? kRefusedStream : kInternalError;
      self->CloseStream(stream, end);
      break;
    }
    return 0;
  }

  static int OnInvalidFrame(nghttp2_session* session,
                            const nghttp2_frame* frame, int error, void* data) {
    Connection* const self = Of(data);
    // The stream that it ends is counted as that happens.
    if (Find(session, frame->hd.stream_id) == nullptr) self->Spend(1);
    if (error == NGHTTP2_ERR_REFUSED_STREAM) self->owner_->OnRefused(*self);
    return 0;
  }

  static int OnError(nghttp2_session* /*session*/, int /*code*/,
                     const char* text, size_t size, void* data) {
    Connection* const self = Of(data);
    if (self->words_.empty()) {
      self->words_ = absl::StrCat("the peer broke the rules of HTTP/2: ",
                                  absl::string_view(text, size));
    }
    return 0;
  }

  static ssize_t ReadBody(nghttp2_session* session, int32_t id,
                          uint8_t* /*buffer*/, size_t size, uint32_t* flags,
                          nghttp2_data_source* source, void* /*data*/) {
    auto* const stream = static_cast<Stream*>(source->ptr);
    if (stream->unsent_ == 0 && !stream->ended_) {
      stream->deferred_ = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    Connection* const self = &stream->connection();
    if (self->out_bytes_ >= kMostUnwritten) {
      // Bodies wait for the socket; the frames of other streams need not.
      self->held_back_.push_back(id);
      return NGHTTP2_ERR_DEFERRED;
    }
    const size_t now = std::min(size, stream->unsent_);
    if (now > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (stream->ended_ && now == stream->unsent_) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!stream->own_trailers_.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        const std::vector<nghttp2_nv>& values = Values(stream->own_trailers_);
        if (nghttp2_submit_trailer(session, id, values.data(), values.size()) !=
            0) {
          return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
      }
    }
    return static_cast<ssize_t>(now);
  }

  static int SendBody(nghttp2_session* /*session*/, nghttp2_frame* frame,
                      const uint8_t* head, size_t size,
                      nghttp2_data_source* source, void* data) {
    Connection* const self = Of(data);
    auto* const stream = static_cast<Stream*>(source->ptr);
    self->CopyOut({reinterpret_cast<const char*>(head), 9});
    stream->unsent_ -= size;
    while (size > 0) {
      Slice& front = stream->body_[stream->body_first_];
      const size_t now = std::min(size, front.size());
      if (now <= kCopied) {
        self->CopyOut(front.bytes().substr(0, now));
        front.RemovePrefix(now);
      } else {
        self->out_bytes_ += now;
        self->out_total_ += now;
        self->out_.push_back(now == front.size() ? std::move(front)
                                                 : front.TakeFront(now));
        self->chunk_open_ = false;
      }
      size -= now;
      if (stream->body_[stream->body_first_].empty()) ++stream->body_first_;
    }
    if (stream->body_first_ == stream->body_.size()) {
      stream->body_.clear();
      stream->body_first_ = 0;
      stream->tail_open_ = false;
      stream->tail_.Clear();
    } else if (stream->body_first_ == kDropTogether) {
      stream->body_.erase(stream->body_.begin(),
                          stream->body_.begin() + kDropTogether);
      stream->body_first_ = 0;
    }
    if (stream->was_full_ && stream->unsent_ < self->options_.low_water) {
      stream->was_full_ = false;
      if (stream->user_ != nullptr && !stream->reset_) {
        stream->user_->OnSent(*stream);
      }
    }
    return 0;
  }

  static nghttp2_session_callbacks* Make() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks,
                                                          &OnBeginFrame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
                                                            &OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &OnHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &OnFrame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
                                                              &OnDataChunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                           &OnStreamClose);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks,
                                                         &OnFrameSent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks,
                                                             &OnFrameNotSent);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
        callbacks, &OnInvalidFrame);
    nghttp2_session_callbacks_set_error_callback2(callbacks, &OnError);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, &SendBody);
    return callbacks;
  }

  // nghttp2's memory is the recycler's, with the size before each block; but
  // for what each connection has one of, and mostly does not use.
  static constexpr size_t kMostRecycled = 8 << 10;
  static constexpr size_t kSizeBefore = alignof(std::max_align_t);
  static void* Allocate(size_t size, void* /*data*/) {
    auto* const block = static_cast<char*>(
        size > kMostRecycled ? ::operator new(size + kSizeBefore)
                             : Recycler::Allocate(size + kSizeBefore));
    std::memcpy(block, &size, sizeof size);
    return block + kSizeBefore;
  }
  static size_t SizeOf(void* memory) {
    size_t size = 0;
    std::memcpy(&size, static_cast<char*>(memory) - kSizeBefore, sizeof size);
    return size;
  }
  static void Free(void* memory, void* /*data*/) {
    if (memory == nullptr) return;
    const size_t size = SizeOf(memory);
    void* const block = static_cast<char*>(memory) - kSizeBefore;
    if (size > kMostRecycled) return ::operator delete(block);
    Recycler::Free(block, size + kSizeBefore);
  }
  static void* AllocateZeroed(size_t count, size_t size, void* data) {
    void* const memory = Allocate(count * size, data);
    std::memset(memory, 0, count * size);
    return memory;
  }
  static void* Reallocate(void* memory, size_t size, void* data) {
    void* const larger = Allocate(size, data);
    if (memory != nullptr) {
      std::memcpy(larger, memory, std::min(size, SizeOf(memory)));
      Free(memory, data);
    }
    return larger;
  }

  static nghttp2_option* MakeOptions() {
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, 1);
    // Go does not encode a space at the end of grpc-message.
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    // The budget holds resets, too.
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX, UINT64_MAX);
    nghttp2_option_set_max_outbound_ack(option, kMostAcks);
    // An upper bound of what it takes, which nghttp2 makes of the fields.
    nghttp2_option_set_max_send_header_block_length(option, kMostFields);
    return option;
  }
};

// Stream.

void Stream::Answer(const Fields& fields, bool end) {
  if (answered_ || reset_) return;
  answered_ = true;
  ended_ = end;
  const std::vector<nghttp2_nv>& values = Values(fields);
  nghttp2_data_provider body;
  body.source.ptr = this;
  body.read_callback = &Callbacks::ReadBody;
  nghttp2_submit_response(connection_->session_, id_, values.data(),
                          values.size(), end ? nullptr : &body);
  connection_->Touch();
}

void Stream::Send(Slice bytes) {
  if (ended_ || reset_ || bytes.empty()) return;
  unsent_ += bytes.size();
  if (unsent_ >= connection_->options_.low_water) was_full_ = true;
  body_.push_back(std::move(bytes));
  tail_open_ = false;
  if (deferred_) {
    deferred_ = false;
    nghttp2_session_resume_data(connection_->session_, id_);
  }
  connection_->Touch();
}

void Stream::SendCopy(absl::string_view bytes) {
  if (ended_ || reset_ || bytes.empty()) return;
  if (unsent_ == 0 || bytes.size() > kJoined) return Send(Slice::Copy(bytes));
  if (!tail_open_ || tail_.capacity() - tail_.size() < bytes.size()) {
    tail_ = Buffer();
    tail_.Reserve(std::clamp(unsent_, bytes.size(), kChunk));
    tail_.Append(bytes);
    Send(tail_.Share());
    tail_open_ = true;
    return;
  }
  tail_.Append(bytes);
  body_.back().Extend(bytes.size());
  unsent_ += bytes.size();
  if (unsent_ >= connection_->options_.low_water) was_full_ = true;
  connection_->Touch();
}

void Stream::End() {
  if (ended_ || reset_) return;
  ended_ = true;
  if (deferred_) {
    deferred_ = false;
    nghttp2_session_resume_data(connection_->session_, id_);
  }
  connection_->Touch();
}

void Stream::EndWith(Fields trailers) {
  if (ended_ || reset_) return;
  own_trailers_ = std::move(trailers);
  End();
}

void Stream::Reset(uint32_t code) {
  if (reset_) return;
  reset_ = true;
  nghttp2_submit_rst_stream(connection_->session_, NGHTTP2_FLAG_NONE, id_,
                            code);
  connection_->Touch();
}

void Stream::Consume(size_t bytes) {
  if (bytes == 0) return;
  nghttp2_session_consume_stream(connection_->session_, id_, bytes);
  connection_->Touch();
}

void Stream::Grant(size_t bytes) {
  if (bytes == 0 || reset_ || peer_ended_) return;
  nghttp2_submit_window_update(
      connection_->session_, NGHTTP2_FLAG_NONE, id_,
      static_cast<int32_t>(std::min<size_t>(bytes, 0x7fffffff - (1 << 20))));
  connection_->Touch();
}

void Stream::GrowWindow(uint32_t window) {
  if (reset_ || peer_ended_) return;
  const int32_t now = nghttp2_session_get_stream_effective_local_window_size(
      connection_->session_, id_);
  if (now < 0 || static_cast<uint32_t>(now) >= window) return;
  nghttp2_session_set_local_window_size(connection_->session_,
                                        NGHTTP2_FLAG_NONE, id_,
                                        static_cast<int32_t>(window));
  connection_->Touch();
}

// Connection.

Connection* Connection::Create(Loop* loop, int fd, SSL* ssl,
                               const ConnectionOptions* options,
                               ConnectionOwner* owner) {
  auto* const connection = new Connection(loop, fd, ssl, options, owner);
  connection->Start();
  return connection;
}

Connection::Connection(Loop* loop, int fd, SSL* ssl,
                       const ConnectionOptions* options, ConnectionOwner* owner)
    : loop_(loop),
      fd_(fd),
      ssl_(ssl),
      options_(*options),
      owner_(owner),
      budget_(options->budget),
      budget_at_(loop->now()),
      last_read_(loop->now()),
      idle_since_(loop->now()),
      opened_(loop->now()) {}

Connection::~Connection() {
  loop_->Forget(this);
  if (check_.has_value()) loop_->Cancel(*check_);
  if (notice_.has_value()) loop_->Cancel(*notice_);
  if (watched_ != 0) loop_->Unwatch(fd_, this);
  nghttp2_session_del(session_);
  SSL_free(ssl_);
  close(fd_);
}

void Connection::Start() {
  // Whoever creates it does not know it yet, and is told when the turn ends.
  const auto fail = [this](std::string words) {
    end_ = ConnectionEnd::kError;
    words_ = std::move(words);
    closing_ = true;
    Touch();
  };
  if (ssl_ != nullptr && SSL_set_fd(ssl_, fd_) != 1) {
    return fail("no memory for TLS");
  }
  watched_ = EPOLLIN;
  if (!options_.server) watched_ |= EPOLLOUT;
  if (!loop_->Watch(fd_, watched_, this)) {
    watched_ = 0;
    return fail(ErrnoText("cannot watch a socket"));
  }
  ArmCheck();
  if (!options_.server) return;
  if (ssl_ != nullptr) {
    state_ = State::kHandshake;
    return;
  }
  Begin();
}

void Connection::Begin() {
  state_ = State::kOpen;
  static nghttp2_session_callbacks* const callbacks = Callbacks::Make();
  static nghttp2_option* const option = Callbacks::MakeOptions();
  static nghttp2_mem memory = {nullptr, &Callbacks::Allocate, &Callbacks::Free,
                               &Callbacks::AllocateZeroed,
                               &Callbacks::Reallocate};
  std::vector<nghttp2_settings_entry> settings = {
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options_.stream_window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options_.max_field_bytes},
  };
  if (options_.server) {
    nghttp2_session_server_new3(&session_, callbacks, this, option, &memory);
    settings.push_back(
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options_.max_streams});
    // Or nghttp2 keeps a tree of what every stream depends on.
    settings.push_back({NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1});
  } else {
    nghttp2_session_client_new3(&session_, callbacks, this, option, &memory);
    settings.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
  }
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(),
                          settings.size());
  nghttp2_session_set_local_window_size(
      session_, NGHTTP2_FLAG_NONE, 0,
      static_cast<int32_t>(options_.connection_window));
  Touch();
}

void Connection::Shake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &protocol, &size);
    if (size != 2 || std::memcmp(protocol, "h2", 2) != 0) {
      return EndSoon(ConnectionEnd::kHandshake,
                     "the peer does not speak HTTP/2 over TLS (ALPN)");
    }
    if (options_.check_peer != nullptr) {
      std::string wrong = options_.check_peer(ssl_);
      if (!wrong.empty()) {
        return EndSoon(ConnectionEnd::kHandshake, std::move(wrong));
      }
    }
    WatchFor(EPOLLIN);
    return Begin();
  }
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return WatchFor(EPOLLIN);
    case SSL_ERROR_WANT_WRITE:
      return WatchFor(EPOLLIN | EPOLLOUT);
    default:
      return EndSoon(ConnectionEnd::kHandshake, TlsFailure());
  }
}

std::string Connection::TlsFailure() const {
  if (options_.explain_handshake != nullptr) {
    std::string words = options_.explain_handshake(ssl_);
    if (!words.empty()) return words;
  }
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "the peer left during the TLS handshake"
                           : absl::StrCat("TLS: ", reason);
}

bool Connection::CanOpen() const {
  return state_ == State::kOpen && ready_ && !going_away_ && !closing_ &&
         stream_count_ < peer_max_streams() &&
         nghttp2_session_check_request_allowed(session_) != 0;
}

size_t Connection::peer_max_streams() const {
  return nghttp2_session_get_remote_settings(
      session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

Stream* Connection::NewStream(int32_t id) {
  auto* const stream = new Stream(this);
  stream->id_ = id;
  stream->opened_ = loop_->now();
  stream->next_ = streams_;
  stream->link_ = &streams_;
  if (streams_ != nullptr) streams_->link_ = &stream->next_;
  streams_ = stream;
  ++stream_count_;
  return stream;
}

Stream* Connection::Open(const Fields& fields, bool end, StreamUser* user) {
  Stream* const stream = NewStream(-1);
  stream->user_ = user;
  stream->ended_ = end;
  const std::vector<nghttp2_nv>& values = Values(fields);
  nghttp2_data_provider body;
  body.source.ptr = stream;
  body.read_callback = &Callbacks::ReadBody;
  // Its errors are those of memory, and of ids that CanOpen has ruled out.
  stream->id_ =
      nghttp2_submit_request(session_, nullptr, values.data(), values.size(),
                             end ? nullptr : &body, stream);
  // That was the last id there is.
  if (nghttp2_session_get_next_stream_id(session_) > INT32_MAX) GoAway();
  Touch();
  return stream;
}

void Connection::CloseStream(Stream* stream, const StreamEnd& end) {
  *stream->link_ = stream->next_;
  if (stream->next_ != nullptr) stream->next_->link_ = stream->link_;
  --stream_count_;
  if (stream_count_ == 0) idle_since_ = loop_->now();
  if (stream->user_ != nullptr) stream->user_->OnClosed(*stream, end);
  delete stream;
  if (!told_) owner_->OnRoom(*this);
}

bool Connection::HasEnded(int32_t id) const {
  // A function is not held to it: its other calls would be lost.
  return options_.server &&
         std::find(ended_.begin(), ended_.end(), id) != ended_.end() && id != 0;
}

bool Connection::IsYoung(const Stream& stream) const {
  return loop_->now() - stream.opened_ < Nanos(options_.young);
}

void Connection::Spend(double cost) {
  budget_ -= cost;
  if (budget_ >= 0 || end_ == ConnectionEnd::kTooMuch) return;
  const int64_t now = loop_->now();
  budget_ = std::min(options_.budget_most,
                     budget_ + static_cast<double>(now - budget_at_) * 1e-9 *
                                   options_.budget_a_second);
  budget_at_ = now;
  if (budget_ >= 0) return;
  end_ = ConnectionEnd::kTooMuch;
  words_ = "the peer sent too many frames that do no work";
  nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
  Touch();
}

void Connection::OnReady(uint32_t events) {
  switch (state_) {
    case State::kConnecting: {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) {
        errno = error;
        return EndSoon(ConnectionEnd::kError, ErrnoText("cannot connect"));
      }
      if ((events & (EPOLLOUT | EPOLLIN)) == 0) return;
      if (ssl_ == nullptr) {
        WatchFor(EPOLLIN);
        return Begin();
      }
      state_ = State::kHandshake;
      return Shake();
    }
    case State::kHandshake:
      return Shake();
    case State::kOpen:
      if ((events & EPOLLOUT) != 0) Touch();
      if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) ReadSome();
      return;
    case State::kEnding:
      if ((events & (EPOLLHUP | EPOLLERR)) != 0) return EndNow(end_, words_);
      return Touch();
    case State::kLinger: {
      const ssize_t size = read(fd_, loop_->buffer(), loop_->buffer_size());
      if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        EndNow(end_, words_);
      }
      return;
    }
    case State::kOver:
      return;
  }
}

ssize_t Connection::ReadSocket(char* to, size_t size) {
  if (ssl_ == nullptr) return read(fd_, to, size);
  size_t taken = 0;
  while (size - taken >= kRecord) {
    ERR_clear_error();
    errno = 0;
    const int result =
        SSL_read(ssl_, to + taken, static_cast<int>(size - taken));
    if (result > 0) {
      taken += static_cast<size_t>(result);
      continue;
    }
    if (taken > 0) break;
    switch (SSL_get_error(ssl_, result)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
      case SSL_ERROR_ZERO_RETURN:
        return 0;
      case SSL_ERROR_SYSCALL:
        return errno == 0 ? 0 : -1;
      default:
        errno = EPROTO;
        return -1;
    }
  }
  return static_cast<ssize_t>(taken);
}

void Connection::ReadSome() {
  for (int i = 0; i < kReadsATurn; ++i) {
    const ssize_t size =
        ReadSocket(loop_->buffer(),
                   small_reads_ ? std::min(kSmallRead, loop_->buffer_size())
                                : loop_->buffer_size());
    if (size < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      return EndSoon(ConnectionEnd::kError,
                     errno == EPROTO && ssl_ != nullptr
                         ? absl::StrCat("cannot receive: ", TlsFailure())
                         : ErrnoText("cannot receive"));
    }
    if (size == 0) {
      if (end_ == ConnectionEnd::kDone && stream_count_ > 0) {
        end_ = ConnectionEnd::kPeerLeft;
      }
      return EndNow(end_,
                    words_.empty() ? "the peer closed the connection" : words_);
    }
    last_read_ = loop_->now();
    bytes_read_ += static_cast<uint64_t>(size);
    const uint64_t before = frames_;
    TakeInput(absl::string_view(loop_->buffer(), static_cast<size_t>(size)));
    small_reads_ = static_cast<size_t>(size) > kSmallRead / 2 &&
                   (frames_ - before) * kSmallFrame > static_cast<size_t>(size);
    if (small_reads_) {
      if (!closing_) Gather();
      return;
    }
    if (state_ != State::kOpen || closing_ ||
        static_cast<size_t>(size) < loop_->buffer_size() / 2) {
      return;
    }
  }
}

// Compares the start of what a client says. False where it is something else.
bool Connection::TakePreface(absl::string_view* bytes) {
  const absl::string_view expected = kPreface.substr(magic_, bytes->size());
  if (absl::StartsWith(*bytes, expected)) {
    magic_ += expected.size();
    return true;
  }
  end_ = ConnectionEnd::kNotHttp2;
  words_ = OtherProtocol(*bytes);
  if (absl::EndsWith(words_, "HTTP/1") && !options_.http1_answer.empty()) {
    CopyOut(options_.http1_answer);
  }
  return false;
}

// Looks at the start of what a server says, which is its SETTINGS. False where
// it is something else, or not known yet to be that.
bool Connection::TakeStart(absl::string_view bytes) {
  const size_t now = std::min(start_.size() - magic_, bytes.size());
  std::memcpy(&start_[magic_], bytes.data(), now);
  magic_ += now;
  const bool whole = magic_ == start_.size();
  if (start_[0] == 0 && (!whole || start_[3] == NGHTTP2_SETTINGS)) return true;
  if (whole) {
    EndSoon(ConnectionEnd::kNotHttp2,
            OtherProtocol({start_.data(), start_.size()}));
  }
  return false;
}

void Connection::TakeInput(absl::string_view bytes) {
  // The preface is no frame, though nghttp2 wants it.
  const size_t magic = magic_;
  if (options_.server && magic_ < kPreface.size() && !TakePreface(&bytes)) {
    return EndSoon(end_, words_);
  }
  const size_t preface = options_.server ? magic_ - magic : 0;
  if (!options_.server && magic_ < start_.size() && !TakeStart(bytes)) return;
  if (preface > 0) {
    if (!Feed(bytes.substr(0, preface))) return;
    bytes.remove_prefix(preface);
  }
  while (!bytes.empty()) {
    int32_t stream = 0;
    size_t length = 0;
    const size_t before = NextData(bytes, &stream, &length);
    if (!Feed(bytes.substr(0, before))) return;
    if (stream != 0) OnStrayData(stream, length);
    bytes.remove_prefix(before);
  }
}

size_t Connection::NextData(absl::string_view bytes, int32_t* stream,
                            size_t* length) {
  size_t at = 0;
  while (at < bytes.size()) {
    if (payload_left_ > 0) {
      const size_t now = std::min(payload_left_, bytes.size() - at);
      payload_left_ -= now;
      at += now;
      continue;
    }
    const size_t now = std::min(head_.size() - head_size_, bytes.size() - at);
    std::memcpy(&head_[head_size_], bytes.data() + at, now);
    head_size_ += now;
    at += now;
    if (head_size_ < head_.size()) break;
    head_size_ = 0;
    payload_left_ =
        static_cast<size_t>(head_[0]) << 16 | head_[1] << 8 | head_[2];
    if (head_[3] != NGHTTP2_DATA) continue;
    const uint32_t id = static_cast<uint32_t>(head_[5]) << 24 | head_[6] << 16 |
                        head_[7] << 8 | head_[8];
    *stream = static_cast<int32_t>(id & 0x7fffffff);
    *length = payload_left_;
    return at;
  }
  return at;
}

void Connection::OnStrayData(int32_t stream, size_t length) {
  if (nghttp2_session_find_stream(session_, stream) != nullptr) return;
  if (HasEnded(stream)) {
    // Nothing may come there (RFC 9113, 5.1).
    nghttp2_session_terminate_session(session_, NGHTTP2_STREAM_CLOSED);
    return;
  }
  // What was under way when this side ended the stream; but empty frames were
  // of no use even then.
  if (length == 0) Spend(1);
}

bool Connection::Feed(absl::string_view bytes) {
  if (bytes.empty()) return true;
  in_session_ = true;
  const ssize_t taken = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  in_session_ = false;
  Touch();
  if (taken >= 0) return !closing_;
  EndSoon(taken == NGHTTP2_ERR_FLOODED ? ConnectionEnd::kTooMuch
                                       : ConnectionEnd::kProtocol,
          nghttp2_strerror(static_cast<int>(taken)));
  return false;
}

void Connection::CopyOut(absl::string_view bytes) {
  out_bytes_ += bytes.size();
  out_total_ += bytes.size();
  while (!bytes.empty()) {
    if (chunk_.capacity() == chunk_.size()) {
      chunk_ = Buffer();
      chunk_.Reserve(kChunk);
      chunk_open_ = false;
    }
    const absl::string_view now =
        bytes.substr(0, chunk_.capacity() - chunk_.size());
    const size_t begin = chunk_.size();
    chunk_.Append(now);
    if (chunk_open_ && !out_.empty()) {
      out_.back().Extend(now.size());
    } else {
      out_.push_back(chunk_.Share(begin));
      chunk_open_ = true;
    }
    bytes.remove_prefix(now.size());
  }
}

// Has nghttp2 make the frames that are due, as far as output may run ahead.
void Connection::Gather() {
  if (session_ == nullptr || state_ != State::kOpen) return;
  in_session_ = true;
  if (out_bytes_ < kMostUnwritten) {
    for (const int32_t id : held_back_) {
      // One that has ended meanwhile is none to go on with.
      nghttp2_session_resume_data(session_, id);
    }
    held_back_.clear();
  }
  while (true) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size <= 0) {
      if (size < 0 && end_ == ConnectionEnd::kDone) {
        end_ = ConnectionEnd::kProtocol;
        words_ = nghttp2_strerror(static_cast<int>(size));
        closing_ = true;
      }
      break;
    }
    CopyOut({reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)});
  }
  in_session_ = false;
}

ssize_t Connection::WriteSocket() {
  if (ssl_ == nullptr) {
    std::array<iovec, kVectors> vectors;
    int count = 0;
    for (size_t i = out_first_; i < out_.size() && count < kVectors; ++i) {
      const Slice& slice = out_[i];
      vectors[count].iov_base = const_cast<char*>(slice.data());
      vectors[count++].iov_len = slice.size();
    }
    msghdr message = {};
    message.msg_iov = vectors.data();
    message.msg_iovlen = static_cast<size_t>(count);
    return sendmsg(fd_, &message, MSG_NOSIGNAL);
  }
  if (record_.empty()) {
    for (size_t i = out_first_; i < out_.size(); ++i) {
      const Slice& slice = out_[i];
      const size_t room = kRecord - record_.size();
      record_.append(slice.data(), std::min(room, slice.size()));
      if (record_.size() == kRecord) break;
    }
  }
  ERR_clear_error();
  errno = 0;
  const int result =
      SSL_write(ssl_, record_.data(), static_cast<int>(record_.size()));
  if (result > 0) {
    record_.clear();
    return result;
  }
  const int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ) {
    errno = EAGAIN;
  } else if (errno == 0 || error == SSL_ERROR_SSL) {
    errno = EPIPE;
  }
  return -1;
}

bool Connection::WriteSome() {
  while (out_bytes_ > 0) {
    const ssize_t written = WriteSocket();
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return false;
      EndNow(ConnectionEnd::kError,
             words_.empty() ? ErrnoText("cannot send") : words_);
      return false;
    }
    Written(static_cast<size_t>(written));
    if (out_bytes_ < kMostUnwritten / 2) Gather();
  }
  return true;
}

void Connection::Written(size_t bytes) {
  bytes_written_ += bytes;
  out_bytes_ -= bytes;
  while (bytes > 0) {
    Slice& front = out_[out_first_];
    if (bytes < front.size()) {
      front.RemovePrefix(bytes);
      break;
    }
    bytes -= front.size();
    front = Slice();
    ++out_first_;
  }
  if (out_first_ < out_.size()) {
    if (out_first_ < kDropTogether) return;
    out_.erase(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(out_first_));
    out_first_ = 0;
    return;
  }
  out_.clear();
  out_first_ = 0;
  chunk_open_ = false;
  if (stream_count_ > 0) return;
  // Connections without calls are many.
  chunk_.Clear();
  std::vector<Slice>().swap(out_);
  std::string().swap(record_);
}

void Connection::WatchFor(uint32_t events) {
  if (watched_ == events) return;
  watched_ = events;
  loop_->Rewatch(fd_, events, this);
}

void Connection::OnTurnEnd() {
  if (state_ == State::kOver) {
    delete this;
    return;
  }
  if (closing_) return EndNow(end_, words_);
  if (state_ == State::kOpen || state_ == State::kEnding) Flush();
}

void Connection::Flush() {
  Gather();
  if (closing_) return EndNow(end_, words_);
  const bool all = WriteSome();
  if (state_ == State::kOver) return;
  if (!all) {
    return WatchFor(out_bytes_ > kMostAsked ? EPOLLOUT : EPOLLIN | EPOLLOUT);
  }
  if (state_ == State::kEnding) return Linger();
  if (nghttp2_session_want_read(session_) == 0 &&
      nghttp2_session_want_write(session_) == 0) {
    if (end_ == ConnectionEnd::kDone && words_.empty()) words_ = "told to go";
    return Linger();
  }
  WatchFor(EPOLLIN);
}

void Connection::EndSoon(ConnectionEnd end, std::string words) {
  end_ = end;
  words_ = std::move(words);
  if (state_ == State::kOver) return;
  if (in_session_) {
    closing_ = true;
    return Touch();
  }
  if (state_ == State::kOpen && (out_bytes_ > 0 || session_ != nullptr) &&
      end != ConnectionEnd::kError && end != ConnectionEnd::kPeerLeft) {
    Gather();
    state_ = State::kEnding;
    return Touch();
  }
  EndNow(end_, words_);
}

void Connection::Linger() {
  if (!options_.server) return EndNow(end_, words_);
  // Closing a socket with unread input resets the connection, and the peer
  // might lose what it was told last (RFC 9112, 9.6).
  if (ssl_ != nullptr) SSL_shutdown(ssl_);
  shutdown(fd_, SHUT_WR);
  state_ = State::kLinger;
  WatchFor(EPOLLIN);
  StreamEnd end;
  end.kind = StreamEnd::Kind::kLost;
  end.why = words_;
  while (streams_ != nullptr) CloseStream(streams_, end);
  if (check_.has_value()) loop_->Cancel(*check_);
  check_ = loop_->After(kLinger, [this] {
    check_.reset();
    EndNow(end_, words_);
  });
}

void Connection::EndNow(ConnectionEnd end, std::string words) {
  if (state_ == State::kOver) return;
  state_ = State::kOver;
  end_ = end;
  words_ = std::move(words);
  if (watched_ != 0) loop_->Unwatch(fd_, this);
  watched_ = 0;
  going_away_ = true;
  while (streams_ != nullptr) {
    StreamEnd lost;
    lost.kind = StreamEnd::Kind::kLost;
    lost.why = words_;
    lost.unprocessed = !options_.server && streams_->sent_at_ > bytes_written_;
    CloseStream(streams_, lost);
  }
  if (!told_) {
    told_ = true;
    owner_->OnClosed(*this, end_, words_);
  }
  Touch();
}

void Connection::GoAway() {
  if (state_ != State::kOpen) {
    if (state_ == State::kConnecting || state_ == State::kHandshake) {
      EndSoon(ConnectionEnd::kDone, "not needed any more");
    }
    return;
  }
  if (last_notice_ || notice_.has_value()) return;
  if (!options_.server) {
    last_notice_ = true;
    going_away_ = true;
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR,
                          nullptr, 0);
    return Touch();
  }
  nghttp2_submit_shutdown_notice(session_);
  Touch();
  notice_ = loop_->After(kNotice, [this] {
    notice_.reset();
    if (state_ != State::kOpen) return;
    last_notice_ = true;
    going_away_ = true;
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session_),
                          NGHTTP2_NO_ERROR, nullptr, 0);
    Touch();
  });
}

void Connection::Close(const std::string& words) {
  if (in_session_) {
    end_ = ConnectionEnd::kClosed;
    words_ = words;
    closing_ = true;
    return Touch();
  }
  EndNow(ConnectionEnd::kClosed, words);
}

void Connection::LookAtTimes() {
  if (state_ != State::kOver && state_ != State::kLinger) ArmCheck();
}

void Connection::ArmCheck() {
  if (check_.has_value()) loop_->Cancel(*check_);
  int64_t next = INT64_MAX;
  const int64_t now = loop_->now();
  const auto at = [&](int64_t since, absl::Duration after) {
    if (after == absl::InfiniteDuration()) return;
    next = std::min(next, std::max(since + Nanos(after), now));
  };
  if (!ready_) at(opened_, options_.handshake_timeout);
  if (ready_) {
    if (!notice_.has_value() && !last_notice_) {
      at(stream_count_ == 0 ? idle_since_ : now, options_.idle_timeout);
      at(opened_, options_.max_age);
    }
    if (ping_waits_) {
      at(last_ping_, options_.ping_timeout);
    } else {
      at(now, options_.ping_after);
    }
  }
  if (next == INT64_MAX) {
    check_.reset();
    return;
  }
  check_ = loop_->After(absl::Nanoseconds(next - now), [this] {
    check_.reset();
    Check();
  });
}

void Connection::Check() {
  const int64_t now = loop_->now();
  if (state_ == State::kOver || state_ == State::kLinger) return;
  if (!ready_ && now - opened_ >= Nanos(options_.handshake_timeout)) {
    return EndNow(ConnectionEnd::kTimeout,
                  state_ == State::kConnecting ? "no connection in time"
                  : state_ == State::kHandshake
                      ? "no TLS handshake in time"
                      : "the peer did not begin to speak HTTP/2 in time");
  }
  const absl::Duration idle_timeout = options_.idle_timeout;
  const absl::Duration max_age = options_.max_age;
  if (ready_ && stream_count_ == 0 &&
      idle_timeout != absl::InfiniteDuration() &&
      now - idle_since_ >= Nanos(idle_timeout) &&
      end_ == ConnectionEnd::kDone) {
    end_ = ConnectionEnd::kIdle;
    words_ = "no call for too long";
    GoAway();
  } else if (ready_ && max_age != absl::InfiniteDuration() &&
             now - opened_ >= Nanos(max_age)) {
    GoAway();
  }
  if (ping_waits_ && now - last_ping_ >= Nanos(options_.ping_timeout)) {
    if (last_read_ < last_ping_) {
      return EndNow(ConnectionEnd::kTimeout, "the peer does not answer a PING");
    }
    ping_waits_ = false;
  }
  if (ready_ && stream_count_ > 0 && !ping_waits_ &&
      options_.ping_after != absl::InfiniteDuration() &&
      now - last_read_ >= Nanos(options_.ping_after) &&
      (last_ping_ == 0 || now - last_ping_ >= Nanos(options_.ping_every))) {
    last_ping_ = now;
    ping_waits_ = true;
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    Touch();
  }
  ArmCheck();
}

}  // namespace fncache::http2
