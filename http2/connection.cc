// SPDX-License-Identifier: Apache-2.0
// It is one thing: all of it is callbacks and timers that change the state of
// one connection and its session of nghttp2.
#include "http2/connection.h"

#include <nghttp2/nghttp2.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "http2/prefetch.h"
#include "http2/target.h"

namespace fncache::http2 {
namespace {

// The first bytes that a client sends (RFC 9113, 3.4).
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// If output other than bodies exceeds this, the connection reads no more: its
// peer sends requests and does not read.
constexpr size_t kMostAsked = 1 << 20;
// The most bytes that one event-loop iteration reads from a socket. Then others
// are served.
constexpr size_t kReadPerIteration = 256 << 10;
// A read whose frames are smaller than this is the last of its iteration. The
// next reads are smaller, and answered streams are closed at once. Otherwise
// requests of many connections would be in memory together and delay others.
constexpr size_t kSmallFrame = 256;
constexpr size_t kSmallRead = 16 << 10;
// The size of nghttp2's session, as nghttp2 allocates it.
constexpr size_t kSession = 2928;
// A connection is closed when its peer has read nothing for kStuck (unix
// sockets; TCP_USER_TIMEOUT covers TCP).
constexpr absl::Duration kStuck = absl::Seconds(20);
// The pause between the two steps of a GOAWAY. Frames that the peer sent before
// it got the first one arrive meanwhile.
constexpr absl::Duration kNotice = absl::Milliseconds(100);
// Limit of these pauses while the connection does not read from its peer. After
// them the second GOAWAY is sent.
constexpr int kMostNotices = 20;
// The cost of a DATA frame that comes after this side has ended its stream.
// Some were in flight, and small ones may be many, but not without limit.
constexpr double kStrayData = 1.0 / 16;
// Limit of all output that is queued ahead of the socket. For bodies the limit
// is lower (Output::kMost).
constexpr size_t kMostOutput = 4 * Output::kMost;
// Above this much unread output the connection opens no new stream.
constexpr size_t kMostToOpen = 2 * Output::kMost;
// A connection whose window has been used up for this long (nanoseconds) opens
// no new stream: its peer does not read. Calls use other connections.
constexpr int64_t kBlocked = 20'000'000;
constexpr int32_t kLeastWindow = 4 << 10;
// How long a peer may take to read an error before its connection is closed.
constexpr absl::Duration kLinger = absl::Milliseconds(500);

int64_t Nanos(absl::Duration duration) {
  return absl::ToInt64Nanoseconds(duration);
}

std::string ErrnoText(absl::string_view what) {
  std::array<char, 128> text;
  const int error = errno;
  return absl::StrCat(what, ": ", strerror_r(error, text.data(), text.size()));
}

constexpr absl::string_view kHttp1Starts[] = {
    "GET ", "POST", "HEAD", "PUT ", "OPTI", "DELE", "PATC", "CONN", "HTTP"};

// These bytes may be the start of HTTP/1 or TLS; more bytes will show it.
bool SaysTooLittle(absl::string_view bytes) {
  if (bytes.size() == 1 && (bytes[0] == 0x15 || bytes[0] == 0x16)) return true;
  for (const absl::string_view start : kHttp1Starts) {
    if (bytes.size() < start.size() && absl::StartsWith(start, bytes)) {
      return true;
    }
  }
  return false;
}

// Describes a peer that does not speak HTTP/2, by its first bytes.
std::string OtherProtocol(absl::string_view bytes) {
  if (bytes.size() >= 2 && (bytes[0] == 0x15 || bytes[0] == 0x16) &&
      bytes[1] == 0x03) {
    return "the peer speaks TLS, not plaintext";
  }
  for (const absl::string_view start : kHttp1Starts) {
    if (absl::StartsWith(bytes, start)) return "the peer speaks HTTP/1";
  }
  return "the peer does not speak HTTP/2";
}

}  // namespace

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
      socket_(fd, ssl),
      options_(*options),
      owner_(owner),
      host_(this, loop, this, options->low_water),
      stream_window_(options->stream_window),
      heads_(options->server),
      budget_(*options, loop->now()),
      last_read_(loop->now()),
      idle_since_(loop->now()),
      opened_(loop->now()) {}

Connection::~Connection() {
  loop_->Forget(this);
  loop_->Unqueue(this);
  if (check_.has_value()) loop_->Cancel(*check_);
  if (notice_.has_value()) loop_->Cancel(*notice_);
  if (watched_ != 0) loop_->Unwatch(fd(), this);
  nghttp2_session_del(host_.session);
}

void Connection::Start() {
  // The caller of Create does not have the connection yet, so its owner is
  // notified when the iteration ends.
  const auto fail = [this](std::string words) {
    end_ = ConnectionEnd::kError;
    words_ = std::move(words);
    closing_ = true;
    Touch();
  };
  if (!socket_.Attach()) return fail("no memory for TLS");
  watched_ = EPOLLIN;
  if (!options_.server) watched_ |= EPOLLOUT;
  if (!loop_->Watch(fd(), watched_, this)) {
    watched_ = 0;
    return fail(ErrnoText("cannot watch a socket"));
  }
  ArmCheck();
  if (!options_.server) return;
  // The address is read now, because the peer may have left when it is needed.
  socklen_t size = sizeof peer_;
  getpeername(fd(), reinterpret_cast<sockaddr*>(&peer_), &size);
  if (socket_.has_tls()) {
    state_ = State::kHandshake;
    return;
  }
  Begin();
}

std::string Connection::peer() const {
  if (peer_.sin6_family != AF_INET && peer_.sin6_family != AF_INET6) return "";
  return AddressText(reinterpret_cast<const sockaddr*>(&peer_),
                     peer_.sin6_family == AF_INET ? sizeof(sockaddr_in)
                                                  : sizeof(sockaddr_in6));
}

void Connection::Begin() {
  state_ = State::kOpen;
  MakeSession();
  Touch();
}

void Connection::OnLongWork() {
  if (state_ == State::kHandshake) Shake();
}

void Connection::Shake() {
  switch (socket_.Shake()) {
    case Socket::Handshake::kDone:
      break;
    case Socket::Handshake::kWantsInput:
      return WatchFor(EPOLLIN);
    case Socket::Handshake::kWantsOutput:
      return WatchFor(EPOLLIN | EPOLLOUT);
    case Socket::Handshake::kFailed:
      return EndSoon(ConnectionEnd::kHandshake, TlsFailure());
  }
  if (!socket_.speaks_http2()) {
    return EndSoon(ConnectionEnd::kHandshake,
                   "the peer does not speak HTTP/2 over TLS (ALPN)");
  }
  if (options_.check_peer != nullptr) {
    std::string wrong = options_.check_peer(socket_.ssl());
    if (!wrong.empty()) {
      return EndSoon(ConnectionEnd::kHandshake, std::move(wrong));
    }
  }
  WatchFor(EPOLLIN);
  Begin();
}

std::string Connection::TlsFailure() const {
  if (options_.explain_handshake != nullptr) {
    std::string words = options_.explain_handshake(socket_.ssl());
    if (!words.empty()) return words;
  }
  const char* const reason = Socket::TlsReason();
  return reason == nullptr ? "the peer left during the TLS handshake"
                           : absl::StrCat("TLS: ", reason);
}

bool Connection::CanOpen() const {
  return state_ == State::kOpen && ready_ && !going_away_ && !closing_ &&
         !full() && stream_count_ < peer_max_streams() &&
         nghttp2_session_check_request_allowed(host_.session) != 0;
}

bool Connection::full() const {
  return host_.output.size() >= kMostToOpen ||
         (blocked_since_ != 0 && loop_->now() - blocked_since_ > kBlocked);
}

// Records whether calls wait for the connection's window, and since when. A
// window below kLeastWindow does not end the wait.
void Connection::LookAtWindow() {
  const int32_t window = nghttp2_session_get_remote_window_size(host_.session);
  if (window >= kLeastWindow || (window > 0 && blocked_since_ == 0)) {
    blocked_since_ = 0;
  } else if (blocked_since_ == 0) {
    blocked_since_ = loop_->now();
  }
}

size_t Connection::peer_max_streams() const {
  return nghttp2_session_get_remote_settings(
      host_.session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

uint32_t Connection::AcknowledgedWindow() const {
  return nghttp2_session_get_local_settings(
      host_.session, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE);
}

void Connection::SetStreamWindow(uint32_t window) {
  if (state_ != State::kOpen || window == stream_window_ ||
      AcknowledgedWindow() != stream_window_) {
    return;
  }
  // The peer changes the windows of open streams, too (RFC 9113, 6.9.2).
  const int64_t change = int64_t{window} - int64_t{stream_window_};
  for (Stream* stream = streams_; stream != nullptr; stream = stream->next_) {
    stream->ShiftWindow(change);
  }
  stream_window_ = window;
  const nghttp2_settings_entry setting = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                          window};
  nghttp2_submit_settings(host_.session, NGHTTP2_FLAG_NONE, &setting, 1);
  Touch();
}

Stream* Connection::NewStream(int32_t id) {
  auto* const stream = new Stream(&host_);
  stream->id_ = id;
  stream->opened_ = loop_->now();
  stream->next_ = streams_;
  stream->link_ = &streams_;
  if (streams_ != nullptr) streams_->link_ = &stream->next_;
  streams_ = stream;
  if (stream_count_ == 0) busy_since_ = loop_->now();
  ++stream_count_;
  return stream;
}

Stream* Connection::Open(const Fields& fields, bool end, StreamUser* user) {
  Stream* const stream = NewStream(-1);
  stream->user_ = user;
  stream->Ask(fields, end);
  // That was the last id there is.
  if (nghttp2_session_get_next_stream_id(host_.session) > INT32_MAX) GoAway();
  return stream;
}

void Connection::CloseStream(Stream* stream, const StreamEnd& end) {
  *stream->link_ = stream->next_;
  if (stream->next_ != nullptr) stream->next_->link_ = stream->link_;
  --stream_count_;
  if (stream_count_ == 0) idle_since_ = loop_->now();
  if (stream->user_ != nullptr) stream->user_->OnClosed(*stream, end);
  delete stream;
  if (!reported_closed_) owner_->OnCapacity(*this);
}

bool Connection::HasEnded(int32_t id) const {
  // A function is not held to it: its other calls would be lost.
  return options_.server &&
         std::find(ended_.begin(), ended_.end(), id) != ended_.end() && id != 0;
}

bool Connection::IsYoung(const Stream& stream) const {
  return loop_->now() - stream.opened_ < Nanos(options_.young);
}

void Connection::SpendOfSent() {
  if (!budget_.SpendOfSent()) Spend(1);
}

void Connection::Spend(double cost) {
  if (budget_.Spend(cost, loop_->now()) || end_ == ConnectionEnd::kTooMuch) {
    return;
  }
  end_ = ConnectionEnd::kTooMuch;
  words_ = "the peer sent too many frames that do no work";
  nghttp2_session_terminate_session(host_.session, NGHTTP2_ENHANCE_YOUR_CALM);
  Touch();
}

void Connection::Prefetch() const {
  memory_.Prefetch();
  if (host_.session != nullptr) http2::Prefetch(host_.session, kSession);
}

int Connection::SocketError() const {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

void Connection::OnReady(uint32_t events) {
  switch (state_) {
    case State::kConnecting: {
      errno = SocketError();
      if (errno != 0) {
        return EndSoon(ConnectionEnd::kError, ErrnoText("cannot connect"));
      }
      if ((events & (EPOLLOUT | EPOLLIN)) == 0) return;
      if (!socket_.has_tls()) {
        WatchFor(EPOLLIN);
        return Begin();
      }
      state_ = State::kHandshake;
      return Shake();
    }
    case State::kHandshake:
      if (!options_.server) return Shake();
      // Otherwise its events would come in every iteration meanwhile and
      // displace others.
      WatchFor(EPOLLONESHOT);
      return loop_->Queue(this);
    case State::kOpen:
      if ((events & EPOLLOUT) != 0) Touch();
      // Input that the peer sent before it left is ignored.
      if (!reads_ && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        errno = SocketError();
        if (errno == 0) return PeerLeft();
        return ReadFailed();
      }
      if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) ReadSome();
      return;
    case State::kEnding:
      if ((events & (EPOLLHUP | EPOLLERR)) != 0) return EndNow(end_, words_);
      return Touch();
    case State::kLinger: {
      const ssize_t size = read(fd(), loop_->buffer(), loop_->buffer_size());
      if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        EndNow(end_, words_);
      }
      return;
    }
    case State::kOver:
      return;
  }
}

// Where a stream's window is larger, its body may be there in one piece.
size_t Connection::ReadSize() const {
  return std::min<size_t>(
      small_reads_ ? kSmallRead : std::max(stream_window_, kUsualWindow),
      loop_->buffer_size());
}

void Connection::ReadSome() {
  // A TLS record needs a buffer as large as a small read.
  for (size_t taken = 0; taken + kSmallRead <= kReadPerIteration;) {
    const size_t most = std::min(ReadSize(), kReadPerIteration - taken);
    const ssize_t size = socket_.Read(loop_->buffer(), most);
    if (size < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      return ReadFailed();
    }
    if (size == 0) return PeerLeft();
    last_read_ = loop_->now();
    bytes_read_ += static_cast<uint64_t>(size);
    taken += static_cast<size_t>(size);
    const uint64_t before = frames_;
    TakeInput(absl::MakeSpan(loop_->buffer(), static_cast<size_t>(size)));
    small_reads_ = static_cast<size_t>(size) > kSmallRead / 2 &&
                   (frames_ - before) * kSmallFrame > static_cast<size_t>(size);
    if (small_reads_) {
      if (!closing_) Gather();
      return;
    }
    if (state_ != State::kOpen || closing_ || !reads_ ||
        static_cast<size_t>(size) < most / 2) {
      return;
    }
  }
}

void Connection::ReadFailed() {
  const bool in_tls = errno == EPROTO && socket_.has_tls();
  EndSoon(ConnectionEnd::kError,
          in_tls ? absl::StrCat("cannot receive: ", TlsFailure())
                 : absl::StrCat(ErrnoText("cannot receive"), Silence()));
}

void Connection::PeerLeft() {
  if (end_ == ConnectionEnd::kDone && stream_count_ > 0) {
    end_ = ConnectionEnd::kPeerLeft;
  }
  EndNow(end_, words_.empty()
                   ? absl::StrCat("the peer closed the connection", Silence())
                   : words_);
}

// The likely reason of a server that closed before it sent anything: it expects
// TLS, or a client's certificate.
const char* Connection::Silence() const {
  if (options_.server || magic_ > 0) return "";
  return socket_.has_tls() ? "; it said nothing before, so it may want a "
                             "client's certificate"
                           : "; it said nothing before, so it may want TLS";
}

// Compares the start of what a client says. False where it is something else,
// and known what.
bool Connection::TakePreface(absl::string_view* bytes) {
  const absl::string_view expected = kPreface.substr(magic_, bytes->size());
  if (other_.empty() && absl::StartsWith(*bytes, expected)) {
    magic_ += expected.size();
    return true;
  }
  // It may have begun alike.
  if (other_.empty()) other_ = std::string(kPreface.substr(0, magic_));
  absl::StrAppend(&other_, bytes->substr(0, start_.size()));
  if (SaysTooLittle(other_)) {
    *bytes = {};
    return true;
  }
  end_ = ConnectionEnd::kNotHttp2;
  words_ = OtherProtocol(other_);
  if (absl::EndsWith(words_, "HTTP/1") && !options_.http1_answer.empty()) {
    host_.output.Copy(options_.http1_answer);
  }
  return false;
}

// Checks the start of a server's input, which must be SETTINGS. False if it is
// something else, also while its start is incomplete.
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

void Connection::TakeInput(absl::Span<char> input) {
  absl::string_view bytes(input.data(), input.size());
  // The preface is not a frame, but nghttp2 needs it.
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
  for (input = input.last(bytes.size()); !input.empty();) {
    int32_t stream = 0;
    size_t length = 0;
    const size_t before = heads_.NextData(input, &stream, &length);
    if (!Feed({input.data(), before})) return;
    const size_t unknown = heads_.TakeUnknown();
    if (unknown > 0) Spend(static_cast<double>(unknown));
    if (!heads_.in_block()) SpendOfUnheard();
    if (stream != 0) OnStrayData(stream, length);
    input.remove_prefix(before);
  }
  if (!heads_.in_block()) {
    block_since_ = 0;
  } else if (block_since_ == 0) {
    block_since_ = loop_->now();
    ArmCheck();
  }
}

void Connection::OnStrayData(int32_t stream, size_t length) {
  if (nghttp2_session_find_stream(host_.session, stream) != nullptr) return;
  ++frames_;  // of which nghttp2 says nothing
  if (HasEnded(stream)) {
    // Nothing may come there (RFC 9113, 5.1).
    nghttp2_session_terminate_session(host_.session, NGHTTP2_STREAM_CLOSED);
    return;
  }
  // Empty frames were of no use even to the stream.
  Spend(length == 0 ? 1 : kStrayData);
}

bool Connection::Feed(absl::string_view bytes) {
  if (bytes.empty()) return true;
  in_session_ = true;
  const ssize_t taken = nghttp2_session_mem_recv(
      host_.session, reinterpret_cast<const uint8_t*>(bytes.data()),
      bytes.size());
  in_session_ = false;
  Touch();
  if (taken >= 0) return !closing_;
  EndSoon(taken == NGHTTP2_ERR_FLOODED ? ConnectionEnd::kTooMuch
                                       : ConnectionEnd::kProtocol,
          nghttp2_strerror(static_cast<int>(taken)));
  return false;
}

// A plaintext server delays its SETTINGS until the client's first bytes, which
// are in flight by then. A client of HTTP/1 could not read its error answer
// behind frames. Over TLS there is no such client: ALPN has excluded it.
bool Connection::HoldsSettings() const {
  return options_.server && !socket_.has_tls() && magic_ < kPreface.size() &&
         !last_notice_ && !notice_.has_value();
}

// Has nghttp2 make the frames that are due, as far as output may run ahead.
void Connection::Gather() {
  if (host_.session == nullptr || state_ != State::kOpen) return;
  if (HoldsSettings()) return;
  in_session_ = true;
  if (!host_.output.full()) {
    for (const int32_t id : host_.held_back) {
      // One that has ended meanwhile is none to go on with.
      nghttp2_session_resume_data(host_.session, id);
    }
    host_.held_back.clear();
  }
  // Header blocks wait with their streams, too, where they are counted.
  while (host_.output.size() < kMostOutput) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(host_.session, &bytes);
    if (size <= 0) {
      if (size < 0 && end_ == ConnectionEnd::kDone) {
        end_ = ConnectionEnd::kProtocol;
        words_ = nghttp2_strerror(static_cast<int>(size));
        closing_ = true;
      }
      break;
    }
    const absl::string_view frame(reinterpret_cast<const char*>(bytes),
                                  static_cast<size_t>(size));
    if (options_.server && !std::exchange(sent_max_streams_, true)) {
      std::string first(frame);
      TellMaxStreams(&first);
      host_.output.Copy(first);
      continue;
    }
    host_.output.Copy(frame);
  }
  if (!options_.server) LookAtWindow();
  in_session_ = false;
}

