// SPDX-License-Identifier: Apache-2.0
// Peers that break rules, stall or speak something else, byte by byte.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http2/target.h"
#include "tests/common/http2_server.h"
#include "tests/http2/connection_test.h"

namespace fncache::http2 {
namespace {

using ::fncache::testing::Http2Header;
using ::testing::HasSubstr;

// A connected socket to the server, for bytes made by hand.
class RawPeer {
 public:
  explicit RawPeer(const std::string& target)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto parsed = ParseTarget(target);
    EXPECT_TRUE(parsed.ok());
    const Endpoint& to = parsed->endpoints[0];
    EXPECT_EQ(
        connect(fd_, reinterpret_cast<const sockaddr*>(&to.address), to.size),
        0);
  }
  ~RawPeer() { close(fd_); }
  bool Send(const std::string& bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Within this time. Never once the connection has ended.
  bool CanSend(absl::Duration time) const {
    pollfd one = {fd_, POLLOUT, 0};
    return poll(&one, 1, static_cast<int>(absl::ToInt64Milliseconds(time))) >
               0 &&
           (one.revents & (POLLERR | POLLHUP)) == 0;
  }
  // Unsent bytes go first the next time.
  void SendSome(const std::string& bytes) {
    left_ += bytes;
    const ssize_t n =
        send(fd_, left_.data(), left_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) left_.erase(0, static_cast<size_t>(n));
  }
  // Whether SendSome has sent what it was given so far.
  bool sent_all() const { return left_.empty(); }
  void Shutdown() const { shutdown(fd_, SHUT_RDWR); }
  // Until `text` has come, or the end.
  std::string ReadUntil(const std::string& text) const {
    std::string all;
    char piece[4096];
    while (all.find(text) == std::string::npos) {
      const ssize_t n = recv(fd_, piece, sizeof piece, 0);
      if (n <= 0) break;
      all.append(piece, static_cast<size_t>(n));
    }
    return all;
  }
  // Returns the next bytes; nothing at the end.
  std::string ReadSome() const {
    std::string piece(64 << 10, '\0');
    const ssize_t n = recv(fd_, piece.data(), piece.size(), 0);
    piece.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return piece;
  }
  // All until the end.
  std::string ReadAll() const {
    std::string all;
    char piece[4096];
    for (;;) {
      const ssize_t n = recv(fd_, piece, sizeof piece, 0);
      if (n <= 0) return all;
      all.append(piece, static_cast<size_t>(n));
    }
  }

 private:
  const int fd_;
  std::string left_;
};

std::string Frame(char type, char flags, uint32_t id,
                  const std::string& payload) {
  const size_t n = payload.size();
  std::string out = {static_cast<char>(n >> 16),
                     static_cast<char>(n >> 8),
                     static_cast<char>(n),
                     type,
                     flags,
                     static_cast<char>(id >> 24),
                     static_cast<char>(id >> 16),
                     static_cast<char>(id >> 8),
                     static_cast<char>(id)};
  return out + payload;
}
const char kClientPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// POST http /x
std::string Ask(uint32_t id, bool end = true) {
  return Frame(1, end ? 5 : 4, id,
               std::string("\x83\x86\x04\x02/x\x01\x01t", 9));
}

TEST_F(ConnectionTest, FramesThatDoNoWorkEndTheConnection) {
  Start();
  const std::string ping = Frame(6, 0, 0, std::string(8, 'p'));
  // An answer to none.
  const std::string pong = Frame(6, 1, 0, std::string(8, 'p'));
  const std::string settings = Frame(4, 0, 0, "");
  const std::string window = Frame(8, 0, 0, std::string("\0\0\0\1", 4));
  const std::string priority = Frame(2, 0, 1, std::string("\0\0\0\0\20", 5));
  for (const std::string& frame : {ping, pong, settings, window, priority}) {
    RawPeer peer(server_->address());
    ASSERT_TRUE(peer.Send(kClientPreface + settings));
    std::string many;
    for (int i = 0; i < 3000; ++i) many += frame;
    peer.Send(many);
    const std::string answer = peer.ReadAll();
    // GOAWAY with ENHANCE_YOUR_CALM.
    const size_t code = answer.rfind(std::string("\0\0\0\x0b", 4));
    EXPECT_NE(code, std::string::npos)
        << static_cast<int>(frame[3]) << ": " << answer.size() << " bytes";
  }
}

// A peer of a server with this handler, on a loop of their own.
class ServedPeer {
 public:
  explicit ServedPeer(Server::Handler* handler) {
    server_->Start({{loop_.loop(), handler}});
  }
  ~ServedPeer() {
    server_->Stop();
    peer_.Shutdown();
    server_->Join();
  }
  ServedPeer(const ServedPeer&) = delete;
  ServedPeer& operator=(const ServedPeer&) = delete;
  const RawPeer& peer() const { return peer_; }

