// SPDX-License-Identifier: Apache-2.0
// Both sides of a connection under random schedules: streams opened, bodies
// sent in pieces, readers that stop, windows that grow, streams that begin with
// other windows, resets, refusals, GOAWAY, a wire that stalls, cuts what passes
// into pieces of any size, and breaks. A model says what must arrive.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "http2/connection.h"
#include "http2/loop.h"

namespace fncache::http2 {
namespace {

constexpr uint32_t kWindow = 3000;
constexpr uint32_t kGrown = 20'000;
constexpr size_t kMostBody = 60'000;

enum Side : size_t { kClient, kServer };

char Content(int call, Side from, size_t i) {
  return static_cast<char>(call * 131 + static_cast<int>(from) * 17 +
                           static_cast<int>(i * 7 + (i >> 8)));
}

// One side of one call: what it said, what it heard, how it ended.
class Party final : public StreamUser {
 public:
  Party(int call, Side side) : call_(call), side_(side) {}

  void OnAnswer(Stream& heard) override {
    EXPECT_EQ(side_, kClient);
    EXPECT_FALSE(answered || peer_ended || closed);
    EXPECT_EQ(heard.fields().Find(":status"), "200");
    EXPECT_EQ(heard.fields().Find("x-call"), absl::StrCat(call_));
    answered = true;
  }
  void OnData(Stream& /*stream*/, absl::string_view bytes) override {
    EXPECT_FALSE(peer_ended || closed || reset);
    EXPECT_TRUE(side_ == kServer || answered);
    const Side from = side_ == kClient ? kServer : kClient;
    for (const char c : bytes) {
      ASSERT_EQ(c, Content(call_, from, received)) << "byte " << received;
      ++received;
    }
    held += bytes.size();
    ASSERT_LE(received, window + consumed);
  }
  void OnTrailers(Stream& heard) override {
    EXPECT_FALSE(peer_ended || closed);
    trailer = std::string(heard.trailers().Find("x-end"));
  }
  void OnPeerEnd(Stream& /*stream*/) override {
    EXPECT_FALSE(peer_ended || closed);
    peer_ended = true;
  }
  void OnClosed(Stream& /*stream*/, const StreamEnd& how) override {
    EXPECT_FALSE(closed);
    closed = true;
    end = how;
    stream = nullptr;
  }

  void Send(size_t size) {
    std::string bytes(size, '\0');
    for (char& c : bytes) c = Content(call_, side_, sent++);
    stream->Send(Slice::Copy(bytes));
  }
  // Consumes up to `size` bytes, which lets as many more come.
  void Consume(size_t size) {
    size = std::min(size, held);
    held -= size;
    consumed += size;
    stream->Consume(size);
  }
  bool open() const { return stream != nullptr && !reset; }

  Stream* stream = nullptr;
  size_t sent = 0;
  size_t received = 0;
  size_t held = 0;
  size_t consumed = 0;
  size_t window = kWindow;
  int64_t shift = 0;
  int64_t most_shift = 0;
  bool answered = false;
  bool ended = false;  // this side has
  bool peer_ended = false;
  bool closed = false;
  bool reset = false;  // by this side
  uint32_t code = 0;
  std::string trailer;
  StreamEnd end;

 private:
  const int call_;
  const Side side_;
};

struct Call {
  explicit Call(int number)
      : client(number, kClient), server(number, kServer) {}
  Party client;
  Party server;
  bool served = false;
  bool refused = false;
};

class Schedule final : private ConnectionOwner {
 public:
  explicit Schedule(unsigned seed) : random_(seed) {
    for (size_t side : {kClient, kServer}) {
      EXPECT_EQ(
          socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, wires_[side]), 0);
      ConnectionOptions& options = options_[side];
      options.server = side == kServer;
      options.max_streams = 1 + Below(8);
      options.stream_window = kWindow;
      options.low_water = 1 + Below(5000);
      sides_[side] =
          Connection::Create(&loop_, wires_[side][0], nullptr, &options, this);
    }
    breaks_ = Below(5) == 0;
    goes_away_ = Below(6) == 0;
  }
  ~Schedule() {
    Break();
    Turn();
    EXPECT_EQ(sides_[kClient], nullptr);
    EXPECT_EQ(sides_[kServer], nullptr);
  }