bool Connection::WriteSome() {
  while (host_.output.size() > 0) {
    const ssize_t written = socket_.Write(host_.output);
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        WatchStuck();
        return false;
      }
      EndNow(ConnectionEnd::kError,
             words_.empty() ? absl::StrCat(ErrnoText("cannot send"), Silence())
                            : words_);
      return false;
    }
    const bool was_full = full();
    stuck_since_ = 0;
    Written(static_cast<size_t>(written));
    if (was_full && !options_.server && CanOpen()) owner_->OnCapacity(*this);
    if (host_.output.size() < Output::kMost / 2) Gather();
  }
  return true;
}

// For TCP sockets the kernel does that (TCP_USER_TIMEOUT).
void Connection::WatchStuck() {
  const bool is_tcp =
      peer_.sin6_family == AF_INET || peer_.sin6_family == AF_INET6;
  if (!options_.server || is_tcp || stuck_since_ != 0) return;
  stuck_since_ = loop_->now();
  ArmCheck();
}

void Connection::Written(size_t bytes) {
  bytes_written_ += bytes;
  if (!host_.output.Written(bytes) || stream_count_ > 0) return;
  // Connections without calls are many.
  host_.output.GiveBack();
  socket_.GiveBack();
}

void Connection::WatchFor(uint32_t events) {
  if (watched_ == events) return;
  watched_ = events;
  loop_->Rewatch(fd(), events, this);
}

