// SPDX-License-Identifier: Apache-2.0
// Connection's session: what nghttp2 calls back as it reads and makes frames.
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "http2/connection.h"
#include "http2/field_value.h"

namespace fncache::http2 {
namespace {

// Bytes of a frame's head (RFC 9113, 4.1).
constexpr size_t kFrameHead = 9;
// Out of reach: the budget ends before.
constexpr size_t kMostAcks = 1 << 20;
constexpr size_t kMostFields = 256 << 10;
// The fields beyond the bound of their list that cost as much as one frame.
constexpr uint32_t kFieldsDropped = 64;
constexpr uint32_t kNoMaxStreams = INT32_MAX;

// As nghttp2 takes it, and copies.
nghttp2_mem MemoryFunctions(SessionMemory* memory) {
  nghttp2_mem functions;
  functions.mem_user_data = memory;
  functions.malloc = [](size_t size, void* self) {
    return static_cast<SessionMemory*>(self)->Allocate(size);
  };
  functions.calloc = [](size_t count, size_t size, void* self) {
    void* const block =
        static_cast<SessionMemory*>(self)->Allocate(count * size);
    std::memset(block, 0, count * size);
    return block;
  };
  functions.realloc = [](void* block, size_t size, void* self) {
    return static_cast<SessionMemory*>(self)->Reallocate(block, size);
  };
  functions.free = [](void* block, void* self) {
    static_cast<SessionMemory*>(self)->Free(block);
  };
  return functions;
}

// The cost of a reset of a young request that was complete. Its caller may just
// be in a hurry, such as one that cancels 500 calls a second.
constexpr double kCompleteReset = 1.0 / 8;

// Up to kManyFields fields are free, because a usual block has dozens. Beyond
// them each kFieldsAFrame fields cost as much as a frame, because a field may
// take only one byte.
constexpr size_t kManyFields = 256;
constexpr size_t kFieldsAFrame = 128;
// Fields are work, so they also count as small frames. After many small frames
// other connections are served.
constexpr size_t kFieldsASmallFrame = 16;

// More than a field takes beside its name and value (RFC 7541, 6).
constexpr size_t kFieldOverhead = 16;

// The same for streams whose windows change.
constexpr size_t kStreamsAFrame = 64;
constexpr size_t kStreamsASmallFrame = 8;

absl::string_view WordsOf(uint32_t code) {
  if (code != NGHTTP2_COMPRESSION_ERROR) return ErrorCodeName(code);
  // nghttp2 takes no string of HPACK beyond that.
  return "COMPRESSION_ERROR, or a name or value of metadata is beyond 64 KiB";
}

}  // namespace

// nghttp2's callbacks.
struct Connection::Callbacks {
  static Connection* Of(void* data) { return static_cast<Connection*>(data); }
  static Stream* Find(nghttp2_session* session, int32_t id) {
    return static_cast<Stream*>(
        nghttp2_session_get_stream_user_data(session, id));
  }