  void Run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      Step();
      Turn();
    }
    Finish();
    for (const auto& call : calls_) CheckCall(*call);
  }

 private:
  size_t Below(size_t n) { return random_() % n; }

  StreamUser* OnRequest(Stream& stream) override {
    int number = -1;
    EXPECT_TRUE(
        absl::SimpleAtoi(stream.fields().Find(":path").substr(1), &number));
    Call& call = *calls_.at(static_cast<size_t>(number));
    EXPECT_FALSE(call.served || call.refused);
    if (Below(15) == 0) {
      call.refused = true;
      return nullptr;
    }
    call.served = true;
    call.server.stream = &stream;
    first_[static_cast<size_t>(number)] = stream.first_window();
    call.server.window = std::max({stream.first_window(), told_, before_});
    return &call.server;
  }
  void OnClosed(Connection& connection, ConnectionEnd /*end*/,
                const std::string& words) override {
    EXPECT_FALSE(words.empty());
    // Nothing ends it but the wire, or GOAWAY.
    EXPECT_TRUE(broken_ || went_) << words;
    sides_[&connection == sides_[kServer] ? kServer : kClient] = nullptr;
  }

  void Open() {
    Connection* const client = sides_[kClient];
    if (client == nullptr || !client->CanOpen()) return;
    const auto number = static_cast<int>(calls_.size());
    calls_.push_back(std::make_unique<Call>(number));
    Party& party = calls_.back()->client;
    Fields fields;
    fields.Add(":method", "POST");
    fields.Add(":scheme", "http");
    fields.Add(":path", absl::StrCat("/", number));
    fields.Add(":authority", "a");
    fields.Add("x-pad", std::string(Below(2000), 'p'));
    party.ended = Below(8) == 0;
    party.stream = client->Open(fields, party.ended, &party);
  }
  void Say(Side side, Party* party) {
    if (!party->open() || party->ended) return;
    if (side == kServer && !party->stream->answered()) {
      Fields fields;
      fields.Add(":status", "200");
      fields.Add("x-call", absl::StrCat(calls_.size()));
      for (size_t i = 0; i < calls_.size(); ++i) {
        if (&calls_[i]->server != party) continue;
        fields.Clear();
        fields.Add(":status", "200");
        fields.Add("x-call", absl::StrCat(i));
      }
      party->ended = Below(10) == 0;
      party->stream->Answer(fields, party->ended);
      return;
    }
    if (party->sent < kMostBody && Below(4) != 0) {
      return party->Send(1 + Below(Below(2) == 0 ? 50 : 9000));
    }
    End(side, party);
  }
  void End(Side side, Party* party) {
    party->ended = true;
    if (side == kClient || Below(4) == 0) return party->stream->End();
    Fields trailers;
    trailers.Add("x-end", "good ");
    party->trailer = "sent";
    party->stream->EndWith(std::move(trailers));
  }
  void Reset(Party* party) {
    if (!party->open()) return;
    party->reset = true;
    party->code = Below(2) == 0 ? kCancel : kInternalError;
    party->stream->Reset(party->code);
  }
  void Read(Party* party) {
    if (!party->open()) return;
    switch (Below(6)) {
      case 0:
        if (party->peer_ended) return;
        party->window += 700;
        return party->stream->Grant(700);
      case 1:
        if (party->peer_ended) return;
        // Grants are on top of what the window is then.
        party->window = std::max(party->window, party->window + kGrown);
        return party->stream->GrowWindow(kGrown);
      default:
        return party->Consume(1 + Below(8000));
    }
  }
  // The streams of the client begin with another window. It changes those of
  // open ones, too, but takes nothing from them.
  void Tell() {
    Connection* const server = sides_[kServer];
    if (server == nullptr) return;
    const uint32_t before = server->stream_window();
    server->SetStreamWindow(kWindow + static_cast<uint32_t>(Below(4)) * 5000);
    told_ = server->stream_window();
    if (told_ == before) return;
    before_ = before;
    for (const auto& call : calls_) {
      // A smaller window takes the extra bytes away and a larger one brings
      // them back, but they do not add up.
      Party& party = call->server;
      party.shift =
          std::max<int64_t>(0, party.shift + int64_t{told_} - int64_t{before});
      if (party.shift <= party.most_shift) continue;
      party.window += static_cast<size_t>(party.shift - party.most_shift);
      party.most_shift = party.shift;
    }
  }
  void Step() {
    const Side side = Below(2) == 0 ? kClient : kServer;
    const size_t what = Below(1000);
    if (what < 60) return Open();
    if (what < 500) {
      Pass(side, 1 + Below(Below(3) == 0 ? 20 : 20'000));
      return;
    }
    if (what < 510) {
      stalled_[side] = !stalled_[side];
      return;
    }
    if (what == 510 && goes_away_) {
      went_ = true;
      if (sides_[kServer] != nullptr) sides_[kServer]->GoAway();
      return;
    }
    if (what == 511 && breaks_) return Break();
    if (what < 515) return Tell();
    if (calls_.empty()) return;
    Call& call =
        *calls_[calls_.size() - 1 - Below(std::min<size_t>(calls_.size(), 8))];
    Party* const party = side == kClient ? &call.client : &call.server;
    if (what < 520) return Reset(party);
    if (what < 760) return Say(side, party);
    Read(party);
  }

  // Carries up to `most` bytes from this side to the other.
  bool Pass(Side from, size_t most) {
    if (broken_ || stalled_[from]) return false;
    const Side to = from == kClient ? kServer : kClient;
    std::string bytes(most, '\0');
    const ssize_t size = recv(wires_[from][1], &bytes[0], most, MSG_DONTWAIT);
    if (size == 0) {
      shutdown(wires_[to][1], SHUT_WR);
      return false;
    }
    if (size < 0) return false;
    size_t done = 0;
    while (done < static_cast<size_t>(size)) {
      const ssize_t sent =
          send(wires_[to][1], bytes.data() + done,
               static_cast<size_t>(size) - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN) return false;
      if (sent > 0) done += static_cast<size_t>(sent);
      if (done < static_cast<size_t>(size)) Turn();
    }
    return true;
  }
  void Break() {
    if (broken_) return;
    broken_ = true;
    for (const auto& wire : wires_) close(wire[1]);
  }
  void Turn() {
    loop_.Post([this] { loop_.Quit(); });
    loop_.Run();
  }

  // Lets everything that began come to its end.
  void Finish() {
    stalled_ = {};
    for (int quiet = 0; quiet < 20;) {
      const bool up = Pass(kClient, 50'000);
      const bool down = Pass(kServer, 50'000);
      Turn();
      quiet = up || down ? 0 : quiet + 1;
    }
    // The bytes that a stream's first window allows may arrive, whatever the
    // first windows of later streams are.
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Call& call = *calls_[i];
      if (!call.client.open() || !call.server.open() || broken_) continue;
      EXPECT_GE(call.server.received,
                std::min<size_t>(call.client.sent, first_[i]))
          << "call " << i;
    }
    const absl::Time until = absl::Now() + absl::Seconds(60);
    for (int quiet = 0; quiet < 20 && !::testing::Test::HasFailure();) {
      ASSERT_LT(absl::Now(), until) << "something waits for ever";
      bool open = false;
      for (const auto& call : calls_) {
        for (Side side : {kClient, kServer}) {
          Party* const party = side == kClient ? &call->client : &call->server;
          if (!party->open()) continue;
          open = true;
          if (party->held > 0) party->Consume(party->held);
          Say(side, party);
        }
      }
      const bool up = Pass(kClient, 50'000);
      const bool down = Pass(kServer, 50'000);
      Turn();
      quiet = up || down || open ? 0 : quiet + 1;
      if (broken_ && sides_[kClient] == nullptr && sides_[kServer] == nullptr) {
        return;
      }
    }
  }

  void CheckCall(const Call& call) {
    const Party& client = call.client;
    const Party& server = call.server;
    EXPECT_TRUE(client.closed);
    EXPECT_EQ(server.closed, call.served);
    // A call that is reported as unprocessed may be sent again.
    EXPECT_FALSE(client.end.unprocessed && call.served);
    EXPECT_FALSE(server.end.unprocessed);
    if (call.refused && client.end.kind == StreamEnd::Kind::kPeerReset) {
      EXPECT_EQ(client.end.code, kRefusedStream);
      EXPECT_TRUE(client.end.unprocessed);
    }
    // An end says that all has come.
    if (server.peer_ended) {
      EXPECT_TRUE(client.ended);
      EXPECT_EQ(server.received, client.sent);
    }
    if (client.peer_ended) {
      EXPECT_TRUE(server.ended);
      EXPECT_EQ(client.received, server.sent);
      EXPECT_EQ(client.trailer, server.trailer.empty() ? "" : "good");
    }
    EXPECT_LE(server.received, client.sent);
    EXPECT_LE(client.received, server.sent);
    // Resets arrive with their codes.
    for (const bool from_client : {true, false}) {
      const Party& by = from_client ? client : server;
      const Party& with = from_client ? server : client;
      if (by.end.kind != StreamEnd::Kind::kReset || !with.closed) continue;
      if (with.end.kind == StreamEnd::Kind::kPeerReset) {
        EXPECT_TRUE(with.end.code == by.code || with.end.code == kNoError);
      }
    }
    if (broken_ || went_ || client.reset || server.reset || call.refused) {
      return;
    }
    EXPECT_TRUE(call.served && client.peer_ended && client.answered);
    EXPECT_EQ(client.received, server.sent);
    EXPECT_EQ(client.trailer, server.trailer.empty() ? "" : "good");
    EXPECT_EQ(server.end.code, kNoError);
    EXPECT_EQ(client.end.code, kNoError);
  }

  std::mt19937 random_;
  Loop loop_;
  // For each side: its socket, and the wire's end.
  int wires_[2][2];
  std::array<ConnectionOptions, 2> options_;
  std::array<Connection*, 2> sides_ = {};
  std::array<bool, 2> stalled_ = {};
  bool broken_ = false;
  bool breaks_ = false;
  bool goes_away_ = false;
  bool went_ = false;
  uint32_t told_ = kWindow;         // the window that streams begin with
  uint32_t before_ = kWindow;       // and did before
  std::map<size_t, size_t> first_;  // those that they began with, by call
  std::vector<std::unique_ptr<Call>> calls_;
};

TEST(ScheduleTest, WhatMustArriveArrives) {
  const unsigned first = 1;
  for (unsigned seed = first; seed < first + 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Schedule(seed).Run(600);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fncache::http2
