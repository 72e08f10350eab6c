// SPDX-License-Identifier: Apache-2.0
// The load client's HTTP/2 against libnghttp2's server, on a socket pair: the
// one's bytes are what the other says that they must be.
#include "runner/load/wire/http2_connection.h"

#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::runner::load::wire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Pairs = std::vector<std::pair<std::string, std::string>>;

const Http2Connection::Headers& RequestHeaders() {
  static const auto* const headers = new Http2Connection::Headers{
      {":method", "POST"},
      {":scheme", "http"},
      {":path", "/a.B/C"},
      {":authority", "127.0.0.1:1"},
      {"content-type", "application/grpc"},
      {"user-agent", "test"},
      {"te", "trailers"},
      {"x-more", std::string(150, 'm')},
  };
  return *headers;
}

struct Received {
  Pairs headers;
  std::string body;
};

// The server's end, driven by hand.
class Peer {
 public:
  struct Options {
    std::vector<nghttp2_settings_entry> settings;
    size_t padding = 0;
    // More response headers.
    Pairs headers;
  };

  Peer(int fd, Options options) : fd_(fd), options_(std::move(options)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
           size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
           void* self) {
          static_cast<Peer*>(self)
              ->requests[frame->hd.stream_id]
              .headers.emplace_back(
                  std::string(reinterpret_cast<const char*>(name), name_size),
                  std::string(reinterpret_cast<const char*>(value),
                              value_size));
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, uint8_t, int32_t id,
                      const uint8_t* data, size_t size, void* self) {
          static_cast<Peer*>(self)->requests[id].body.append(
              reinterpret_cast<const char*>(data), size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          static_cast<Peer*>(self)->OnFrame(*frame);
          return 0;
        });
    nghttp2_session_callbacks_set_select_padding_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, size_t max,
                      void* self) {
          return static_cast<ssize_t>(std::min(
              max,
              frame->hd.length + static_cast<Peer*>(self)->options_.padding));
        });
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame*, int code, void* self) {
          static_cast<Peer*>(self)->complaints.emplace_back(
              nghttp2_strerror(code));
          return 0;
        });
    nghttp2_session_server_new(&session, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE,
                            options_.settings.data(), options_.settings.size());
  }
  ~Peer() {
    nghttp2_session_del(session);
    close(fd_);
  }

  // Answers with headers, the body and trailers.
  void Answer(int32_t id, const std::string& body) {
    bodies_.push_back({body, 0});
    nghttp2_data_provider provider;
    provider.source.ptr = &bodies_.back();
    provider.read_callback = [](nghttp2_session* session, int32_t stream,
                                uint8_t* to, size_t size, uint32_t* flags,
                                nghttp2_data_source* source, void*) {
      auto* const left =
          static_cast<std::pair<std::string, size_t>*>(source->ptr);
      const size_t n = std::min(size, left->first.size() - left->second);
      std::copy_n(left->first.data() + left->second, n, to);
      left->second += n;
      if (left->second == left->first.size()) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_nv trailer = Header("grpc-status", "0");
        nghttp2_submit_trailer(session, stream, &trailer, 1);
      }
      return static_cast<ssize_t>(n);
    };
    std::vector<nghttp2_nv> headers = {
        Header(":status", "200"), Header("content-type", "application/grpc")};
    for (const auto& [name, value] : options_.headers) {
      headers.push_back(Header(name, value));
    }
    ASSERT_EQ(nghttp2_submit_response(session, id, headers.data(),
                                      headers.size(), &provider),
              0);
  }

  // Reads and writes what there is; whether anything moved.
  bool Turn() {
    bool moved = false;
    char buffer[65536];
    ssize_t size = 0;
    while ((size = read(fd_, buffer, sizeof(buffer))) > 0) {
      moved = true;
      const ssize_t taken = nghttp2_session_mem_recv(
          session, reinterpret_cast<const uint8_t*>(buffer), size);
      if (taken != size) {
        complaints.emplace_back("mem_recv");
        return false;
      }
    }
    while (true) {
      if (out_.empty()) {
        const uint8_t* data = nullptr;
        const ssize_t n = nghttp2_session_mem_send(session, &data);
        if (n <= 0) break;
        out_.assign(reinterpret_cast<const char*>(data), n);
      }
      const ssize_t written = write(fd_, out_.data(), out_.size());
      if (written <= 0) break;
      out_.erase(0, written);
      moved = true;
    }
    return moved;
  }

  nghttp2_session* session = nullptr;
  std::map<int32_t, Received> requests;
  std::vector<int32_t> complete;  // streams whose request is complete
  std::vector<std::pair<int32_t, uint32_t>> resets;
  std::vector<std::string> complaints;
  int pings = 0;
  // Called with every complete request; by default it is answered in kind.
  std::function<void(int32_t)> on_request = [this](int32_t id) {
    Answer(id, requests[id].body);
  };

 private:
  // Refers to both.
  static nghttp2_nv Header(absl::string_view name, absl::string_view value) {
    return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
            reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())),
            name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
  }

  void OnFrame(const nghttp2_frame& frame) {
    const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if ((frame.hd.type == NGHTTP2_DATA || frame.hd.type == NGHTTP2_HEADERS) &&
        ends) {
      complete.push_back(frame.hd.stream_id);
      on_request(frame.hd.stream_id);
    } else if (frame.hd.type == NGHTTP2_RST_STREAM) {
      resets.emplace_back(frame.hd.stream_id, frame.rst_stream.error_code);
    } else if (frame.hd.type == NGHTTP2_PING &&
               (frame.hd.flags & NGHTTP2_FLAG_ACK) != 0) {
      ++pings;
    }
  }

  const int fd_;
  const Options options_;
  std::deque<std::pair<std::string, size_t>> bodies_;
  std::string out_;
};