  static int OnBeginFrame(nghttp2_session* session,
                          const nghttp2_frame_hd* head, void* data) {
    Connection* const self = Of(data);
    ++self->frames_;
    self->complaint_.clear();
    switch (head->type) {
      case NGHTTP2_PRIORITY:
        // nghttp2 does not check those without effect.
        if (head->stream_id == 0) {
          nghttp2_session_terminate_session(session, NGHTTP2_PROTOCOL_ERROR);
        }
        self->Spend(1);
        break;
      case NGHTTP2_HEADERS:
        if (self->HasEnded(head->stream_id)) {
          nghttp2_session_terminate_session(session, NGHTTP2_STREAM_CLOSED);
        } else if (IsForNobody(*self, head->stream_id)) {
          self->Spend(1);
        }
        break;
      case NGHTTP2_CONTINUATION:
        // nghttp2 bounds how many a header block has.
        break;
      case NGHTTP2_DATA:
        // How much of it is padding is not known yet (see OnFrame).
        if (self->HasEnded(head->stream_id)) {
          nghttp2_session_terminate_session(session, NGHTTP2_STREAM_CLOSED);
        }
        break;
      case NGHTTP2_RST_STREAM:
        // The reset of a present stream is counted when the stream ends.
        if (Find(session, head->stream_id) == nullptr) self->Spend(1);
        break;
      case NGHTTP2_PING:
        // nghttp2 also takes an answer to no PING.
        if ((head->flags & NGHTTP2_FLAG_ACK) == 0) {
          self->SpendOfSent();
        } else if (!self->ping_waits_) {
          self->Spend(1);
        }
        break;
      case NGHTTP2_WINDOW_UPDATE:
        self->SpendOfSent();
        break;
      case NGHTTP2_SETTINGS:
        // An answer to none is an error to nghttp2.
        if ((head->flags & NGHTTP2_FLAG_ACK) == 0) {
          self->SpendOfSettings(head->length);
        }
        break;
      default:
        self->Spend(1);
    }
    return 0;
  }

  // Whether a header block on that id opens no stream and belongs to no present
  // stream. nghttp2 decodes it without a report.
  static bool IsForNobody(const Connection& self, int32_t id) {
    nghttp2_session* const session = self.host_.session;
    if (Find(session, id) != nullptr) return false;
    return !self.options_.server || self.last_notice_ ||
           id <= nghttp2_session_get_last_proc_stream_id(session);
  }

