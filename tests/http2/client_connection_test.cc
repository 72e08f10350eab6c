// SPDX-License-Identifier: Apache-2.0
// A client's connection against libnghttp2's server, on a socket pair.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http2/connection.h"
#include "http2/loop.h"
#include "tests/common/eventually.h"
#include "tests/common/server_peer.h"
#include "tests/common/temp_dir.h"

namespace fncache::http2 {
namespace {

using ::fncache::testing::Pairs;
using ::fncache::testing::ServerPeer;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

const Pairs& RequestFields() {
  static const auto* const fields = new Pairs{
      {":method", "POST"},
      {":scheme", "http"},
      {":path", "/a.B/C"},
      {":authority", "127.0.0.1:1"},
      {"content-type", "application/grpc"},
      {"user-agent", "test"},
      {"te", "trailers"},
      {"x-more", std::string(150, 'm')},
  };
  return *fields;
}

std::string Text(size_t size) {
  std::string text(size, ' ');
  for (size_t i = 0; i < size; ++i) {
    text[i] = static_cast<char>('a' + i * i % 23);
  }
  return text;
}

// A call and what became of it.
struct Call final : StreamUser {
  void OnAnswer(Stream& stream) override {
    ++answers;
    Take(stream.fields());
  }
  void OnData(Stream& stream, absl::string_view bytes) override {
    stream.Consume(bytes.size());
    data.append(bytes.data(), bytes.size());
  }
  void OnTrailers(Stream& stream) override { Take(stream.trailers()); }
  void OnPeerEnd(Stream& /*stream*/) override {}
  void OnClosed(Stream& /*stream*/, const StreamEnd& how) override {
    ++ends;
    end = how;
  }
  void Take(const Fields& taken) {
    for (const Field field : taken) {
      fields.emplace_back(std::string(field.name), std::string(field.value));
      if (field.never_indexed) never_indexed.emplace_back(field.name);
    }
    block = taken;
  }

  std::string text;  // of the body
  Stream* stream = nullptr;
  int32_t id = 0;
  int answers = 0;
  Pairs fields;
  std::vector<std::string> never_indexed;  // names of such fields
  Fields block;                            // that came last
  std::string data;
  int ends = 0;
  StreamEnd end;
};

void ExpectEcho(const Call& call) {
  EXPECT_EQ(call.ends, 1);
  EXPECT_EQ(call.end.kind, StreamEnd::Kind::kComplete) << call.end.why;
  EXPECT_TRUE(call.data == call.text);
  EXPECT_THAT(call.fields, Contains(Pair(":status", "200")));
  EXPECT_THAT(call.fields, Contains(Pair("grpc-status", "0")));
}

class ClientConnectionTest : public ::testing::Test, public ConnectionOwner {
 protected:
  ~ClientConnectionTest() override { Stop(); }

  void Start(ServerPeer::Options options = {}, size_t read_size = 65536) {
    Stop();
    loop_ = std::make_unique<Loop>(read_size);
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    options_.server = false;
    client_ = Connection::Create(loop_.get(), fds[0], nullptr, &options_, this);
    peer_ = std::make_unique<ServerPeer>(fds[1], std::move(options));
    peer_fd_ = fds[1];
  }
  void Stop() {
    if (client_ != nullptr) client_->Close("over");
    loop_ = nullptr;
  }

  void OnClosed(Connection& /*connection*/, ConnectionEnd end,
                const std::string& words) override {
    client_ = nullptr;
    end_ = end;
    words_ = words;
  }

  void OnCapacity(Connection& connection) override {
    ++rooms_;
    had_room_ = connection.CanOpen();
  }

