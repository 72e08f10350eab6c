// SPDX-License-Identifier: Apache-2.0
#include "runner/load/wire/http2_connection.h"

#include <errno.h>
#include <limits.h>
#include <nghttp2/nghttp2.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace fncache::runner::load::wire {
namespace {

// Frame types and flags of RFC 9113, section 6.
constexpr uint8_t kData = 0, kHeaders = 1, kPriority = 2, kRstStream = 3,
                  kSettings = 4, kPing = 6, kGoAway = 7, kWindowUpdate = 8,
                  kContinuation = 9;
constexpr uint8_t kEndStream = 0x1, kAck = 0x1, kEndHeaders = 0x4,
                  kPadded = 0x8, kHasPriority = 0x20;
constexpr size_t kFrameHeader = 9;
constexpr uint32_t kCancel = 8;

constexpr uint32_t kMaxWindow = 0x7fffffff;
// grpc-go's frames are no larger, whatever the peer allows.
constexpr size_t kFrameLimit = 16384;
// How far output may run ahead of the socket.
constexpr size_t kOutLimit = 1 << 20;
constexpr int kVectors = 256;
static_assert(kVectors <= IOV_MAX);

uint32_t Load32(absl::string_view bytes) {
  const auto* b = reinterpret_cast<const unsigned char*>(bytes.data());
  return static_cast<uint32_t>(b[0]) << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

void Store32(uint32_t value, char* to) {
  for (int i = 0; i < 4; ++i) {
    to[i] = static_cast<char>(value >> (8 * (3 - i)));
  }
}

// An integer of RFC 7541, 5.1.
void PutInteger(uint8_t first, int prefix_bits, uint64_t value,
                std::string* to) {
  const uint64_t limit = (1u << prefix_bits) - 1;
  if (value < limit) {
    to->push_back(static_cast<char>(first | value));
    return;
  }
  to->push_back(static_cast<char>(first | limit));
  for (value -= limit; value > 0x7f; value >>= 7) {
    to->push_back(static_cast<char>(value | 0x80));
  }
  to->push_back(static_cast<char>(value));
}

void PutString(absl::string_view text, std::string* to) {
  PutInteger(0, 7, text.size(), to);
  to->append(text.data(), text.size());
}

// RFC 7541, 4.1.
size_t TableEntrySize(const std::pair<std::string, std::string>& header) {
  return header.first.size() + header.second.size() + 32;
}

absl::Status Broken(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the server broke HTTP/2's rules: ", what));
}

absl::Status SocketError(absl::string_view what) {
  return absl::ErrnoToStatus(errno, what);
}

}  // namespace

void Http2Connection::DeleteInflater::operator()(
    nghttp2_hd_inflater* inflater) const {
  nghttp2_hd_inflate_del(inflater);
}

Http2Connection::Http2Connection(int fd, Headers headers, Http2Handler* handler,
                                 std::unique_ptr<SecureStream> secure)
    : fd_(fd),
      headers_(std::move(headers)),
      handler_(handler),
      secure_(std::move(secure)) {
  nghttp2_hd_inflater* inflater = nullptr;
  nghttp2_hd_inflate_new(&inflater);
  inflater_.reset(inflater);

  Copy("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  // No push; streams may send us as much as there is.
  std::array<char, 12> settings = {0, 2, 0, 0, 0, 0, 0, 4};
  Store32(kMaxWindow, &settings[8]);
  FrameHeader(settings.size(), kSettings, 0, 0);
  Copy({settings.data(), settings.size()});
  WindowUpdate(0, kMaxWindow - 65535);
  first_block_ = FirstHeaderBlock();
}

Http2Connection::~Http2Connection() { close(fd_); }

// Output.

void Http2Connection::Copy(absl::string_view bytes) {
  while (!bytes.empty()) {
    if (out_.empty() || out_.back().data != nullptr ||
        out_.back().size == out_.back().own.size()) {
      out_.emplace_back();
    }
    Out& out = out_.back();
    const size_t n = std::min(bytes.size(), out.own.size() - out.size);
    std::memcpy(&out.own[out.size], bytes.data(), n);
    out.size += n;
    out_bytes_ += n;
    bytes.remove_prefix(n);
  }
}

void Http2Connection::Refer(absl::string_view bytes) {
  out_.emplace_back();
  out_.back().data = bytes.data();
  out_.back().size = bytes.size();
  out_bytes_ += bytes.size();
}

void Http2Connection::FrameHeader(size_t length, uint8_t type, uint8_t flags,
                                  uint32_t id) {
  std::array<char, kFrameHeader> header;
  Store32(static_cast<uint32_t>(length << 8 | type), header.data());
  header[4] = static_cast<char>(flags);
  Store32(id, &header[5]);
  Copy({header.data(), header.size()});
}

void Http2Connection::WindowUpdate(uint32_t id, uint32_t increment) {
  std::array<char, 4> payload;
  Store32(increment, payload.data());
  FrameHeader(payload.size(), kWindowUpdate, 0, id);
  Copy({payload.data(), payload.size()});
}

// The block that puts every header into the dynamic table, if the peer's has
// room for them; else all blocks are literals.
std::string Http2Connection::FirstHeaderBlock() {
  static constexpr std::pair<absl::string_view, int> kStaticNames[] = {
      {":authority", 1},
      {":path", 4},
      {"content-type", 31},
      {"user-agent", 58},
  };
  size_t size = 0;
  for (const auto& header : headers_) size += TableEntrySize(header);
  const bool indexed = size <= table_size_;

  std::string first;
  block_.clear();
  size_t entries = 0;
  std::vector<size_t> positions;
  for (const auto& [name, value] : headers_) {
    if (name == ":method" && value == "POST") {
      first.push_back('\x83');
      block_.push_back('\x83');
      continue;
    }
    if (name == ":scheme" && value == "http") {
      first.push_back('\x86');
      block_.push_back('\x86');
      continue;
    }
    int static_index = 0;
    for (const auto& [known, index] : kStaticNames) {
      if (name == known) static_index = index;
    }
    PutInteger(indexed ? 0x40 : 0, indexed ? 6 : 4, static_index, &first);
    if (static_index == 0) PutString(name, &first);
    PutString(value, &first);
    ++entries;
  }
  if (!indexed) {
    block_ = first;
    return first;
  }
  // The last of the table's entries has the lowest index, 62.
  for (size_t i = entries; i > 0; --i) PutInteger(0x80, 7, 61 + i, &block_);
  return first;
}

// Starts the header table anew under another limit (RFC 7541, 6.3).
void Http2Connection::SetTableSize(uint32_t size) {
  table_size_ = std::min<uint32_t>(size, 4096);
  first_block_ = FirstHeaderBlock();
  std::string updates(1, '\x20');
  PutInteger(0x20, 5, table_size_, &updates);
  first_block_ = updates + first_block_;
}

void Http2Connection::Open(Http2Stream* stream) {
  stream->id = next_id_;
  next_id_ += 2;
  if (next_id_ > kMaxWindow) going_away_ = true;
  stream->part = 0;
  stream->body_left = 0;
  for (const absl::string_view part : stream->body) {
    stream->body_left += part.size();
  }
  stream->window = initial_window_;
  streams_[stream->id] = stream;

  const std::string& block = first_block_.empty() ? block_ : first_block_;
  FrameHeader(block.size(), kHeaders, kEndHeaders, stream->id);
  Copy(block);
  first_block_.clear();
  stream->waiting = true;
  senders_.push_back(stream);
  Pump();
}

// Moves bodies to the output as far as windows and its limit allow.
void Http2Connection::Pump() {
  while (!senders_.empty() && window_ > 0 && out_bytes_ < kOutLimit) {
    Http2Stream* const stream = senders_.front();
    senders_.pop_front();
    if (stream->window <= 0) {
      stream->waiting = false;
      continue;
    }
    SendData(
        stream,
        std::min({stream->body_left, max_frame_,
                  static_cast<size_t>(std::min(window_, stream->window))}));
    if (stream->body_left > 0) {
      senders_.push_back(stream);
    } else {
      stream->waiting = false;
    }
  }
}

void Http2Connection::SendData(Http2Stream* stream, size_t size) {
  const bool last = size == stream->body_left;
  FrameHeader(size, kData, last ? kEndStream : 0, stream->id);
  stream->body_left -= size;
  stream->window -= static_cast<int64_t>(size);
  window_ -= static_cast<int64_t>(size);
  while (size > 0) {
    absl::string_view& part = stream->body[stream->part];
    const absl::string_view now = part.substr(0, size);
    if (now.size() <= kCopied) {
      Copy(now);
    } else {
      Refer(now);
    }
    size -= now.size();
    part.remove_prefix(now.size());
    if (part.empty()) ++stream->part;
  }
}

absl::Status Http2Connection::Flush() {
  while (wants_write()) {
    const size_t before = out_bytes_;
    absl::Status status = WriteOnce();
    if (!status.ok()) return status;
    Pump();
    if (out_bytes_ == before) break;
  }
  return absl::OkStatus();
}

// One writev; the socket being full is no error, and nothing is written.
absl::Status Http2Connection::WriteOnce() {
  std::array<iovec, kVectors> vectors;
  int count = 0;
  for (size_t i = first_out_; i < out_.size() && count < kVectors; ++i) {
    Out& out = out_[i];
    vectors[count].iov_base =
        out.data != nullptr ? const_cast<char*>(out.data) : out.own.data();
    vectors[count++].iov_len = out.size;
  }
  const ssize_t written = secure_ != nullptr
                              ? secure_->Write(vectors.data(), count)
                              : writev(fd_, vectors.data(), count);
  if (written < 0) {
    if (errno == EAGAIN || errno == EINTR) return absl::OkStatus();
    if (secure_ != nullptr && errno == EPROTO) {
      return absl::UnavailableError(
          absl::StrCat("cannot send: ", secure_->Why()));
    }
    return SocketError("cannot send");
  }
  bytes_written_ += written;
  out_bytes_ -= written;
  size_t left = written;
  while (left > 0) {
    Out& out = out_[first_out_];
    if (left < out.size) {
      if (out.data != nullptr) {
        out.data += left;
      } else {
        std::memmove(out.own.data(), &out.own[left], out.size - left);
      }
      out.size -= left;
      break;
    }
    left -= out.size;
    ++first_out_;
  }
  if (first_out_ == out_.size()) {
    out_.clear();
    first_out_ = 0;
  } else if (first_out_ > 1024) {
    out_.erase(out_.begin(), out_.begin() + static_cast<ssize_t>(first_out_));
    first_out_ = 0;
  }
  return absl::OkStatus();
}

// Input.

absl::Status Http2Connection::Read(std::vector<char>* buffer) {
  const ssize_t size = secure_ != nullptr
                           ? secure_->Read(buffer->data(), buffer->size())
                           : read(fd_, buffer->data(), buffer->size());
  if (size < 0) {
    if (errno == EAGAIN || errno == EINTR) return absl::OkStatus();
    if (secure_ != nullptr && errno == EPROTO) {
      return absl::UnavailableError(
          absl::StrCat("cannot receive: ", secure_->Why()));
    }
    return SocketError("cannot receive");
  }
  if (size == 0) {
    return absl::UnavailableError("the server closed the connection");
  }
  bytes_read_ += size;
  absl::string_view in(buffer->data(), size);
  if (pending_.empty()) {
    absl::Status status = Consume(&in);
    pending_.assign(in.data(), in.size());
    return status;
  }
  pending_.append(in.data(), in.size());
  in = pending_;
  absl::Status status = Consume(&in);
  pending_.erase(0, pending_.size() - in.size());
  return status;
}

// Takes all whole frames off `in`, and of DATA whatever is there.
absl::Status Http2Connection::Consume(absl::string_view* in) {
  while (true) {
    if (in_data_) {
      Data(in);
      if (in_data_) return absl::OkStatus();
    }
    if (in->size() < kFrameHeader) return absl::OkStatus();
    const uint32_t first = Load32(*in);
    const size_t length = first >> 8;
    const auto type = static_cast<uint8_t>(first & 0xff);
    const auto flags = static_cast<uint8_t>((*in)[4]);
    const uint32_t id = Load32(in->substr(5)) & kMaxWindow;
    if (length > 16384) return Broken("a frame of more than 16384 bytes");
    if (type == kData) {
      // The byte that tells the padding's length belongs to the header.
      if ((flags & kPadded) != 0 && in->size() < kFrameHeader + 1) {
        return absl::OkStatus();
      }
      in->remove_prefix(kFrameHeader);
      absl::Status status = StartData(in, length, flags, id);
      if (!status.ok()) return status;
      continue;
    }
    if (in->size() < kFrameHeader + length) return absl::OkStatus();
    const absl::string_view payload = in->substr(kFrameHeader, length);
    in->remove_prefix(kFrameHeader + length);
    absl::Status status = Frame(type, flags, id, payload);
    if (!status.ok()) return status;
  }
}

absl::Status Http2Connection::StartData(absl::string_view* in, size_t length,
                                        uint8_t flags, uint32_t id) {
  unacknowledged_ += length;
  if (unacknowledged_ > kMaxWindow / 2) {
    WindowUpdate(0, static_cast<uint32_t>(unacknowledged_));
    unacknowledged_ = 0;
  }
  padding_left_ = 0;
  if ((flags & kPadded) != 0) {
    padding_left_ = static_cast<unsigned char>(in->front());
    in->remove_prefix(1);
    if (length < 1 + padding_left_) return Broken("padding beyond its frame");
    length -= 1 + padding_left_;
  }
  data_id_ = id;
  data_left_ = length;
  data_ends_ = (flags & kEndStream) != 0;
  in_data_ = true;
  return absl::OkStatus();
}

// Takes what has come of a DATA frame.
void Http2Connection::Data(absl::string_view* in) {
  if (data_left_ > 0 && !in->empty()) {
    const absl::string_view now = in->substr(0, data_left_);
    data_left_ -= now.size();
    in->remove_prefix(now.size());
    if (Http2Stream* const stream = Find(data_id_)) {
      handler_->OnData(stream, now);
    }
  }
  if (data_left_ > 0) return;
  const size_t padding = std::min(padding_left_, in->size());
  padding_left_ -= padding;
  in->remove_prefix(padding);
  if (padding_left_ > 0) return;
  in_data_ = false;
  if (!data_ends_) return;
  if (Http2Stream* const stream = Find(data_id_)) {
    End(stream, StreamEnd::kComplete, 0);
  }
}

absl::Status Http2Connection::Frame(uint8_t type, uint8_t flags, uint32_t id,
                                    absl::string_view payload) {
  if (header_goes_on_ && (type != kContinuation || id != header_id_)) {
    return Broken("a header block that does not go on");
  }
  switch (type) {
    case kHeaders:
      header_id_ = id;
      header_ends_ = (flags & kEndStream) != 0;
      return HeadersFrame(flags, payload);
    case kContinuation:
      if (!header_goes_on_) return Broken("CONTINUATION of nothing");
      header_block_.append(payload.data(), payload.size());
      return (flags & kEndHeaders) != 0 ? Inflate() : absl::OkStatus();
    case kRstStream: {
      if (payload.size() != 4) return Broken("RST_STREAM's size");
      const uint32_t code = Load32(payload);
      if (Http2Stream* const stream = Find(id)) {
        End(stream,
            code == NGHTTP2_REFUSED_STREAM ? StreamEnd::kRefused
                                           : StreamEnd::kReset,
            code);
      }
      return absl::OkStatus();
    }
    case kSettings:
      return Settings(flags, payload);
    case kPing:
      if (payload.size() != 8) return Broken("PING's size");
      if ((flags & kAck) == 0) {
        FrameHeader(payload.size(), kPing, kAck, 0);
        Copy(payload);
      }
      return absl::OkStatus();
    case kGoAway:
      if (payload.size() < 8) return Broken("GOAWAY's size");
      if (Load32(payload.substr(4)) != NGHTTP2_NO_ERROR) {
        return absl::UnavailableError(
            absl::StrCat("the server sent GOAWAY with error ",
                         Load32(payload.substr(4)), " ", payload.substr(8)));
      }
      GoAway(Load32(payload) & kMaxWindow);
      return absl::OkStatus();
    case kWindowUpdate:
      if (payload.size() != 4) return Broken("WINDOW_UPDATE's size");
      return WindowUpdated(id, Load32(payload) & kMaxWindow);
    case kPriority:
    default:
      return absl::OkStatus();  // unknown types are to be ignored
  }
}

absl::Status Http2Connection::HeadersFrame(uint8_t flags,
                                           absl::string_view payload) {
  size_t padding = 0;
  if ((flags & kPadded) != 0) {
    if (payload.empty()) return Broken("HEADERS' size");
    padding = static_cast<unsigned char>(payload.front());
    payload.remove_prefix(1);
  }
  if ((flags & kHasPriority) != 0) {
    if (payload.size() < 5) return Broken("HEADERS' size");
    payload.remove_prefix(5);
  }
  if (payload.size() < padding) return Broken("padding beyond its frame");
  payload.remove_suffix(padding);
  header_block_.assign(payload.data(), payload.size());
  header_goes_on_ = true;
  return (flags & kEndHeaders) != 0 ? Inflate() : absl::OkStatus();
}

// Decodes the header block, also for streams that are gone: the table must stay
// in step.
absl::Status Http2Connection::Inflate() {
  header_goes_on_ = false;
  Http2Stream* const stream = Find(header_id_);
  const auto* in = reinterpret_cast<const uint8_t*>(header_block_.data());
  size_t left = header_block_.size();
  while (true) {
    nghttp2_nv header;
    int flags = 0;
    const ssize_t taken =
        nghttp2_hd_inflate_hd2(inflater_.get(), &header, &flags, in, left, 1);
    if (taken < 0) return Broken("a header block that cannot be decoded");
    in += taken;
    left -= taken;
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0 && stream != nullptr) {
      handler_->OnHeader(
          stream, {reinterpret_cast<const char*>(header.name), header.namelen},
          {reinterpret_cast<const char*>(header.value), header.valuelen});
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
      nghttp2_hd_inflate_end_headers(inflater_.get());
      break;
    }
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && left == 0) break;
  }
  header_block_.clear();
  if (header_ends_ && stream != nullptr) {
    End(stream, StreamEnd::kComplete, 0);
  }
  return absl::OkStatus();
}