// A call and what became of it.
struct TestStream : Http2Stream {
  std::string text;  // of the body
  Pairs headers;
  std::string data;
  int ends = 0;
  StreamEnd end = StreamEnd::kComplete;
  uint32_t code = 0;
};

class Http2ConnectionTest : public ::testing::Test, public Http2Handler {
 protected:
  void Start(Peer::Options options = {}) {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    client_ = std::make_unique<Http2Connection>(fds[0], RequestHeaders(), this);
    peer_ = std::make_unique<Peer>(fds[1], std::move(options));
    peer_fd_ = fds[1];
  }

  void OnHeader(Http2Stream* stream, absl::string_view name,
                absl::string_view value) override {
    static_cast<TestStream*>(stream)->headers.emplace_back(name, value);
  }
  void OnData(Http2Stream* stream, absl::string_view data) override {
    static_cast<TestStream*>(stream)->data.append(data.data(), data.size());
  }
  void OnEnd(Http2Stream* stream, StreamEnd end, uint32_t code) override {
    auto* const ended = static_cast<TestStream*>(stream);
    ++ended->ends;
    ended->end = end;
    ended->code = code;
  }

  // Both ends, until nothing moves any more; the client's first failure.
  absl::Status Settle() {
    std::vector<char> buffer(read_size_);
    uint64_t before = 0;
    bool peer_moved = true;
    do {
      before = client_->bytes_read() + client_->bytes_written();
      absl::Status status = client_->Flush();
      if (status.ok()) status = client_->Read(&buffer);
      if (!status.ok()) return status;
      peer_moved = peer_->Turn();
    } while (peer_moved ||
             before != client_->bytes_read() + client_->bytes_written());
    return absl::OkStatus();
  }