  // Bytes that the peer's nghttp2 would not send.
  void PeerSends(const std::string& bytes) const {
    ASSERT_EQ(write(peer_fd_, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }

  // Runs both ends until nothing moves.
  void Settle() {
    for (bool moved = true; moved;) {
      moved = false;
      uint64_t before = 0;
      do {
        before = Moved();
        loop_->RunOnce(0);
        moved = moved || Moved() != before;
      } while (Moved() != before);
      moved = peer_->Turn() || moved;
    }
  }
  uint64_t Moved() const {
    return client_ == nullptr
               ? 0
               : client_->bytes_read() + client_->bytes_written();
  }

  // Opens a call whose body is `text` in uneven parts.
  Call* Open(std::string text) {
    calls_.emplace_back();
    Call* const call = &calls_.back();
    call->text = std::move(text);
    Fields fields;
    for (const auto& [name, value] : RequestFields()) fields.Add(name, value);
    Stream* const stream = client_->Open(fields, /*end=*/false, call);
    call->stream = stream;
    call->id = stream->id();
    auto all = Slice::Static(call->text);
    const size_t third = all.size() / 3;
    stream->Send(all.TakeFront(third));
    stream->Send(Slice::Copy(all.TakeFront(16).bytes()));
    stream->Send(all.TakeFront(third));
    stream->Send(Slice());
    stream->Send(std::move(all));
    stream->End();
    return call;
  }

  ConnectionOptions options_;
  std::deque<Call> calls_;
  std::unique_ptr<Loop> loop_;
  Connection* client_ = nullptr;  // its own
  std::unique_ptr<ServerPeer> peer_;
  int peer_fd_ = -1;
  ConnectionEnd end_ = ConnectionEnd::kDone;
  std::string words_;
  int rooms_ = 0;
  bool had_room_ = false;
};

TEST_F(ClientConnectionTest, CallsCarryTheirFieldsAndBodiesThere) {
  Start();
  EXPECT_FALSE(client_->CanOpen());
  Settle();
  ASSERT_TRUE(client_->CanOpen());
  for (const size_t size : {1, 5, 41, 300, 16384, 16385, 200'000}) {
    const Call* const call = Open(Text(size));
    Settle();
    ExpectEcho(*call);
    EXPECT_EQ(peer_->requests[call->id].headers, RequestFields());
    EXPECT_TRUE(peer_->requests[call->id].body == call->text);
  }
  EXPECT_THAT(peer_->complaints, IsEmpty());
  EXPECT_THAT(peer_->resets, IsEmpty());
  EXPECT_EQ(client_->streams(), 0U);
}

TEST_F(ClientConnectionTest, FramesAreAsLargeAsBothEndsWant) {
  const struct {
    uint32_t own, peers, sent;
  } cases[] = {
      {16 << 10, 1 << 20, 16 << 10},
      {60 << 10, 16 << 10, 16 << 10},
      {60 << 10, 20'000, 20'000},
      {60 << 10, 1 << 20, 60 << 10},
  };
  for (const auto& [own, peers, sent] : cases) {
    SCOPED_TRACE(absl::StrCat(own, " ", peers));
    options_.largest_frame = own;
    Start({{{NGHTTP2_SETTINGS_MAX_FRAME_SIZE, peers}}, 0, {}, true});
    Settle();
    EXPECT_EQ(nghttp2_session_get_remote_settings(
                  peer_->session, NGHTTP2_SETTINGS_MAX_FRAME_SIZE),
              own);
    const Call* const large = Open(Text(200'000));
    const Call* const small = Open(Text(10));
    Settle();
    ExpectEcho(*large);
    ExpectEcho(*small);
    EXPECT_EQ(peer_->largest_data, sent);
    EXPECT_EQ(peer_->largest_sent, own);
    EXPECT_THAT(peer_->complaints, IsEmpty());
  }
}

TEST_F(ClientConnectionTest, LargeWindowsAreReadInLargePieces) {
  options_.stream_window = 256 << 10;
  options_.largest_frame = 64 << 10;
  for (const size_t read_size : {20 << 10, 64 << 10, 192 << 10, 1 << 20}) {
    SCOPED_TRACE(read_size);
    Start({{}, 0, {}, true}, read_size);
    Settle();
    for (int i = 0; i < 4; ++i) Open(Text(700'000 + i));
    Settle();
    for (const Call& call : calls_) ExpectEcho(call);
    EXPECT_THAT(peer_->complaints, IsEmpty());
  }
}

// More than all windows allow, at once and round robin.
TEST_F(ClientConnectionTest, ManyLargeCallsShareTheWindows) {
  Start();
  Settle();
  for (size_t i = 0; i < 20; ++i) Open(Text(150'000 + i));
  Settle();
  for (const Call& call : calls_) ExpectEcho(call);
  EXPECT_THAT(peer_->complaints, IsEmpty());
}

TEST_F(ClientConnectionTest, ShortCallsOvertakeLongOnes) {
  Start();
  Settle();
  Open(Text(1'000'000));
  const Call* const last = Open(Text(100));
  Settle();
  EXPECT_EQ(peer_->complete.front(), last->id);
}

TEST_F(ClientConnectionTest, AfterTheFirstCallFieldsAreReferences) {
  Start();
  Settle();
  Open(Text(10));
  Settle();
  const uint64_t before = client_->bytes_written();
  const Call* const second = Open(Text(10));
  Settle();
  // Two frames' heads and the body are 28 bytes; the path nghttp2 spells out.
  EXPECT_LT(client_->bytes_written() - before, 28 + 20U);
  EXPECT_EQ(peer_->requests[second->id].headers, RequestFields());
}

TEST_F(ClientConnectionTest, KeepsToASmallerHeaderTable) {
  // No table, one that takes half of the fields, the usual one, a larger one.
  for (const uint32_t size : {0, 200, 4096, 65536}) {
    SCOPED_TRACE(size);
    Start({{{NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, size}}, 0, {}});
    Settle();
    for (int i = 0; i < 3; ++i) {
      const Call* const call = Open(Text(10));
      Settle();
      ExpectEcho(*call);
      EXPECT_EQ(peer_->requests[call->id].headers, RequestFields());
    }
    EXPECT_THAT(peer_->complaints, IsEmpty());
  }
}

TEST_F(ClientConnectionTest, FollowsWindowsThatChangeUnderWay) {
  // Ten bytes are too few for a WINDOW_UPDATE each.
  options_.budget = options_.budget_most = 1e9;
  Start({{{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 10}}, 0, {}});
  Settle();
  Open(Text(60'000));
  Open(Text(60'000));
  Settle();
  for (const uint32_t size : {5000, 1}) {
    const nghttp2_settings_entry other = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                          size};
    nghttp2_submit_settings(peer_->session, NGHTTP2_FLAG_NONE, &other, 1);
    Settle();
  }
  for (const Call& call : calls_) {
    nghttp2_session_set_local_window_size(peer_->session, NGHTTP2_FLAG_NONE,
                                          call.id, 100'000);
  }
  Settle();
  for (const Call& call : calls_) ExpectEcho(call);
  EXPECT_THAT(peer_->complaints, IsEmpty());
}

TEST_F(ClientConnectionTest, OpensNoMoreStreamsThanThePeerAllows) {
  Start({{{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 2}}, 0, {}});
  peer_->on_request = [](int32_t) {};
  Settle();
  Open(Text(1));
  EXPECT_TRUE(client_->CanOpen());
  const Call* const second = Open(Text(1));
  EXPECT_FALSE(client_->CanOpen());
  Settle();
  EXPECT_FALSE(client_->CanOpen());
  peer_->Answer(second->id, "x");
  Settle();
  EXPECT_TRUE(client_->CanOpen());

  // It may allow fewer while they are open.
  const nghttp2_settings_entry one = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                      1};
  nghttp2_submit_settings(peer_->session, NGHTTP2_FLAG_NONE, &one, 1);
  Settle();
  EXPECT_FALSE(client_->CanOpen());
  peer_->Answer(calls_.front().id, "x");
  Settle();
  EXPECT_TRUE(client_->CanOpen());
}

// Calls that wait for a stream need not wait for one to end.
TEST_F(ClientConnectionTest, SettingsThatAllowMoreStreamsMakeRoom) {
  Start({{{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1}}, 0, {}});
  peer_->on_request = [](int32_t) {};
  Settle();
  Open(Text(1));
  Settle();
  EXPECT_FALSE(client_->CanOpen());
  EXPECT_EQ(rooms_, 0);
  const nghttp2_settings_entry two = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                      2};
  nghttp2_submit_settings(peer_->session, NGHTTP2_FLAG_NONE, &two, 1);
  Settle();
  EXPECT_EQ(rooms_, 1);
  EXPECT_TRUE(had_room_);
}

// A proxy that passes a secret on leaves it out of its header tables, too (RFC
// 7541, 6.2.3).
TEST_F(ClientConnectionTest, WhatIsNeverIndexedStaysSo) {
  Start();
  peer_->on_request = [](int32_t) {};
  Settle();
  const Call* const first = Open(Text(1));
  Settle();
  EXPECT_THAT(peer_->never_indexed, IsEmpty());
  // HEADERS that end the stream: 200, and two literals of a new name.
  const std::string block =
      "\x88\x10\x08x-secret\x01v" + std::string("\0\x06x-open\x01v", 10);
  PeerSends(std::string("\0\0", 2) + static_cast<char>(block.size()) +
            std::string("\1\5\0\0\0\1", 6) + block);
  Settle();
  EXPECT_THAT(first->never_indexed, ElementsAre("x-secret"));
  EXPECT_THAT(first->fields, Contains(Pair("x-open", "v")));

  Fields fields;
  for (const auto& [name, value] : RequestFields()) fields.Add(name, value);
  for (const Field field : Fields(first->block)) {
    if (field.name[0] != ':') fields.Add(field);
  }
  calls_.emplace_back();
  client_->Open(fields, /*end=*/true, &calls_.back());
  Settle();
  EXPECT_THAT(peer_->never_indexed, ElementsAre("x-secret"));
  EXPECT_THAT(peer_->requests[3].headers, Contains(Pair("x-secret", "v")));
  EXPECT_THAT(peer_->requests[3].headers, Contains(Pair("x-open", "v")));
}

// Padded frames, header blocks of several frames, all in pieces of any size;
// but nghttp2 counts a CONTINUATION frame for each piece of its head.
TEST_F(ClientConnectionTest, ReadsWhateverFormAnswersHave) {
  for (const size_t read_size : {5, 7, 10, 4096, 65536}) {
    SCOPED_TRACE(read_size);
    calls_.clear();
    Start({{}, 100, {{"x-long", Text(30'000)}, {"cache-status", "c; hit"}}},
          read_size);
    Settle();
    for (int i = 0; i < 3; ++i) Open(Text(20'000));
    Settle();
    for (const Call& call : calls_) {
      ExpectEcho(call);
      EXPECT_THAT(call.fields, Contains(Pair("x-long", Text(30'000))));
      EXPECT_THAT(call.fields, Contains(Pair("cache-status", "c; hit")));
    }
    calls_.clear();
  }
}

// The final answer is the one that counts, whatever came before.
TEST_F(ClientConnectionTest, InterimAnswersAreNoAnswers) {
  Start();
  peer_->on_request = [this](int32_t id) {
    peer_->Interim(id, "100", {});
    peer_->Interim(id, "103", {{"link", "</style.css>"}});
    peer_->Answer(id, peer_->requests[id].body);
  };
  Settle();
  const Call* const call = Open(Text(100));
  Settle();
  ExpectEcho(*call);
  EXPECT_EQ(call->answers, 1);
  EXPECT_EQ(call->fields, (Pairs{{":status", "200"},
                                 {"content-type", "application/grpc"},
                                 {"grpc-status", "0"}}));
}

TEST_F(ClientConnectionTest, EndlessInterimAnswersEndTheConnection) {
  options_.budget = options_.budget_most = 100;
  options_.budget_a_second = 0;
  Start();
  peer_->on_request = [this](int32_t id) {
    for (int i = 0; i < 200; ++i) peer_->Interim(id, "103", {});
  };
  Settle();
  const Call* const call = Open(Text(1));
  Settle();
  EXPECT_EQ(client_, nullptr);
  EXPECT_EQ(end_, ConnectionEnd::kTooMuch);
  EXPECT_EQ(call->ends, 1);
}

TEST_F(ClientConnectionTest, EndlessFramesThatDoNoWorkEndTheConnection) {
  options_.budget = options_.budget_most = 100;
  options_.budget_a_second = 0;
  const std::string headers("\0\0\1\1\4\0\0\0\1\x88", 10);
  const struct {
    const char* what;
    std::string frame;
  } cases[] = {
      {"answers to no PING",
       std::string("\0\0\x08\6\1\0\0\0\0", 9) + "12345678"},
      {"padding of no bytes", std::string("\0\0\1\0\x08\0\0\0\1\0", 10)},
      {"padding", std::string("\0\0\3\0\x08\0\0\0\1\2\0\0", 12)},
      {"nothing", std::string("\0\0\0\0\0\0\0\0\1", 9)},
  };
  for (const auto& [what, frame] : cases) {
    SCOPED_TRACE(what);
    Start();
    peer_->on_request = [](int32_t) {};
    Settle();
    Open(Text(1));
    Settle();
    PeerSends(headers);
    for (int i = 0; i < 50; ++i) PeerSends(frame);
    Settle();
    ASSERT_NE(client_, nullptr);
    for (int i = 0; i < 100; ++i) PeerSends(frame);
    Settle();
    EXPECT_EQ(client_, nullptr);
    EXPECT_EQ(end_, ConnectionEnd::kTooMuch);
  }
}

// Nor for calls that this side has cancelled. An answer that was under way at
// the cancellation is no fault.
TEST_F(ClientConnectionTest, AnswersToNobodyEndTheConnection) {
  options_.budget = options_.budget_most = 100;
  options_.budget_a_second = 0;
  Start();
  peer_->on_request = [](int32_t) {};
  Settle();
  const std::string end("\0\0\1\1\5\0\0\0", 8);
  for (int id = 1; id < 201; id += 2) {
    Open(Text(1));
    Settle();
    calls_.back().stream->Reset(kCancel);
    Settle();
    // Its headers, and its trailers.
    for (int i = 0; i < 2; ++i) {
      PeerSends(end + static_cast<char>(id) + "\x88");
    }
    Settle();
    ASSERT_NE(client_, nullptr) << id;
  }
  for (int i = 0; i < 200; ++i) PeerSends(end + "\1\x88");
  Settle();
  EXPECT_EQ(client_, nullptr);
  EXPECT_EQ(end_, ConnectionEnd::kTooMuch);
}

// The fields of one call do not explain the connection's end, and other calls
// must not see them.
TEST_F(ClientConnectionTest, ABadAnswerIsNotWhyTheConnectionEnds) {
  Start({{}, 0, {{"x-token", "secret\x01"}}});
  Settle();
  const Call* const bad = Open(Text(1));
  Settle();
  EXPECT_EQ(bad->ends, 1);
  EXPECT_EQ(bad->end.kind, StreamEnd::Kind::kPeerReset);
  EXPECT_EQ(bad->end.code, kProtocolError);
  ASSERT_NE(client_, nullptr);
  peer_->on_request = [](int32_t) {};
  const Call* const next = Open(Text(1));
  Settle();
  peer_ = nullptr;
  loop_->RunOnce(0);
  EXPECT_EQ(client_, nullptr);
  EXPECT_EQ(words_, "the peer closed the connection");
  EXPECT_EQ(next->end.why, words_);
}

TEST_F(ClientConnectionTest, ABrokenRuleIsToldAsItIs) {
  Start({{}, 0, {{"x-token", "secret\x01"}}});
  Settle();
  Open(Text(1));
  Settle();
  ASSERT_NE(client_, nullptr);
  // Settings of a stream, which are none.
  ASSERT_EQ(write(peer_fd_, "\0\0\0\4\0\0\0\0\7", 9), 9);
  loop_->RunOnce(0);
  loop_->RunOnce(0);
  EXPECT_EQ(client_, nullptr);
  EXPECT_EQ(end_, ConnectionEnd::kProtocol);
  EXPECT_THAT(words_, HasSubstr("the peer broke the rules of HTTP/2: "));
  EXPECT_THAT(words_, Not(HasSubstr("secret")));
}

TEST_F(ClientConnectionTest, AResetIsToldWithItsCode) {
  Start();
  peer_->on_request = [this](int32_t id) {
    nghttp2_submit_rst_stream(
        peer_->session, NGHTTP2_FLAG_NONE, id,
        id == 1 ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_REFUSED_STREAM);
  };
  Settle();
  const Call* const calm = Open(Text(1));
  const Call* const refused = Open(Text(1));
  Settle();
  EXPECT_EQ(calm->ends, 1);
  EXPECT_EQ(calm->end.kind, StreamEnd::Kind::kPeerReset);
  EXPECT_EQ(calm->end.code, kEnhanceYourCalm);
  EXPECT_FALSE(calm->end.unprocessed);
  EXPECT_EQ(refused->ends, 1);
  EXPECT_TRUE(refused->end.unprocessed);
  EXPECT_FALSE(refused->end.went_away);
}

TEST_F(ClientConnectionTest, GoAwayRefusesWhatWasNotTaken) {
  Start();
  peer_->on_request = [](int32_t) {};
  Settle();
  const Call* const first = Open(Text(1));
  Settle();
  nghttp2_submit_goaway(peer_->session, NGHTTP2_FLAG_NONE, first->id,
                        NGHTTP2_NO_ERROR, nullptr, 0);
  const Call* const late = Open(Text(1));
  Settle();
  EXPECT_TRUE(client_->going_away());
  EXPECT_FALSE(client_->CanOpen());
  EXPECT_EQ(first->ends, 0);
  EXPECT_EQ(late->ends, 1);
  EXPECT_TRUE(late->end.unprocessed);
  EXPECT_TRUE(late->end.went_away);
  peer_->Answer(first->id, "bye");
  Settle();
  EXPECT_EQ(first->data, "bye");
  // With its last stream the connection has gone.
  EXPECT_EQ(client_, nullptr);
  EXPECT_EQ(end_, ConnectionEnd::kDone);
}

TEST_F(ClientConnectionTest, GoAwayWithAnErrorSaysWhy) {
  Start();
  Settle();
  const std::string reason = "too_many_pings";
  nghttp2_submit_goaway(
      peer_->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_ENHANCE_YOUR_CALM,
      reinterpret_cast<const uint8_t*>(reason.data()), reason.size());
  Settle();
  EXPECT_EQ(client_, nullptr);
  EXPECT_EQ(end_, ConnectionEnd::kPeerLeft);
  EXPECT_THAT(words_, HasSubstr("ENHANCE_YOUR_CALM: too_many_pings"));
}

TEST_F(ClientConnectionTest, PingsAreAnswered) {
  Start();
  Settle();
  nghttp2_submit_ping(peer_->session, NGHTTP2_FLAG_NONE, nullptr);
  Settle();
  EXPECT_EQ(peer_->pings, 1);
}

// One that is frozen: counted from the last that came, not from when it was
// looked at.
TEST_F(ClientConnectionTest, ASilentPeerIsAskedAndGivenUpInTime) {
  options_.ping_after = absl::Seconds(1);
  options_.ping_timeout = absl::Milliseconds(500);
  Start();
  peer_->on_request = [](int32_t) {};
  Settle();
  const Call* const call = Open(Text(1));
  Settle();
  // A moment after it is looked at for the first time.
  const int64_t start = loop_->now();
  ASSERT_TRUE(Eventually([&] {
    loop_->RunOnce(0);
    return loop_->now() - start > 100'000'000;
  }));
  peer_->Interim(call->id, "103", {});
  Settle();
  const uint64_t written = client_->bytes_written();
  const int64_t last = loop_->now();
  ASSERT_TRUE(Eventually([&] {
    loop_->RunOnce(0);
    return client_->bytes_written() > written;
  }));
  const int64_t asked = loop_->now();
  EXPECT_GE(asked - last, 990'000'000);
  EXPECT_LT(asked - last, 1'500'000'000);
  ASSERT_TRUE(Eventually([&] {
    loop_->RunOnce(0);
    return client_ == nullptr;
  }));
  EXPECT_EQ(end_, ConnectionEnd::kTimeout);
  EXPECT_EQ(words_, "the peer does not answer a PING");
  EXPECT_LT(loop_->now() - asked, 900'000'000);
  EXPECT_EQ(call->end.kind, StreamEnd::Kind::kLost);
}

// However long nothing has come before there was a call.
TEST_F(ClientConnectionTest, ACallOnAQuietConnectionIsNoReasonToAskAtOnce) {
  options_.ping_after = absl::Milliseconds(500);
  Start();
  peer_->on_request = [](int32_t) {};
  Settle();
  const int64_t start = loop_->now();
  ASSERT_TRUE(Eventually([&] {
    loop_->RunOnce(0);
    return loop_->now() - start > 700'000'000;
  }));
  const int64_t opened = loop_->now();
  Open(Text(1));
  Settle();
  const uint64_t written = client_->bytes_written();
  ASSERT_TRUE(Eventually([&] {
    loop_->RunOnce(0);
    return client_->bytes_written() > written;
  }));
  EXPECT_GE(loop_->now() - opened, 500'000'000);
  Settle();
  EXPECT_NE(client_, nullptr);
}

TEST_F(ClientConnectionTest, APeerThatIsGoneLosesItsCalls) {
  Start();
  peer_->on_request = [](int32_t) {};
  Settle();
  const Call* const call = Open(Text(1));
  Settle();
  peer_ = nullptr;
  loop_->RunOnce(0);
  EXPECT_EQ(client_, nullptr);
  EXPECT_EQ(end_, ConnectionEnd::kPeerLeft);
  EXPECT_EQ(words_, "the peer closed the connection");
  EXPECT_EQ(call->end.kind, StreamEnd::Kind::kLost);
  EXPECT_EQ(call->end.why, words_);
  EXPECT_FALSE(call->end.unprocessed);
}

TEST_F(ClientConnectionTest, APeerThatIsMadIsAnError) {
  Start();
  Settle();
  ASSERT_EQ(write(peer_fd_, "HTTP/1.1 400 Bad Request\r\n", 26), 26);
  loop_->RunOnce(0);
  EXPECT_EQ(client_, nullptr);
  EXPECT_EQ(end_, ConnectionEnd::kProtocol);
}

TEST_F(ClientConnectionTest, WhatCannotBeWatchedEndsWhenTheTurnDoes) {
  Start();
  Stop();
  loop_ = std::make_unique<Loop>();
  const fncache::testing::TempDir dir;
  const int fd = open(dir.File("plain").c_str(), O_CREAT | O_RDWR, 0600);
  // Epoll takes no plain files.
  client_ = Connection::Create(loop_.get(), fd, nullptr, &options_, this);
  EXPECT_NE(client_, nullptr);
  loop_->RunOnce(0);
  EXPECT_EQ(client_, nullptr);
  EXPECT_EQ(end_, ConnectionEnd::kError);
  EXPECT_THAT(words_, HasSubstr("cannot watch a socket: "));
}

}  // namespace
}  // namespace fncache::http2