 private:
  RunningLoop loop_;
  const std::unique_ptr<Server> server_ =
      *Server::Listen("127.0.0.1:0", ServerOptions());
  const RawPeer peer_{server_->address()};
};

// Others say how it answers a request, of which nothing is kept.
class Answerer : public Server::Handler, public StreamUser {
 public:
  StreamUser* OnRequest(Stream& /*stream*/) override { return this; }
  int busy() const override { return 0; }
  void OnData(Stream& /*stream*/, absl::string_view /*bytes*/) override {}
  void OnClosed(Stream& /*stream*/, const StreamEnd& /*end*/) override {}
};

// Answers every call with as much.
class Fountain final : public Answerer {
 public:
  static constexpr size_t kBytes = 8 << 20;
  void OnPeerEnd(Stream& stream) override {
    Fields fields;
    fields.Add(":status", "200");
    stream.Answer(fields, /*end=*/false);
    stream.Send(Slice::Copy(std::string(kBytes, 'x')));
    stream.End();
  }
};

// A peer that reads much has to send window updates, and may send pings to
// measure the speed.
TEST(FrameBudgetTest, BytesThatAreSentPayForWhatTheyMakePeersSay) {
  Fountain handler;
  const ServedPeer served(&handler);
  const RawPeer& peer = served.peer();
  ASSERT_TRUE(
      peer.Send(kClientPreface + Frame(4, 0, 0, "") +
                Frame(1, 5, 1,
                      absl::StrCat("\x82\x86", Http2Header(":path", "/"),
                                   Http2Header(":authority", "test")))));
  size_t body = 0;
  std::string bytes;
  while (body < Fountain::kBytes) {
    const std::string more = peer.ReadSome();
    if (more.empty()) break;
    bytes += more;
    while (bytes.size() >= 9) {
      const auto at = [&bytes](int i) {
        return static_cast<unsigned char>(bytes[i]);
      };
      const size_t size = at(0) << 16 | at(1) << 8 | at(2);
      if (bytes.size() < 9 + size) break;
      if (at(3) == 0) {
        body += size;
        const std::string window = {0, 0, static_cast<char>(size >> 8),
                                    static_cast<char>(size)};
        peer.Send(Frame(8, 0, 0, window) + Frame(8, 0, 1, window) +
                  Frame(6, 0, 0, std::string(8, 'p')));
      }
      bytes.erase(0, 9 + size);
    }
  }
  EXPECT_EQ(body, Fountain::kBytes);
}

// Otherwise a byte would pay for the window of the next one, for ever.
TEST(FrameBudgetTest, WindowsOfAByteAreNotPaidForByWhatTheyLetOut) {
  Fountain handler;
  const ServedPeer served(&handler);
  const RawPeer& peer = served.peer();
  // SETTINGS_INITIAL_WINDOW_SIZE of 0.
  ASSERT_TRUE(peer.Send(
      kClientPreface + Frame(4, 0, 0, std::string("\0\4\0\0\0\0", 6)) +
      Frame(1, 5, 1,
            absl::StrCat("\x82\x86", Http2Header(":path", "/"),
                         Http2Header(":authority", "test")))));
  const std::string window = Frame(8, 0, 1, std::string("\0\0\0\1", 4));
  bool ended = false;
  for (int i = 0; i < 20'000 && !ended; ++i) {
    if (!peer.Send(window)) ended = true;
    // One at a time, as each is to have a frame of its own.
    const std::string came = peer.ReadSome();
    ended = ended || came.empty() ||
            came.find(std::string("\0\0\0\x0b", 4)) != std::string::npos;
  }
  EXPECT_TRUE(ended);
}

// A client in a hurry cancels complete requests, hundreds of times a second. A
// client that resets incomplete requests pays more than that.
TEST_F(ConnectionTest, ResetsOfCompleteRequestsCostLess) {
  Start();
  for (const bool complete : {true, false}) {
    const RawPeer peer(server_->address());
    ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "")));
    const std::string block =
        absl::StrCat("\x83\x86", Http2Header(":path", "/hang"),
                     Http2Header(":authority", "test"));
    const char flags = complete ? 5 : 4;
    for (uint32_t id = 1; id < 6001; id += 2) {
      peer.Send(Frame(1, flags, id, block) +
                Frame(3, 0, id, std::string("\0\0\0\x08", 4)));
    }
    peer.Send(Frame(6, 0, 0, std::string(8, 'p')));
    const std::string pong = Frame(6, 1, 0, std::string(8, 'p'));
    const std::string answer = peer.ReadUntil(pong);
    EXPECT_EQ(answer.find(pong) != std::string::npos, complete);
    peer.Shutdown();
  }
}