  // Opens a call whose body is `text` in uneven parts.
  TestStream* Open(std::string text) {
    streams_.emplace_back();
    TestStream* const stream = &streams_.back();
    stream->text = std::move(text);
    const absl::string_view all = stream->text;
    const size_t n = all.size();
    stream->body = {all.substr(0, n / 3), all.substr(n / 3, n > 40 ? 16 : 0),
                    all.substr(n / 3 + (n > 40 ? 16 : 0), n / 3),
                    absl::string_view(),
                    all.substr(std::min(n, n / 3 + (n > 40 ? 16 : 0) + n / 3))};
    client_->Open(stream);
    return stream;
  }

  static std::string Text(size_t size) {
    std::string text(size, ' ');
    for (size_t i = 0; i < size; ++i) {
      text[i] = static_cast<char>('a' + i * i % 23);
    }
    return text;
  }

  size_t read_size_ = 65536;
  std::unique_ptr<Http2Connection> client_;
  std::unique_ptr<Peer> peer_;
  int peer_fd_ = -1;
  std::deque<TestStream> streams_;
};

void ExpectEcho(const TestStream& stream) {
  EXPECT_EQ(stream.ends, 1);
  EXPECT_EQ(stream.end, StreamEnd::kComplete);
  EXPECT_TRUE(stream.data == stream.text);
  EXPECT_THAT(stream.headers, Contains(Pair(":status", "200")));
  EXPECT_THAT(stream.headers, Contains(Pair("grpc-status", "0")));
}

TEST_F(Http2ConnectionTest, CallsCarryTheirHeadersAndBodiesThere) {
  Start();
  EXPECT_FALSE(client_->CanOpen());
  ASSERT_TRUE(Settle().ok());
  ASSERT_TRUE(client_->CanOpen());
  for (const size_t size : {1, 5, 41, 300, 16384, 16385, 200000}) {
    TestStream* const stream = Open(Text(size));
    ASSERT_TRUE(Settle().ok());
    ExpectEcho(*stream);
    EXPECT_EQ(peer_->requests[stream->id].headers, RequestHeaders());
    EXPECT_TRUE(peer_->requests[stream->id].body == stream->text);
  }
  EXPECT_THAT(peer_->complaints, IsEmpty());
  EXPECT_THAT(peer_->resets, IsEmpty());
  EXPECT_EQ(client_->open_streams(), 0u);
}

// More than all windows hold, at once and taking turns.
TEST_F(Http2ConnectionTest, ManyLargeCallsShareTheWindows) {
  Start();
  ASSERT_TRUE(Settle().ok());
  std::vector<TestStream*> streams;
  for (size_t i = 0; i < 20; ++i) streams.push_back(Open(Text(150000 + i)));
  ASSERT_TRUE(Settle().ok());
  for (const TestStream* const stream : streams) ExpectEcho(*stream);
  EXPECT_THAT(peer_->complaints, IsEmpty());
}

TEST_F(Http2ConnectionTest, ShortCallsOvertakeLongOnes) {
  Start();
  ASSERT_TRUE(Settle().ok());
  Open(Text(1'000'000));
  TestStream* const last = Open(Text(100));
  ASSERT_TRUE(Settle().ok());
  EXPECT_EQ(peer_->complete.front(), static_cast<int32_t>(last->id));
}

TEST_F(Http2ConnectionTest, AfterTheFirstCallHeadersAreReferences) {
  Start();
  ASSERT_TRUE(Settle().ok());
  Open(Text(10));
  ASSERT_TRUE(Settle().ok());
  const uint64_t before = client_->bytes_written();
  TestStream* const second = Open(Text(10));
  ASSERT_TRUE(Settle().ok());
  // Two frame headers, eight indices, the body.
  EXPECT_EQ(client_->bytes_written() - before, 9 + 8 + 9 + 10u);
  EXPECT_EQ(peer_->requests[second->id].headers, RequestHeaders());
}

