// SPDX-License-Identifier: Apache-2.0
#include "http2/stream.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "http2/stream_host.h"

namespace fncache::http2 {
namespace {

// Slices up to this size are copied behind what was written before, instead of
// being an entry of their own in writev.
constexpr size_t kCopied = 256;
// Pieces of bodies up to the first size are joined into blocks of the second.
constexpr size_t kJoined = 1 << 10;
constexpr size_t kChunk = 4 << 10;
// The number of sent slices that are removed at a time.
constexpr size_t kDropTogether = 64;

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
    nv.flags =
        field.never_indexed ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
    out.push_back(nv);
  }
  return out;
}

}  // namespace

const char* ErrorCodeName(uint32_t code) {
  return nghttp2_http2_strerror(code);
}

// Gives nghttp2 a stream's body, piece by piece.
struct Stream::BodyReader {
  static ssize_t Read(nghttp2_session* session, int32_t id, uint8_t* /*buffer*/,
                      size_t size, uint32_t* flags, nghttp2_data_source* source,
                      void* /*data*/) {
    auto* const stream = static_cast<Stream*>(source->ptr);
    const bool goes_on =
        !stream->ended_ || stream->last_reset_ || stream->reset_;
    if (stream->unsent_ == 0 && goes_on) {
      stream->deferred_ = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    StreamHost& host = stream->host_;
    if (host.output.full()) {
      // Bodies wait for the socket; the frames of other streams need not.
      host.held_back.push_back(id);
      return NGHTTP2_ERR_DEFERRED;
    }
    const size_t now = std::min(size, stream->unsent_);
    if (now > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (stream->ended_ && now == stream->unsent_ && !stream->last_reset_) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!stream->own_trailers_.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        const std::vector<nghttp2_nv>& values = Values(stream->own_trailers_);
        if (nghttp2_submit_trailer(session, id, values.data(), values.size()) !=
            0) {
          return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        stream->own_trailers_.Clear();
      }
    }
    return static_cast<ssize_t>(now);
  }
};

Connection& Stream::connection() const { return *host_.connection; }

void Stream::Ask(const Fields& fields, bool end) {
  ended_ = end;
  const std::vector<nghttp2_nv>& values = Values(fields);
  nghttp2_data_provider body;
  body.source.ptr = this;
  body.read_callback = &BodyReader::Read;
  // Its errors are those of memory, and of ids that CanOpen has ruled out.
  id_ = nghttp2_submit_request(host_.session, nullptr, values.data(),
                               values.size(), end ? nullptr : &body, this);
  host_.Touch();
}

void Stream::Answer(const Fields& fields, bool end) {
  if (answered_ || reset_) return;
  answered_ = true;
  ended_ = end;
  const std::vector<nghttp2_nv>& values = Values(fields);
  nghttp2_data_provider body;
  body.source.ptr = this;
  body.read_callback = &BodyReader::Read;
  nghttp2_submit_response(host_.session, id_, values.data(), values.size(),
                          end ? nullptr : &body);
  host_.Touch();
}

void Stream::Send(Slice bytes) {
  if (ended_ || reset_ || bytes.empty()) return;
  unsent_ += bytes.size();
  if (unsent_ >= host_.low_water) was_full_ = true;
  body_.push_back(std::move(bytes));
  tail_open_ = false;
  Resume();
  host_.Touch();
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
  if (unsent_ >= host_.low_water) was_full_ = true;
  host_.Touch();
}

void Stream::End() {
  if (ended_ || reset_) return;
  ended_ = true;
  Resume();
  host_.Touch();
}

void Stream::EndWith(Fields trailers) {
  if (ended_ || reset_) return;
  own_trailers_ = std::move(trailers);
  End();
}

void Stream::Reset(uint32_t code) {
  if (reset_) return;
  reset_ = true;
  nghttp2_submit_rst_stream(host_.session, NGHTTP2_FLAG_NONE, id_, code);
  // Nothing more is sent, which may be long before its peer takes the reset.
  ForgetBody();
  unsent_ = 0;
  own_trailers_.Clear();
  host_.Touch();
}

void Stream::ResetWhenSent(uint32_t code) {
  if (ended_ || reset_) return;
  const bool waits = unsent_ > 0 || (answered_ && sent_at_ == UINT64_MAX);
  if (!waits) return Reset(code);
  ended_ = true;
  last_reset_ = code;
}

bool Stream::blocked() const {
  return nghttp2_session_get_stream_remote_window_size(host_.session, id_) <= 0;
}

void Stream::OnHeadersSent() {
  if (last_reset_ && unsent_ == 0) Reset(*last_reset_);
}

void Stream::ForgetBody() {
  body_.clear();
  body_first_ = 0;
  tail_open_ = false;
  tail_.Clear();
}

void Stream::Consume(size_t bytes) {
  if (bytes == 0) return;
  nghttp2_session_consume_stream(host_.session, id_, bytes);
  host_.Touch();
}

void Stream::Grant(size_t bytes) {
  if (bytes == 0 || reset_ || peer_ended_) return;
  nghttp2_submit_window_update(
      host_.session, NGHTTP2_FLAG_NONE, id_,
      static_cast<int32_t>(std::min<size_t>(bytes, 0x7fffffff - (1 << 20))));
  host_.Touch();
}

void Stream::ShiftWindow(int64_t change) {
  window_shift_ += change;
  if (window_shift_ >= 0) return;
  Grant(static_cast<size_t>(-window_shift_));
  window_shift_ = 0;
}

void Stream::GrowWindow(uint32_t window) {
  if (reset_ || peer_ended_) return;
  const int32_t now = nghttp2_session_get_stream_effective_local_window_size(
      host_.session, id_);
  if (now < 0 || static_cast<uint32_t>(now) >= window) return;
  nghttp2_session_set_local_window_size(host_.session, NGHTTP2_FLAG_NONE, id_,
                                        static_cast<int32_t>(window));
  host_.Touch();
}

void Stream::Resume() {
  if (!deferred_) return;
  deferred_ = false;
  nghttp2_session_resume_data(host_.session, id_);
}

void Stream::WriteBody(absl::string_view head, size_t size) {
  Output& output = host_.output;
  output.Copy(head);
  unsent_ -= size;
  while (size > 0) {
    Slice& front = body_[body_first_];
    const size_t now = std::min(size, front.size());
    if (now <= kCopied) {
      output.Copy(front.bytes().substr(0, now));
      front.RemovePrefix(now);
    } else {
      output.Add(now == front.size() ? std::move(front) : front.TakeFront(now));
    }
    size -= now;
    if (body_[body_first_].empty()) ++body_first_;
  }
  if (body_first_ == body_.size()) {
    ForgetBody();
  } else if (body_first_ == kDropTogether) {
    body_.erase(body_.begin(), body_.begin() + kDropTogether);
    body_first_ = 0;
  }
  if (last_reset_ && unsent_ == 0) Reset(*last_reset_);
  if (was_full_ && unsent_ < host_.low_water) {
    was_full_ = false;
    if (user_ != nullptr && !reset_) user_->OnSent(*this);
  }
}

}  // namespace fncache::http2