// A field may take a byte, and work as any other.
TEST_F(ConnectionTest, HundredsOfFieldsAreWork) {
  Start();
  for (const size_t fields : {size_t{200}, size_t{1900}}) {
    const RawPeer peer(server_->address());
    ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "")));
    // One goes to the table, and is referred to.
    const std::string block = absl::StrCat(
        "\x83\x86", Http2Header(":path", "/echo"),
        Http2Header(":authority", "test"), absl::string_view("\x40\x01x\0", 4),
        std::string(fields, '\xbe'));
    bool ended = false;
    for (uint32_t id = 1; id < 1001 && !ended; id += 2) {
      peer.Send(Frame(1, 5, id, block));
      if (id % 100 == 1) {
        const std::string ping = std::to_string(10'000'000 + id);
        peer.Send(Frame(6, 0, 0, ping));
        ended = peer.ReadUntil(Frame(6, 1, 0, ping)).find(ping) ==
                std::string::npos;
      }
    }
    EXPECT_EQ(ended, fields == 1900);
    peer.Shutdown();
  }
}

// So they are where a stream is refused, and where they are late for one.
TEST_F(ConnectionTest, HundredsOfFieldsForNobodyAreWork) {
  server_options_.connection.max_streams = 64;
  Start();
  const std::string block = absl::StrCat(
      "\x83\x86", Http2Header(":path", "/hang"), Http2Header(":authority", "t"),
      absl::string_view("\x40\x01x\0", 4));
  const std::string many(14'000, '\xbe');
  struct Case {
    bool late;
    bool apart;  // most of them in frames of their own
  };
  for (const Case& test : {Case{false, false}, Case{true, false},
                           Case{false, true}, Case{true, true}}) {
    SCOPED_TRACE(absl::StrCat(test.late, test.apart));
    const bool late = test.late;
    const int before = handler_.requests;
    const RawPeer peer(server_->address());
    std::string calls;
    for (uint32_t i = 0; i < 64; ++i) {
      calls += late ? Ask(2 * i + 1) : Frame(1, 4, 2 * i + 1, block);
    }
    ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "") + calls));
    ASSERT_TRUE(Eventually([&] { return handler_.requests == before + 64; }));
    if (late) {
      ASSERT_TRUE(Eventually([&] { return handler_.running == 0; }));
    }
    std::string code;
    for (uint32_t i = 64; i < 84 && code.empty(); ++i) {
      const uint32_t id = late ? 1 : 2 * i + 1;
      peer.Send(test.apart ? Frame(1, 1, id, block) + Frame(9, 0, id, many) +
                                 Frame(9, 4, id, many)
                           : Frame(1, 5, id, block + many));
      const std::string ping = std::to_string(10'000'000 + i);
      peer.Send(Frame(6, 0, 0, ping));
      const std::string answer = peer.ReadUntil(Frame(6, 1, 0, ping));
      if (answer.find(ping) == std::string::npos) code = answer;
    }
    EXPECT_THAT(code, HasSubstr(std::string("\0\0\0\x0b", 4)));
    peer.Shutdown();
    ASSERT_TRUE(Eventually([&] { return handler_.running == 0; }));
  }
}

// It would stay for ever, and no limit knows it as a call.
TEST_F(ConnectionTest, AHeaderBlockEndsInTime) {
  server_options_.connection.handshake_timeout = absl::Milliseconds(300);
  std::atomic<int> ended{0};
  server_options_.events.ended = [&](const Connection& /*connection*/,
                                     ConnectionEnd end,
                                     const std::string& words) {
    EXPECT_EQ(end, ConnectionEnd::kTimeout);
    EXPECT_EQ(words, "the peer did not end a header block in time");
    ++ended;
  };
  Start();
  const RawPeer peer(server_->address());
  // Without END_HEADERS, and some more of it.
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "") +
                        Frame(1, 0, 1, "\x83\x86") + Frame(9, 0, 1, "\x84")));
  EXPECT_TRUE(Eventually([&] { return ended == 1; }));
  peer.ReadAll();
}