TEST_F(Http2ConnectionTest, KeepsToASmallerHeaderTable) {
  // None of the table; one that holds half of the headers; the usual.
  for (const uint32_t size : {0, 200, 4096, 65536}) {
    SCOPED_TRACE(size);
    Start({{{NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, size}}, 0, {}});
    ASSERT_TRUE(Settle().ok());
    for (int i = 0; i < 3; ++i) {
      TestStream* const stream = Open(Text(10));
      ASSERT_TRUE(Settle().ok());
      ExpectEcho(*stream);
      EXPECT_EQ(peer_->requests[stream->id].headers, RequestHeaders());
    }
    EXPECT_THAT(peer_->complaints, IsEmpty());
  }
}

TEST_F(Http2ConnectionTest, FollowsWindowsThatChangeUnderWay) {
  Start({{{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 10}}, 0, {}});
  ASSERT_TRUE(Settle().ok());
  nghttp2_session* const session = peer_->session;
  TestStream* const stream = Open(Text(60000));
  TestStream* const other = Open(Text(60000));
  ASSERT_TRUE(Settle().ok());
  const nghttp2_settings_entry wider = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                        5000};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &wider, 1);
  ASSERT_TRUE(Settle().ok());
  const nghttp2_settings_entry narrower = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                           1};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &narrower, 1);
  ASSERT_TRUE(Settle().ok());
  nghttp2_session_set_local_window_size(
      session, NGHTTP2_FLAG_NONE, static_cast<int32_t>(stream->id), 100000);
  nghttp2_session_set_local_window_size(
      session, NGHTTP2_FLAG_NONE, static_cast<int32_t>(other->id), 100000);
  ASSERT_TRUE(Settle().ok());
  ExpectEcho(*stream);
  ExpectEcho(*other);
  EXPECT_THAT(peer_->complaints, IsEmpty());
}

TEST_F(Http2ConnectionTest, OpensNoMoreStreamsThanThePeerAllows) {
  Start({{{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 2}}, 0, {}});
  peer_->on_request = [](int32_t) {};
  ASSERT_TRUE(Settle().ok());
  Open(Text(1));
  EXPECT_TRUE(client_->CanOpen());
  TestStream* const second = Open(Text(1));
  EXPECT_FALSE(client_->CanOpen());
  ASSERT_TRUE(Settle().ok());
  EXPECT_FALSE(client_->CanOpen());
  peer_->Answer(static_cast<int32_t>(second->id), "x");
  ASSERT_TRUE(Settle().ok());
  EXPECT_TRUE(client_->CanOpen());
}

// Padded frames, header blocks of several frames, all in pieces of any size.
TEST_F(Http2ConnectionTest, ReadsWhateverFormAnswersHave) {
  for (const size_t read_size : {1, 7, 10, 4096, 65536}) {
    SCOPED_TRACE(read_size);
    read_size_ = read_size;
    Start({{}, 100, {{"x-long", Text(30000)}, {"cache-status", "c; hit"}}});
    ASSERT_TRUE(Settle().ok());
    std::vector<TestStream*> streams;
    for (int i = 0; i < 3; ++i) streams.push_back(Open(Text(20000)));
    ASSERT_TRUE(Settle().ok());
    for (const TestStream* const stream : streams) {
      ExpectEcho(*stream);
      EXPECT_THAT(stream->headers, Contains(Pair("x-long", Text(30000))));
      EXPECT_THAT(stream->headers, Contains(Pair("cache-status", "c; hit")));
    }
  }
}

TEST_F(Http2ConnectionTest, AnEarlyAnswerEndsTheCallAndItsBody) {
  Start();
  peer_->on_request = [](int32_t) {};
  ASSERT_TRUE(Settle().ok());
  TestStream* const stream = Open(Text(10'000'000));
  ASSERT_TRUE(client_->Flush().ok());
  peer_->Turn();
  peer_->Answer(static_cast<int32_t>(stream->id), "no");
  ASSERT_TRUE(Settle().ok());
  EXPECT_EQ(stream->ends, 1);
  EXPECT_EQ(stream->end, StreamEnd::kComplete);
  EXPECT_EQ(stream->data, "no");
  EXPECT_THAT(peer_->resets, ElementsAre(Pair(stream->id, NGHTTP2_CANCEL)));

  peer_->on_request = [this](int32_t id) { peer_->Answer(id, "yes"); };
  TestStream* const next = Open(Text(1000));
  ASSERT_TRUE(Settle().ok());
  EXPECT_EQ(next->data, "yes");
}