absl::Status Http2Connection::Settings(uint8_t flags,
                                       absl::string_view payload) {
  if ((flags & kAck) != 0) return absl::OkStatus();
  if (payload.size() % 6 != 0) return Broken("SETTINGS' size");
  if (!ready_) max_streams_ = kMaxWindow;
  for (; !payload.empty(); payload.remove_prefix(6)) {
    const uint32_t name = Load32(payload) >> 16;
    const uint32_t value = Load32(payload.substr(2));
    switch (name) {
      case NGHTTP2_SETTINGS_HEADER_TABLE_SIZE:
        if (std::min<uint32_t>(value, 4096) != table_size_) {
          SetTableSize(value);
        }
        break;
      case NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS:
        max_streams_ = value;
        break;
      case NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE: {
        const int64_t change = static_cast<int64_t>(value) - initial_window_;
        initial_window_ = value;
        for (const auto& [id, stream] : streams_) {
          stream->window += change;
          if (!stream->waiting && stream->body_left > 0) {
            stream->waiting = true;
            senders_.push_back(stream);
          }
        }
        break;
      }
      case NGHTTP2_SETTINGS_MAX_FRAME_SIZE:
        max_frame_ = std::min<size_t>(value, kFrameLimit);
        break;
      default:
        break;
    }
  }
  ready_ = true;
  FrameHeader(0, kSettings, kAck, 0);
  Pump();
  return absl::OkStatus();
}