void Connection::OnIterationEnd() {
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
    const bool takes_more =
        state_ == State::kOpen && host_.output.size() < kMostAsked;
    return WatchFor(takes_more ? InputEvents() | EPOLLOUT : EPOLLOUT);
  }
  if (state_ == State::kEnding) return Linger();
  if (nghttp2_session_want_read(host_.session) == 0 &&
      nghttp2_session_want_write(host_.session) == 0) {
    if (end_ == ConnectionEnd::kDone && words_.empty()) {
      words_ = "closed after GOAWAY";
    }
    return Linger();
  }
  WatchFor(InputEvents());
}

uint32_t Connection::InputEvents() const {
  return reads_ ? EPOLLIN : EPOLLRDHUP;
}

void Connection::SetReading(bool reads) {
  if (reads == reads_) return;
  reads_ = reads;
  Touch();
}

void Connection::EndSoon(ConnectionEnd end, std::string words) {
  end_ = end;
  words_ = std::move(words);
  if (state_ == State::kOver) return;
  if (in_session_) {
    closing_ = true;
    return Touch();
  }
  if (state_ == State::kOpen &&
      (host_.output.size() > 0 || host_.session != nullptr) &&
      end != ConnectionEnd::kError && end != ConnectionEnd::kPeerLeft) {
    Gather();
    state_ = State::kEnding;
    ending_since_ = loop_->now();
    ArmCheck();
    return Touch();
  }
  EndNow(end_, words_);
}