// A block for a closed stream, and its end, reach no handler.
TEST_F(ConnectionTest, ABlockForNobodyEndsAsAnyOther) {
  server_options_.connection.handshake_timeout = absl::Milliseconds(200);
  Start();
  const RawPeer peer(server_->address());
  std::string calls;
  for (uint32_t i = 0; i < 40; ++i) calls += Ask(2 * i + 1);
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "") + calls));
  ASSERT_TRUE(Eventually([&] { return handler_.requests == 40; }));
  ASSERT_TRUE(Eventually([&] { return handler_.running == 0; }));
  peer.Send(Frame(1, 1, 1, "\x83") + Frame(9, 4, 1, "\x86"));
  absl::SleepFor(absl::Milliseconds(500));
  const std::string pong = Frame(6, 1, 0, std::string(8, 'p'));
  peer.Send(Frame(6, 0, 0, std::string(8, 'p')));
  EXPECT_THAT(peer.ReadUntil(pong), HasSubstr(pong));
  peer.Shutdown();
}

// nghttp2 walks all streams for each.
TEST_F(ConnectionTest, SettingsOfManyStreamsAreMuchWork) {
  Start();
  const RawPeer peer(server_->address());
  std::string calls;
  for (uint32_t i = 0; i < 640; ++i) {
    calls += Frame(1, 4, 2 * i + 1,
                   absl::StrCat("\x83\x86", Http2Header(":path", "/hang"),
                                Http2Header(":authority", "t")));
  }
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "") + calls));
  ASSERT_TRUE(Eventually([&] { return handler_.requests == 640; }));
  // SETTINGS_INITIAL_WINDOW_SIZE; 1,000 were allowed otherwise.
  std::string settings;
  for (int i = 0; i < 200; ++i) {
    settings += Frame(4, 0, 0, std::string("\0\4\0\0\0\1", 6));
  }
  peer.Send(settings);
  EXPECT_THAT(peer.ReadAll(), HasSubstr(std::string("\0\0\0\x0b", 4)));
}

// An answer's headers pass, too, if its reset is in the same iteration.
TEST(FrameBudgetTest, AResetComesBehindHeadersThatWereJustMade) {
  class Resetting final : public Answerer {
   public:
    void OnPeerEnd(Stream& stream) override {
      Fields fields;
      fields.Add(":status", "200");
      stream.Answer(fields, /*end=*/false);
      stream.ResetWhenSent(kInternalError);
    }
  };
  Resetting handler;
  const ServedPeer served(&handler);
  const RawPeer& peer = served.peer();
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "") + Ask(1)));
  const std::string reset = Frame(3, 0, 1, std::string("\0\0\0\2", 4));
  const std::string answer = peer.ReadUntil(reset);
  EXPECT_THAT(answer, HasSubstr(std::string("\1\4\0\0\0\1\x88", 7)));
  EXPECT_THAT(answer, HasSubstr(reset));
}

// Nor do frames of no type that there is, empty or not; some are no harm.
TEST_F(ConnectionTest, UnknownFramesAreNoWork) {
  Start();
  for (const std::string& frame :
       {Frame(0xee, 0, 0, ""), Frame(16, 0, 0, std::string(100, 'p'))}) {
    RawPeer peer(server_->address());
    ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "")));
    std::string some;
    for (int i = 0; i < 500; ++i) some += frame;
    ASSERT_TRUE(peer.Send(some + Frame(6, 0, 0, std::string(8, 'p'))));
    EXPECT_THAT(peer.ReadUntil(Frame(6, 1, 0, std::string(8, 'p'))),
                HasSubstr(Frame(6, 1, 0, std::string(8, 'p'))));
    std::string many;
    for (int i = 0; i < 3000; ++i) many += frame;
    peer.Send(many);
    EXPECT_THAT(peer.ReadAll(), HasSubstr(std::string("\0\0\0\x0b", 4)));
  }
}

TEST_F(ConnectionTest, DataWithoutBytesIsNoWork) {
  Start();
  // With padding, the first byte of which is its length, and without.
  for (const std::string& frame :
       {Frame(0, 8, 1, std::string(1, '\0')),
        Frame(0, 8, 1, '\5' + std::string(5, '\0')), Frame(0, 0, 1, "")}) {
    SCOPED_TRACE(frame.size());
    RawPeer peer(server_->address());
    ASSERT_TRUE(
        peer.Send(kClientPreface + Frame(4, 0, 0, "") + Ask(1, /*end=*/false)));
    std::string some;
    for (int i = 0; i < 500; ++i) some += frame;
    const std::string pong = Frame(6, 1, 0, std::string(8, 'p'));
    ASSERT_TRUE(peer.Send(some + Frame(6, 0, 0, std::string(8, 'p'))));
    EXPECT_THAT(peer.ReadUntil(pong), HasSubstr(pong));
    std::string many;
    for (int i = 0; i < 3000; ++i) many += frame;
    peer.Send(many);
    EXPECT_THAT(peer.ReadAll(), HasSubstr(std::string("\0\0\0\x0b", 4)));
  }
}