TEST_F(Http2ConnectionTest, AResetIsToldWithItsCode) {
  Start();
  peer_->on_request = [this](int32_t id) {
    nghttp2_submit_rst_stream(
        peer_->session, NGHTTP2_FLAG_NONE, id,
        id == 1 ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_REFUSED_STREAM);
  };
  ASSERT_TRUE(Settle().ok());
  TestStream* const calm = Open(Text(1));
  TestStream* const refused = Open(Text(1));
  ASSERT_TRUE(Settle().ok());
  EXPECT_EQ(calm->ends, 1);
  EXPECT_EQ(calm->end, StreamEnd::kReset);
  EXPECT_EQ(calm->code, static_cast<uint32_t>(NGHTTP2_ENHANCE_YOUR_CALM));
  EXPECT_EQ(refused->ends, 1);
  EXPECT_EQ(refused->end, StreamEnd::kRefused);
}

TEST_F(Http2ConnectionTest, GoAwayRefusesWhatWasNotTaken) {
  Start();
  peer_->on_request = [](int32_t) {};
  ASSERT_TRUE(Settle().ok());
  TestStream* const first = Open(Text(1));
  ASSERT_TRUE(Settle().ok());
  nghttp2_submit_goaway(peer_->session, NGHTTP2_FLAG_NONE,
                        static_cast<int32_t>(first->id), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  TestStream* const late = Open(Text(1));
  ASSERT_TRUE(Settle().ok());
  EXPECT_TRUE(client_->going_away());
  EXPECT_FALSE(client_->CanOpen());
  EXPECT_EQ(first->ends, 0);
  EXPECT_EQ(late->ends, 1);
  EXPECT_EQ(late->end, StreamEnd::kRefused);
  peer_->Answer(static_cast<int32_t>(first->id), "bye");
  ASSERT_TRUE(Settle().ok());
  EXPECT_EQ(first->data, "bye");
  EXPECT_EQ(client_->open_streams(), 0u);
}

TEST_F(Http2ConnectionTest, GoAwayWithAnErrorEndsTheConnection) {
  Start();
  ASSERT_TRUE(Settle().ok());
  const std::string reason = "too_many_pings";
  nghttp2_submit_goaway(
      peer_->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_ENHANCE_YOUR_CALM,
      reinterpret_cast<const uint8_t*>(reason.data()), reason.size());
  EXPECT_THAT(std::string(Settle().message()), HasSubstr("too_many_pings"));
}

TEST_F(Http2ConnectionTest, PingsAreAnswered) {
  Start();
  ASSERT_TRUE(Settle().ok());
  nghttp2_submit_ping(peer_->session, NGHTTP2_FLAG_NONE, nullptr);
  ASSERT_TRUE(Settle().ok());
  EXPECT_EQ(peer_->pings, 1);
}

TEST_F(Http2ConnectionTest, APeerThatIsGoneOrMadIsAnError) {
  Start();
  ASSERT_TRUE(Settle().ok());
  peer_.reset();
  std::vector<char> buffer(100);
  EXPECT_EQ(client_->Read(&buffer).code(), absl::StatusCode::kUnavailable);

  Start();
  ASSERT_TRUE(Settle().ok());
  ASSERT_EQ(write(peer_fd_, "HTTP/1.1 400 Bad Request\r\n", 26), 26);
  EXPECT_EQ(client_->Read(&buffer).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace fncache::runner::load::wire