  static int OnBeginHeaders(nghttp2_session* session,
                            const nghttp2_frame* frame, void* data) {
    Connection* const self = Of(data);
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      if (self->stream_count_ >= self->max_streams_) {
        self->Spend(1);
        self->refused_fields_ = 0;
        self->owner_->OnRefused(*self);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE,
                                  frame->hd.stream_id, kRefusedStream);
        return 0;
      }
      Stream* const stream = self->NewStream(frame->hd.stream_id);
      nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                           stream);
      // One that was opened before the peer knew of another window gets that
      // as it does.
      stream->first_window_ =
          std::min(self->AcknowledgedWindow(), self->stream_window_);
      stream->window_shift_ = self->stream_window_ - stream->first_window_;
    } else if (Stream* const stream = Find(session, frame->hd.stream_id)) {
      stream->list_size_ = 0;
      stream->block_fields_ = 0;
      stream->oversized_ = false;
    }
    return 0;
  }

  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame,
                      const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t flags,
                      void* data) {
    Connection* const self = Of(data);
    // Or nghttp2 went on with what it has been given.
    if (self->end_ == ConnectionEnd::kTooMuch) {
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    Stream* const stream = Find(session, frame->hd.stream_id);
    self->reported_bytes_ += name_size + value_size + kFieldOverhead;
    self->SpendOfField(stream == nullptr ? ++self->refused_fields_
                                         : ++stream->block_fields_);
    if (stream == nullptr) return 0;
    const size_t size = name_size + value_size + 32;
    const size_t before = stream->list_size_;
    stream->list_size_ += size;
    const size_t limit = self->options_.max_field_bytes;
    if (stream->list_size_ > limit) {
      stream->oversized_ = true;
      // Decoding what is not kept is work without use.
      if (before / limit != stream->list_size_ / limit ||
          ++stream->dropped_fields_ % kFieldsDropped == 0) {
        self->Spend(1);
      }
      return 0;
    }
    // A client's first block after those of 1xx answers is its answer.
    const bool trailers = frame->headers.cat == NGHTTP2_HCAT_HEADERS &&
                          (self->options_.server || stream->answered_);
    if (trailers && !stream->keeps_trailers_) return 0;
    Fields& fields = trailers ? stream->trailers_ : stream->fields_;
    fields.Add(
        {reinterpret_cast<const char*>(name), name_size},
        WithoutBlanks({reinterpret_cast<const char*>(value), value_size}),
        (flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0);
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
        self->Spend(1);
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
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) return 0;
        if (!self->ready_) {
          self->ready_ = true;
          self->ArmCheck();
          self->owner_->OnReady(*self);
        } else if (!self->options_.server) {
          // It may allow more streams now.
          self->owner_->OnCapacity(*self);
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
      case NGHTTP2_WINDOW_UPDATE:
        if (frame->hd.stream_id == 0 && self->blocked_since_ != 0) {
          self->LookAtWindow();
          self->owner_->OnCapacity(*self);
        }
        return 0;
      case NGHTTP2_RST_STREAM:
        if (Stream* const stream = Find(session, frame->hd.stream_id)) {
          stream->peer_reset_ = true;
        }
        return 0;
      case NGHTTP2_DATA:
        // `padlen` counts the byte that says it, and is 0 without padding.
        if (frame->hd.length == frame->data.padlen &&
            (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) {
          self->Spend(1);
        }
        break;
      case NGHTTP2_HEADERS:
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
    self->budget_.EarnBytes(size);
    Stream* const stream = Find(session, id);
    if (stream == nullptr) return 0;
    if (stream->user_ == nullptr) {
      // No user wants these bytes, so the window is reopened at once.
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
      self->served_ = true;
    } else if (stream->reset_) {
      end.kind = StreamEnd::Kind::kReset;
    } else {
      end.kind = StreamEnd::Kind::kPeerReset;
      end.unprocessed = !self->options_.server && code == kRefusedStream;
      // nghttp2 ends it as if it had been refused.
      end.went_away = end.unprocessed && !stream->peer_reset_;
    }
    const bool complete = stream->peer_ended_;
    if (complete || stream->peer_reset_) {
      self->ended_[self->next_ended_++ % self->ended_.size()] = id;
    }
    // When a client resets a stream, the function may have answered before it
    // got the reset: with headers, trailers, a reset.
    const bool cut = stream->reset_ && !self->options_.server;
    const bool served = complete || stream->passes_;
    if (cut || (stream->answered_ && stream->end_sent_)) {
      self->budget_.EarnCall();
    } else if (self->options_.server && !stream->reset_ && !stream->answered_ &&
               (!served || self->IsYoung(*stream))) {
      self->Spend(served ? kCompleteReset : 1);
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
                                      self->complaint_.empty()
                                          ? WordsOf(frame->goaway.error_code)
                                          : self->complaint_);
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
      stream->sent_at_ = self->host_.output.total();
      stream->OnHeadersSent();
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
    // It may concern one stream, and show what that carried.
    Of(data)->complaint_.assign(text, size);
    return 0;
  }

  // The most body bytes of the next frame. nghttp2 allocates a buffer for all
  // of them without using it, and a server has many connections. (nghttp2 uses
  // that buffer for header blocks as well. So a peer that lowers its limit
  // later may get a frame that is too large for it.)
  static ssize_t FrameLength(nghttp2_session* session, uint8_t /*type*/,
                             int32_t id, int32_t /*connection_window*/,
                             int32_t /*stream_window*/, uint32_t taken,
                             void* data) {
    const Connection& self = *Of(data);
    const Stream* const stream = Find(session, id);
    if (self.options_.server || stream == nullptr) return kUsualFrame;
    const size_t largest = std::min(taken, self.options_.largest_frame);
    return static_cast<ssize_t>(
        std::max<size_t>(kUsualFrame, std::min(stream->unsent_, largest)));
  }

  static int WriteBody(nghttp2_session* /*session*/, nghttp2_frame* /*frame*/,
                       const uint8_t* head, size_t size,
                       nghttp2_data_source* source, void* data) {
    auto* const stream = static_cast<Stream*>(source->ptr);
    // Bodies are cut at the ends of windows, and into frames, which are larger.
    const bool cut = size < stream->unsent_;
    if (size > 0) Of(data)->budget_.EarnSent(size, cut);
    stream->WriteBody({reinterpret_cast<const char*>(head), kFrameHead}, size);
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
    nghttp2_session_callbacks_set_send_data_callback(callbacks, &WriteBody);
    nghttp2_session_callbacks_set_data_source_read_length_callback(
        callbacks, &FrameLength);
    return callbacks;
  }

  static nghttp2_option* MakeOptions() {
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, 1);
    // Or it would reset the stream for blanks around a value, which Go sends
    // where a grpc-message ends in a space. OnHeader strips them.
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    // The budget limits resets, too.
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX, UINT64_MAX);
    nghttp2_option_set_max_outbound_ack(option, kMostAcks);
    // An upper bound of what it takes, which nghttp2 makes of the fields.
    nghttp2_option_set_max_send_header_block_length(option, kMostFields);
    return option;
  }
};