// One byte and much padding is a small message.
TEST_F(ConnectionTest, DataWithPaddingIsWork) {
  Start();
  RawPeer peer(server_->address());
  std::string many;
  for (int i = 0; i < 3000; ++i)
    many += Frame(0, 8, 1, std::string("\1b\0", 3));
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "") +
                        Ask(1, /*end=*/false) + many + Frame(0, 1, 1, "last")));
  EXPECT_THAT(peer.ReadUntil("last"), HasSubstr("bblast"));
}

// Frames for streams that ended long ago.
TEST_F(ConnectionTest, WhatComesForNobodyIsNoWork) {
  Start();
  const std::string headers = Ask(1);
  const std::string data = Frame(0, 0, 1, "x");
  for (const std::string& frame : {headers, data}) {
    SCOPED_TRACE(frame == data ? "data" : "headers");
    const int before = handler_.requests;
    RawPeer peer(server_->address());
    ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "")));
    std::string calls;
    for (uint32_t i = 0; i < 40; ++i) calls += Ask(2 * i + 1);
    ASSERT_TRUE(peer.Send(calls));
    ASSERT_TRUE(Eventually([&] { return handler_.requests == before + 40; }));
    ASSERT_TRUE(Eventually([&] { return handler_.running == 0; }));
    std::string many;
    for (int i = 0; i < (frame == data ? 30'000 : 3000); ++i) many += frame;
    peer.Send(many);
    EXPECT_THAT(peer.ReadAll(), HasSubstr(std::string("\0\0\0\x0b", 4)));
    EXPECT_EQ(handler_.requests, before + 40);
  }
}

// GOAWAY, without an error.
std::string GoAway(const std::string& last) {
  return Frame(7, 0, 0, last + std::string(4, '\0') + "bye");
}

// A server opens no streams, so whichever the last of them is said to be means
// nothing. 2^31-1 is grpc-go's.
TEST_F(ConnectionTest, ACallerThatGoesKeepsItsCalls) {
  std::atomic<int> ended{0};
  server_options_.events.ended = [&](const Connection& /*connection*/,
                                     ConnectionEnd end,
                                     const std::string& words) {
    EXPECT_EQ(end, ConnectionEnd::kDone) << words;
    ++ended;
  };
  Start();
  int peers = 0;
  for (const std::string& last :
       {std::string("\x7f\xff\xff\xff", 4), std::string("\xff\xff\xff\xff", 4),
        std::string("\0\0\0\1", 4), std::string("\0\0\0\2", 4),
        std::string("\0\0\0\0", 4)}) {
    // Within its head, where that ends, and within and behind the last stream.
    for (const size_t first : {1, 9, 10, 12, 13, 15}) {
      SCOPED_TRACE(absl::StrCat(static_cast<int>(last[3]), " ", first));
      const int before = handler_.requests;
      RawPeer peer(server_->address());
      ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "") +
                            Ask(1, /*end=*/false)));
      ASSERT_TRUE(Eventually([&] { return handler_.requests == before + 1; }));
      // It may say so again, of fewer streams or more.
      const std::string rest = GoAway(last) + GoAway(std::string(4, '\x7f')) +
                               Frame(0, 1, 1, "still there");
      ASSERT_TRUE(peer.Send(rest.substr(0, first)));
      // After the second event-loop iteration it has been read.
      for (int turn = 0; turn < 2; ++turn) server_loop_.Do([] {});
      ASSERT_TRUE(peer.Send(rest.substr(first)));
      const std::string answer = peer.ReadAll();
      EXPECT_THAT(answer, HasSubstr("still there"));
      // To its trailers.
      EXPECT_THAT(answer, HasSubstr(std::string("\1\5\0\0\0\1", 6)));
      ++peers;
    }
  }
  EXPECT_TRUE(Eventually([&] { return ended == peers; }));
}

TEST_F(ConnectionTest, ACallerThatSaysGoodbyeBreaksNoRule) {
  std::atomic<int> done{0};
  std::atomic<int> broken{0};
  server_options_.events.ended = [&](const Connection& /*connection*/,
                                     ConnectionEnd end, const std::string&) {
    ++(end == ConnectionEnd::kDone ? done : broken);
  };
  Start();
  {
    RawPeer peer(server_->address());
    ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "") +
                          GoAway("\x7f\xff\xff\xff")));
    // The server has nothing to wait for.
    peer.ReadAll();
  }
  EXPECT_TRUE(Eventually([&] { return done == 1; }));
  EXPECT_EQ(broken, 0);
  // One that is too short for a last stream is still wrong.
  RawPeer peer(server_->address());
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "") +
                        Frame(7, 0, 0, "\x7f\xff") + Ask(1)));
  peer.ReadAll();
  EXPECT_TRUE(Eventually([&] { return broken == 1; }));
}