absl::Status Http2Connection::WindowUpdated(uint32_t id, uint32_t increment) {
  if (id == 0) {
    window_ += increment;
    if (window_ > kMaxWindow) return Broken("a window beyond its maximum");
  } else if (Http2Stream* const stream = Find(id)) {
    stream->window += increment;
    if (!stream->waiting && stream->body_left > 0) {
      stream->waiting = true;
      senders_.push_back(stream);
    }
  }
  Pump();
  return absl::OkStatus();
}

void Http2Connection::GoAway(uint32_t last_id) {
  going_away_ = true;
  std::vector<Http2Stream*> refused;
  for (const auto& [id, stream] : streams_) {
    if (id > last_id) refused.push_back(stream);
  }
  for (Http2Stream* const stream : refused) {
    End(stream, StreamEnd::kRefused, 0);
  }
}

void Http2Connection::End(Http2Stream* stream, StreamEnd end, uint32_t code) {
  streams_.erase(stream->id);
  if (stream->waiting) {
    senders_.erase(std::find(senders_.begin(), senders_.end(), stream));
    stream->waiting = false;
  }
  if (stream->body_left > 0 && end == StreamEnd::kComplete) {
    // The peer does not want the rest.
    std::array<char, 4> payload;
    Store32(kCancel, payload.data());
    FrameHeader(payload.size(), kRstStream, 0, stream->id);
    Copy({payload.data(), payload.size()});
  }
  stream->body_left = 0;
  handler_->OnEnd(stream, end, code);
}

Http2Stream* Http2Connection::Find(uint32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second;
}

}  // namespace fncache::runner::load::wire