void Connection::SpendOfField(uint32_t n) {
  if (n <= kManyFields || n % kFieldsAFrame != 0) return;
  frames_ += kFieldsAFrame / kFieldsASmallFrame;
  Spend(1);
}

// nghttp2 walks all streams, as their windows may change.
void Connection::SpendOfSettings(size_t length) {
  if (length == 0) return Spend(1);
  frames_ += stream_count_ / kStreamsASmallFrame;
  Spend(1 + static_cast<double>(stream_count_) / kStreamsAFrame);
}

// nghttp2 silently decodes the remaining header blocks of ended or malformed
// streams, and a field may take only one byte. On a client's side these answer
// calls that it has reset itself, so its peer pays nothing. Other connections
// are served in between all the same.
void Connection::SpendOfUnheard() {
  const size_t reported = std::exchange(reported_bytes_, 0);
  const size_t came = heads_.TakeBlockBytes();
  if (came <= reported + kManyFields) return;
  const size_t unheard = came - reported - kManyFields;
  frames_ += unheard / kFieldsASmallFrame;
  if (options_.server) Spend(static_cast<double>(unheard) / kFieldsAFrame);
}

void Connection::TellMaxStreams(std::string* frame) const {
  // A setting is a number of two bytes and a value of four (RFC 9113, 6.5.1).
  for (size_t at = kFrameHead; at + 6 <= frame->size(); at += 6) {
    if ((*frame)[at] != 0 ||
        (*frame)[at + 1] != NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) {
      continue;
    }
    for (size_t i = 0; i < 4; ++i) {
      (*frame)[at + 2 + i] = static_cast<char>(max_streams_ >> (24 - 8 * i));
    }
  }
}

void Connection::MakeSession() {
  static nghttp2_session_callbacks* const callbacks = Callbacks::Make();
  static nghttp2_option* const option = Callbacks::MakeOptions();
  std::vector<nghttp2_settings_entry> settings = {
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options_.stream_window},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE,
       std::max(options_.largest_frame, kUsualFrame)},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options_.max_field_bytes},
  };
  nghttp2_session*& session = host_.session;
  nghttp2_mem memory = MemoryFunctions(&memory_);
  if (options_.server) {
    nghttp2_session_server_new3(&session, callbacks, this, option, &memory);
    // nghttp2 ends the connection, and all its calls, if the peer opens more
    // streams than announced. So nghttp2 gets no limit (see TellMaxStreams).
    settings.push_back(
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kNoMaxStreams});
    max_streams_ = options_.max_streams;
    // Otherwise nghttp2 keeps a tree of the streams' dependencies.
    settings.push_back({NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1});
  } else {
    nghttp2_session_client_new3(&session, callbacks, this, option, &memory);
    settings.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
  }
  memory_.EndSetUp();
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(),
                          settings.size());
  nghttp2_session_set_local_window_size(
      session, NGHTTP2_FLAG_NONE, 0,
      static_cast<int32_t>(options_.connection_window));
}

}  // namespace fncache::http2