// The sum of the DATA frames in what a server said, and the largest of them.
std::pair<size_t, size_t> DataIn(absl::string_view said) {
  size_t sum = 0, largest = 0;
  while (said.size() >= 9) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(said[i]); };
    const size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
    if (byte(3) == 0) {
      sum += size;
      largest = std::max(largest, size);
    }
    said.remove_prefix(std::min(9 + size, said.size()));
  }
  return {sum, largest};
}

TEST_F(ConnectionTest, AServerTakesLargeFramesAndSendsUsualOnes) {
  server_options_.connection.largest_frame = 64 << 10;
  Start();
  RawPeer peer(server_->address());
  // MAX_FRAME_SIZE and INITIAL_WINDOW_SIZE of a megabyte each.
  const std::string settings("\0\5\0\x10\0\0\0\4\0\x10\0\0", 12);
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, settings)));
  // It holds once it is acknowledged.
  const std::string told("\0\5\0\1\0\0", 6);
  ASSERT_THAT(peer.ReadUntil(told), HasSubstr(told));
  ASSERT_TRUE(peer.Send(
      Frame(4, 1, 0, "") + Frame(8, 0, 0, std::string("\0\x10\0\0", 4)) +
      Ask(1, /*end=*/false) + Frame(0, 1, 1, std::string(60'000, 'b'))));
  std::string answer = peer.ReadUntil(std::string("\1\5\0\0\0\1", 6));
  // From its headers to its trailers.
  const size_t begin = answer.find(std::string("\1\4\0\0\0\1", 6));
  ASSERT_NE(begin, std::string::npos);
  answer.erase(0, begin - 3);
  EXPECT_EQ(DataIn(answer).first, 60'000U);
  EXPECT_EQ(DataIn(answer).second, 16'384U);
}

// However small they are.
TEST_F(ConnectionTest, FieldsBeyondTheBoundAreNoWork) {
  Start();
  RawPeer peer(server_->address());
  // accept-encoding: gzip, deflate
  const std::string fields(16'000, '\x90');
  std::string block = Frame(1, 0, 1, "\x83\x86" + fields);
  for (int i = 0; i < 6; ++i) block += Frame(9, 0, 1, fields);
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "") + block));
  EXPECT_THAT(peer.ReadAll(), HasSubstr(std::string("\0\0\0\x0b", 4)));
}

TEST_F(ConnectionTest, ThousandsOfSmallRequestsAtOnceAreAllAnswered) {
  server_options_.connection.max_streams = 20'000;
  Start();
  RawPeer peer(server_->address());
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "")));
  std::string many;
  for (uint32_t i = 0; i < 10'000; ++i) many += Ask(2 * i + 1);
  ASSERT_TRUE(peer.Send(many));
  EXPECT_TRUE(Eventually([&] { return handler_.requests == 10'000; }));
  EXPECT_TRUE(Eventually([&] { return handler_.running == 0; }));
}

// A peer that does not read its answers, and breaks the rules. Its error costs
// no work while the peer does not read it, and is dropped in time.
TEST_F(ConnectionTest, APeerThatDoesNotReadItsEndIsLetGo) {
  server_options_.connection.end_timeout = absl::Seconds(2);
  Start();
  RawPeer peer(server_->address());
  const std::string settings("\0\4\x40\0\0\0", 6);
  const std::string much("\x3f\0\0\0", 4);
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, settings) +
                        Frame(8, 0, 0, much)));
  // Answers of 24 MB, more than the sockets take.
  std::string asked;
  for (uint32_t id = 1; id < 1201; id += 2) {
    asked += Ask(id, /*end=*/false);
    for (int i = 0; i < 4; ++i) {
      asked += Frame(0, i == 3 ? 1 : 0, id, std::string(10'000, 'b'));
    }
  }
  ASSERT_TRUE(peer.Send(asked));
  ASSERT_TRUE(Eventually([&] { return handler_.requests == 600; }));
  std::string fields = Frame(1, 0, 1201, "\x83");
  for (int i = 0; i < 50; ++i) fields += Frame(9, 0, 1201, "");
  const absl::Time start = absl::Now();
  ASSERT_TRUE(peer.Send(fields + std::string(100'000, 'x')));
  rusage before;
  getrusage(RUSAGE_SELF, &before);
  EXPECT_TRUE(Eventually([&] { return handler_.running == 0; }));
  EXPECT_GE(absl::Now() - start, absl::Seconds(1));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  rusage after;
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(absl::DurationFromTimeval(after.ru_utime) +
                absl::DurationFromTimeval(after.ru_stime) -
                absl::DurationFromTimeval(before.ru_utime) -
                absl::DurationFromTimeval(before.ru_stime),
            absl::Seconds(1));
}

// Otherwise its answers would pile up.
TEST_F(ConnectionTest, APeerThatAsksAndDoesNotReadIsNotReadEither) {
  // Each request is refused because its fields are too large, without a body.
  // The answer is too large for HPACK's table, so that few fill the sockets. A
  // connection that reads nothing is closed after 20 s.
  handler_.why = std::string(8000, 'w');
  server_options_.connection.max_field_bytes = 16;
  server_options_.connection.budget = 1e9;
  server_options_.connection.budget_most = 1e9;
  Start();
  RawPeer peer(server_->address());
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "")));
  uint32_t id = 1;
  // Sends as long as something is taken within a second.
  while (peer.CanSend(absl::Seconds(1)) && id < 20'000'000) {
    std::string many;
    for (int i = 0; i < 500 && peer.sent_all(); ++i, id += 2) many += Ask(id);
    peer.SendSome(many);
  }
  EXPECT_LT(id, 20'000'000u);
  const int before = handler_.requests;
  // Once it reads, it goes on.
  std::thread reader([&] { peer.ReadAll(); });
  EXPECT_TRUE(Eventually([&] { return handler_.requests > before; }));
  loop_.Do([this] { client_ = nullptr; });
  peer.Shutdown();
  reader.join();
}

// One that knows the bound, having acknowledged it: the calls that it has stay.
TEST_F(ConnectionTest, AStreamBeyondTheBoundIsRefusedAlone) {
  server_options_.connection.max_streams = 2;
  std::atomic<int> refused{0};
  server_options_.events.stream_refused = [&] { ++refused; };
  Start();
  RawPeer peer(server_->address());
  const auto headers = [](uint32_t stream) {
    // POST, http; the body follows.
    return Frame(1, 4, stream,
                 "\x83\x86" + Http2Header(":path", "/echo") +
                     Http2Header(":authority", "x"));
  };
  ASSERT_TRUE(peer.Send(kClientPreface + Frame(4, 0, 0, "")));
  // The setting, as the server sends it.
  EXPECT_THAT(peer.ReadUntil(std::string("\0\3\0\0\0\2", 6)),
              HasSubstr(std::string("\0\3\0\0\0\2", 6)));
  ASSERT_TRUE(peer.Send(Frame(4, 1, 0, "") +  // SETTINGS, ACK
                        headers(1) + headers(3) + headers(5) +
                        Frame(0, 1, 5, "late") +
                        Frame(0, 1, 1, "still there")));
  const std::string answer = peer.ReadUntil("still there");
  EXPECT_THAT(answer, HasSubstr("still there"));
  // RST_STREAM of the third with REFUSED_STREAM.
  EXPECT_THAT(answer, HasSubstr(std::string("\0\0\4\3\0\0\0\0\5\0\0\0\7", 13)));
  EXPECT_EQ(refused, 1);
}

const char kHttp1Answer[] =
    "HTTP/1.1 426 Upgrade Required\r\nConnection: close\r\n\r\nnot here\n";

TEST_F(ConnectionTest, Http1IsToldWhatThisIs) {
  server_options_.connection.http1_answer = kHttp1Answer;
  Start();
  RawPeer peer(server_->address());
  ASSERT_TRUE(peer.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(peer.ReadAll(), HasSubstr("426 Upgrade Required"));
}

// Nothing that it could not read comes before.
TEST_F(ConnectionTest, WhatHttp1IsToldIsHttp1) {
  server_options_.connection.http1_answer = kHttp1Answer;
  Start();
  RawPeer peer(server_->address());
  ASSERT_TRUE(peer.Send("POST / HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_EQ(peer.ReadAll(), kHttp1Answer);
}

// However little of it comes at first, and where it begins as HTTP/2 does.
TEST_F(ConnectionTest, Http1InPiecesIsToldWhatThisIs) {
  server_options_.connection.http1_answer = kHttp1Answer;
  std::atomic<uint64_t> ended{0};
  server_options_.events.ended = [&](const Connection& /*connection*/,
                                     ConnectionEnd end, const std::string&) {
    EXPECT_EQ(end, ConnectionEnd::kNotHttp2);
    ++ended;
  };
  Start();
  for (const std::string method : {"GET", "POST", "PUT", "PATCH"}) {
    for (const size_t first : {1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat(method, " ", first));
      const std::string request = method + " / HTTP/1.1\r\nHost: x\r\n\r\n";
      ASSERT_TRUE(Eventually([&] { return server_->connections() == 0; }));
      const uint64_t before = ended;
      RawPeer peer(server_->address());
      ASSERT_TRUE(Eventually([&] { return server_->connections() == 1; }));
      for (size_t i = 0; i < first; ++i) {
        ASSERT_TRUE(peer.Send(request.substr(i, 1)));
        // After the second event-loop iteration it has been read.
        for (int turn = 0; turn < 2; ++turn) server_loop_.Do([] {});
      }
      EXPECT_EQ(ended, before);
      ASSERT_TRUE(peer.Send(request.substr(first)));
      EXPECT_EQ(peer.ReadAll(), kHttp1Answer);
    }
  }
  // The last one has been counted.
  EXPECT_TRUE(Eventually([&] { return ended == 12; }));
}

// A byte that begins neither HTTP/2 nor HTTP/1 ends the connection at once.
TEST_F(ConnectionTest, AByteThatBeginsNothingEndsTheConnection) {
  Start();
  RawPeer peer(server_->address());
  ASSERT_TRUE(peer.Send("x"));
  peer.ReadAll();
  EXPECT_TRUE(Eventually([&] { return server_->connections() == 0; }));
}

// Open files until the next one would be the first of those that are kept back.
class AllButTheReserve {
 public:
  AllButTheReserve() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    files_.push_back(dup(0));
    // A limit at which one sixteenth is between the bounds.
    const int limit = std::max(files_.back() + 100, 160);
    rlimit low = before_;
    low.rlim_cur = static_cast<rlim_t>(limit);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    while (files_.back() >= 0 && files_.back() < limit - limit / 16 - 1) {
      files_.push_back(dup(0));
    }
    EXPECT_GE(files_.back(), 0);
  }
  ~AllButTheReserve() { Close(); }
  void Close() {
    if (files_.empty()) return;
    for (const int fd : files_) close(fd);
    files_.clear();
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0);
  }

 private:
  rlimit before_;
  std::vector<int> files_;
};

TEST_F(ConnectionTest, TheLastFilesAreNotForCallers) {
  std::atomic<int> failed{0};
  server_options_.events.accept_failed = [&](const std::string& why) {
    EXPECT_EQ(why, "Too many open files");
    ++failed;
  };
  Start();
  AllButTheReserve files;
  RawPeer peer(server_->address());
  // It goes on trying.
  EXPECT_TRUE(Eventually([&] { return failed >= 2; }));
  EXPECT_FALSE(server_->accepting());
  EXPECT_EQ(server_->connections(), 0);
  // Others find one.
  const int one = dup(0);
  EXPECT_GE(one, 0);
  close(one);
  files.Close();
  EXPECT_TRUE(Eventually([&] { return server_->connections() == 1; }));
  EXPECT_TRUE(server_->accepting());
}

TEST_F(ConnectionTest, WhoAdministersGetsTheLastFiles) {
  server_options_.uses_reserve = true;
  Start();
  AllButTheReserve files;
  RawPeer peer(server_->address());
  EXPECT_TRUE(Eventually([&] { return server_->connections() == 1; }));
  EXPECT_TRUE(server_->accepting());
}

TEST_F(ConnectionTest, APeerThatSaysNothingDoesNotHoldUpAStop) {
  Start();
  RawPeer peer(server_->address());
  ASSERT_TRUE(Eventually([&] { return server_->connections() == 1; }));
  server_->Stop();
  EXPECT_TRUE(Eventually([&] { return server_->connections() == 0; }));
}

TEST_F(ConnectionTest, APeerThatSaysNothingIsClosedInTime) {
  server_options_.connection.handshake_timeout = absl::Milliseconds(50);
  Start();
  RawPeer peer(server_->address());
  ASSERT_TRUE(peer.Send("PRI * HT"));
  peer.ReadAll();
  EXPECT_TRUE(Eventually([&] { return server_->connections() == 0; }));
}

TEST_F(ConnectionTest, AnIdleConnectionIsToldToGo) {
  server_options_.connection.idle_timeout = absl::Milliseconds(50);
  Start();
  Request request("/echo", "x");
  Begin(&request);
  request.Wait();
  // The client makes a new one, which also gets a GOAWAY.
  EXPECT_TRUE(Eventually([&] { return server_->connections() == 0; }));
}

}  // namespace
}  // namespace fncache::http2