void Connection::Linger() {
  if (!options_.server) return EndNow(end_, words_);
  // Closing a socket with unread input resets the connection, and the peer
  // might lose the last frames sent to it (RFC 9112, 9.6).
  socket_.EndOutput();
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
  if (watched_ != 0) loop_->Unwatch(fd(), this);
  watched_ = 0;
  going_away_ = true;
  lost_streams_ = streams_ != nullptr;
  while (streams_ != nullptr) {
    StreamEnd lost;
    lost.kind = StreamEnd::Kind::kLost;
    lost.why = words_;
    lost.unprocessed = !options_.server && streams_->sent_at_ > bytes_written_;
    CloseStream(streams_, lost);
  }
  if (!reported_closed_) {
    reported_closed_ = true;
    owner_->OnClosed(*this, end_, words_);
  }
  Touch();
}

void Connection::GoAway() {
  if (state_ != State::kOpen) {
    if (state_ == State::kConnecting || state_ == State::kHandshake) {
      EndSoon(ConnectionEnd::kDone, "no longer needed");
    }
    return;
  }
  if (last_notice_ || notice_.has_value()) return;
  if (!options_.server) {
    last_notice_ = true;
    going_away_ = true;
    nghttp2_submit_goaway(host_.session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR,
                          nullptr, 0);
    return Touch();
  }
  nghttp2_submit_shutdown_notice(host_.session);
  Touch();
  TellLast();
}

void Connection::TellLast() {
  ++notices_;
  notice_ = loop_->After(kNotice, [this] {
    notice_.reset();
    if (state_ != State::kOpen) return;
    // Input of the peer is not read yet.
    if (!reads_ && notices_ < kMostNotices) return TellLast();
    last_notice_ = true;
    going_away_ = true;
    nghttp2_submit_goaway(
        host_.session, NGHTTP2_FLAG_NONE,
        nghttp2_session_get_last_proc_stream_id(host_.session),
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

int64_t Connection::PingDue() const {
  if (options_.ping_after == absl::InfiniteDuration()) return INT64_MAX;
  const int64_t due =
      std::max(last_read_, busy_since_) + Nanos(options_.ping_after);
  if (last_ping_ == 0) return due;
  return std::max(due, last_ping_ + Nanos(options_.ping_every));
}

void Connection::ArmCheck() {
  if (check_.has_value()) loop_->Cancel(*check_);
  int64_t next = INT64_MAX;
  const int64_t now = loop_->now();
  const auto at = [&](int64_t since, absl::Duration after) {
    if (after == absl::InfiniteDuration()) return;
    next = std::min(next, std::max(since + Nanos(after), now));
  };
  if (state_ == State::kEnding) {
    at(ending_since_, options_.end_timeout);
  } else if (!ready_) {
    at(opened_, options_.handshake_timeout);
  } else {
    if (block_since_ != 0) at(block_since_, options_.handshake_timeout);
    if (stuck_since_ != 0) at(stuck_since_, kStuck);
    if (!notice_.has_value() && !last_notice_) {
      at(stream_count_ == 0 ? idle_since_ : now, options_.idle_timeout);
      at(opened_, options_.max_age);
    }
    if (ping_waits_) {
      at(last_ping_, options_.ping_timeout);
    } else if (stream_count_ == 0) {
      at(now, options_.ping_after);  // whether there are any by then
    } else {
      at(PingDue(), absl::ZeroDuration());
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
  if (state_ == State::kEnding) {
    if (now - ending_since_ < Nanos(options_.end_timeout)) return ArmCheck();
    return EndNow(end_, words_);
  }
  if (!ready_ && now - opened_ >= Nanos(options_.handshake_timeout)) {
    return EndNow(ConnectionEnd::kTimeout,
                  state_ == State::kConnecting ? "no connection in time"
                  : state_ == State::kHandshake
                      ? "no TLS handshake in time"
                      : "the peer did not begin to speak HTTP/2 in time");
  }
  // The unread input may contain the rest of the block.
  if (block_since_ != 0 && (watched_ & EPOLLIN) == 0) block_since_ = now;
  if (block_since_ != 0 &&
      now - block_since_ >= Nanos(options_.handshake_timeout)) {
    return EndNow(ConnectionEnd::kTimeout,
                  "the peer did not end a header block in time");
  }
  if (stuck_since_ != 0 && now - stuck_since_ >= Nanos(kStuck)) {
    return EndNow(ConnectionEnd::kTimeout, "the peer takes nothing");
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
  if (ready_ && stream_count_ > 0 && !ping_waits_ && now >= PingDue()) {
    last_ping_ = now;
    ping_waits_ = true;
    nghttp2_submit_ping(host_.session, NGHTTP2_FLAG_NONE, nullptr);
    Touch();
  }
  ArmCheck();
}

}  // namespace fncache::http2
