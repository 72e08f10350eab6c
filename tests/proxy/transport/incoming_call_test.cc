// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/incoming_call.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/http2_server.h"
#include "tests/proxy/loopback.h"
#include "tests/proxy/transport/pack.h"
#include "tests/proxy/transport/raw_call.h"

namespace fncache::proxy::transport {
namespace {

using ::fncache::testing::Http2Bytes;
using ::fncache::testing::Http2Frame;
using ::fncache::testing::Http2Header;
using ::testing::HasSubstr;

constexpr char kMethod[] =
    "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

// Reads each request, and answers with what came of that.
class ReadingHandler : public CallHandler {
 public:
  void StartCall(IncomingCallPtr call) override {
    ++started_;
    auto kept = std::make_shared<IncomingCallPtr>(std::move(call));
    (*kept)->Read([this, kept](const grpc::Status& status) {
      {
        MutexLock lock(&mutex_);
        read_.push_back(status);
      }
      IncomingCall::Finish(std::move(*kept), status);
    });
  }
  void OnPaused() override { ++held_up_; }
  int started() const { return started_; }
  int held_up() const { return held_up_; }
  std::vector<grpc::Status> read() {
    MutexLock lock(&mutex_);
    return read_;
  }

 private:
  std::atomic<int> started_{0};
  std::atomic<int> held_up_{0};
  Mutex mutex_;
  std::vector<grpc::Status> read_;
};

// Sends the start of a request of `size` bytes, and no more.
class PartialCaller {
 public:
  explicit PartialCaller(const std::string& port, uint32_t size = 4096)
      : connection_(ConnectTo(port)) {
    EXPECT_TRUE(SendAll(
        connection_, absl::StrCat(Greeting(), CallHead(1, kMethod),
                                  CallData(1, MessageHead(size) +
                                                  "the first of some bytes"))));
  }
  ~PartialCaller() { close(connection_); }
  PartialCaller(const PartialCaller&) = delete;
  PartialCaller& operator=(const PartialCaller&) = delete;

 private:
  const int connection_;
};

class IncomingCallTest : public ::testing::Test {
 protected:
  bool Holds(size_t bytes) {
    return Eventually([&] { return inflight_.reading() >= bytes; });
  }

  limits::Budget inflight_{8 << 20, 3};  // reading 1 MiB
  ReadingHandler handler_;
  TestListener listener_{&handler_, 2, nullptr, &inflight_};
  // Counts for others.
  const std::unique_ptr<Worker> worker_ = std::make_unique<Worker>(2);
  limits::Charge others_{&inflight_, limits::Budget::Quota::kReading, 2};
};

// This includes small requests, which never asked for capacity.
TEST_F(IncomingCallTest, RequestThatStopsComingIsEndedWhileOthersWait) {
  const absl::Time start = absl::Now();
  PartialCaller caller(listener_.port());
  ASSERT_TRUE(Holds(20));
  others_.Set(7 << 20);
  ASSERT_TRUE(Eventually([&] { return !handler_.read().empty(); }));
  EXPECT_GE(absl::Now() - start, absl::Seconds(10));
  const grpc::Status status = handler_.read().front();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("stopped coming"));
  others_.Set(0);
  EXPECT_TRUE(Eventually([&] { return inflight_.reading() == 0; }));
}

TEST_F(IncomingCallTest, RequestThatStopsComingStaysWhileNobodyWaits) {
  const absl::Time start = absl::Now();
  PartialCaller caller(listener_.port());
  ASSERT_TRUE(Holds(20));
  // It is looked at after ten seconds, and again each second.
  EXPECT_FALSE(Eventually([&] { return !handler_.read().empty(); },
                          absl::Milliseconds(11'500)));
  others_.Set(7 << 20);
  EXPECT_TRUE(Eventually([&] { return !handler_.read().empty(); }));
  EXPECT_GE(absl::Now() - start, absl::Seconds(11));
}

TEST_F(IncomingCallTest, LargeMetadataIsCountedAndRefusedWhereAllIsHeld) {
  const auto channel = Connect(listener_.address());
  TestCall call(channel, kMethod);
  call.context().AddMetadata("x-big", std::string(20'000, 'm'));
  ASSERT_TRUE(call.Start());
  EXPECT_TRUE(Holds(60'000));
  others_.Set(9 << 20);
  TestCall refused(channel, kMethod);
  refused.context().AddMetadata("x-big", std::string(20'000, 'm'));
  std::string answer;
  EXPECT_EQ(refused.Unary("x", &answer).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(inflight_.refused(), 1u);
  // Another connection is served.
  TestCall usual(Connect(listener_.address()), kMethod);
  EXPECT_TRUE(usual.Unary("x", &answer).error_code() !=
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  others_.Set(0);
  call.context().TryCancel();
  EXPECT_TRUE(Eventually([&] { return inflight_.reading() == 0; }));
}

// The bytes that arrive on one connection leave capacity for others.
TEST_F(IncomingCallTest, WhoSendsMuchAndEndsNothingIsRefusedAndNobodyElse) {
  const int greedy = ConnectTo(listener_.port());
  ASSERT_TRUE(SendAll(greedy, Greeting()));
  // 9.6 MB of 8.
  for (uint32_t i = 0; i < 600; ++i) {
    ASSERT_TRUE(SendAll(
        greedy, CallHead(1 + 2 * i, kMethod) +
                    CallData(1 + 2 * i,
                             MessageHead(60'000) + std::string(16'000, 'g'))));
  }
  ASSERT_TRUE(Eventually([&] { return !handler_.read().empty(); }));
  EXPECT_THAT(handler_.read().front().error_message(),
              HasSubstr("on this connection"));
  const int before = handler_.started();
  const int other = ConnectTo(listener_.port());
  const std::string start = MessageHead(4096) + std::string(96, 'o');
  ASSERT_TRUE(SendAll(other, absl::StrCat(Greeting(), CallHead(1, kMethod),
                                          CallData(1, start))));
  ASSERT_TRUE(Eventually([&] { return handler_.started() > before; }));
  ASSERT_TRUE(SendAll(other, CallData(1, std::string(4000, 'o'), true)));
  EXPECT_TRUE(Eventually([&] {
    const auto read = handler_.read();
    return std::any_of(read.begin(), read.end(),
                       [](const grpc::Status& status) { return status.ok(); });
  }));
  EXPECT_LE(inflight_.reading(), (4 << 20) + (16 << 10));
  close(other);
  close(greedy);
  EXPECT_TRUE(Eventually([&] { return inflight_.reading() == 0; }));
}

// A call takes memory before anything of its message has come.
TEST_F(IncomingCallTest, CallsWithoutAMessageAreCountedAndRefused) {
  const int greedy[] = {ConnectTo(listener_.port()),
                        ConnectTo(listener_.port())};
  for (const int connection : greedy) {
    ASSERT_TRUE(SendAll(connection, Greeting()));
    for (uint32_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(SendAll(connection, CallHead(1 + 2 * i, kMethod)));
    }
  }
  EXPECT_TRUE(Holds(4 << 20));
  ASSERT_TRUE(Eventually([&] { return inflight_.refused() > 0; }));
  EXPECT_LT(inflight_.reading(), 8 << 20);
  for (const int connection : greedy) close(connection);
  EXPECT_TRUE(Eventually([&] { return inflight_.reading() == 0; }));
}

// Otherwise the bytes that it sends would stay in memory until then.
TEST_F(IncomingCallTest, WhoSendsFasterThanIsUnpackedIsHeldUp) {
  inflight_.SetBound(16 << 20);
  const std::string packed = EmptyBlocks(60'000);
  std::string message = MessageHead(packed.size()) + packed;
  message[0] = '\1';
  const std::string encoding = Http2Header("grpc-encoding", "gzip");
  const int greedy = ConnectTo(listener_.port());
  ASSERT_TRUE(SendAll(greedy, Greeting()));
  // 12 MB, of which the bytes in memory must leave others as much.
  constexpr uint32_t kCalls = 200;
  size_t most = 0;
  for (uint32_t i = 0; i < kCalls; ++i) {
    std::string bytes = CallHead(1 + 2 * i, kMethod, encoding);
    for (size_t at = 0; at < message.size(); at += 16384) {
      bytes += CallData(1 + 2 * i, message.substr(at, 16384),
                        /*end=*/at + 16384 >= message.size());
    }
    ASSERT_TRUE(SendAll(greedy, bytes));
    most = std::max(most, inflight_.reading());
  }
  ASSERT_TRUE(Eventually([&] {
    most = std::max(most, inflight_.reading());
    return handler_.read().size() == kCalls;
  }));
  for (const grpc::Status& status : handler_.read()) {
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_GE(handler_.held_up(), 1);
  EXPECT_GT(most, kMostToUnpack / 2);
  EXPECT_LT(most, kMostToUnpack + (1 << 20));
  close(greedy);
  EXPECT_TRUE(Eventually([&] { return inflight_.reading() == 0; }));
}

class LargeRequestTest : public IncomingCallTest {
 protected:
  static constexpr size_t kSize = 200'000;

  LargeRequestTest() { inflight_.SetBound(64 << 20); }  // reading 8 MiB

  // A request that comes as a whole, or waits to.
  class Large {
   public:
    explicit Large(const std::shared_ptr<grpc::Channel>& channel)
        : call_(channel, kMethod), thread_([this] {
            std::string answer;
            call_.Unary(std::string(kSize, 'r'), &answer);
          }) {}
    ~Large() { thread_.join(); }

   private:
    TestCall call_;
    std::thread thread_;
  };
  // Leaves no capacity for reading, and lets a request go beyond it that does
  // not arrive. There are `calls` more calls of which nothing has come.
  void TakeRoom(size_t others, size_t calls = 0) {
    others_.Set(others);
    held_ = others + kSize + (calls + 1) * IncomingCall::kCallItself;
    partial_ =
        std::make_unique<PartialCaller>(listener_.port(), uint32_t{kSize});
    ASSERT_TRUE(Eventually([&] { return inflight_.reading() == held_; }));
  }
  void GiveRoomBack() {
    partial_ = nullptr;
    others_.Set(0);
    EXPECT_TRUE(Eventually([&] { return inflight_.reading() == 0; }));
  }
  // The next request waits, with the bytes that may come unasked, for capacity.
  void ExpectTheNextToWait() {
    const size_t before = handler_.read().size();
    ASSERT_TRUE(Eventually([&] { return inflight_.reading() == held_; }));
    {
      const Large next(channel_);
      EXPECT_TRUE(Holds(held_ + 60'000));
      EXPECT_FALSE(Eventually([&] { return handler_.read().size() > before; },
                              absl::Milliseconds(100)));
      EXPECT_LE(inflight_.reading(),
                held_ + (64 << 10) + IncomingCall::kCallItself);
      others_.Set(0);
    }
    EXPECT_TRUE(HaveCome(before + 1));
  }
  bool HaveCome(size_t requests) {
    return Eventually([&] { return handler_.read().size() == requests; });
  }

  const std::shared_ptr<grpc::Channel> channel_ = Connect(listener_.address());
  std::unique_ptr<PartialCaller> partial_;
  size_t held_ = 0;
};

TEST_F(LargeRequestTest, TheNextOnItsConnectionNeedsNoRoomToBeGranted) {
  { const Large first(channel_); }
  ASSERT_TRUE(HaveCome(1));
  TakeRoom(50 << 20);
  { const Large second(channel_); }
  ASSERT_TRUE(HaveCome(2));
  // Now the connection's next ones wait as others do.
  ExpectTheNextToWait();
  GiveRoomBack();
}

// A caller that never says that it knows of the usual window brings no more
// than its connection may keep.
TEST_F(LargeRequestTest, WhatComesOnOneConnectionIsBoundedWhateverItKnows) {
  inflight_.SetBound(256 << 20);  // reading 32 MiB
  const int connection = ConnectTo(listener_.port());
  const std::string acknowledged =
      Http2Bytes({Http2Frame::kSettings, Http2Frame::kAck, ""}, BigEndian(0));
  const std::string prefix = MessageHead(kSize);
  const std::string piece(16'000, 'p');  // of 200,000
  ASSERT_TRUE(SendAll(
      connection, absl::StrCat(Greeting(), acknowledged, CallHead(1, kMethod),
                               CallData(1, prefix))));
  // The first is granted as its prefix comes.
  ASSERT_TRUE(Holds(kSize));
  for (size_t left = kSize; left > 0;) {
    const size_t now = std::min(left, piece.size());
    left -= now;
    ASSERT_TRUE(
        SendAll(connection, CallData(1, piece.substr(0, now), left == 0)));
  }
  ASSERT_TRUE(HaveCome(1));
  ASSERT_TRUE(SendAll(connection, acknowledged));
  TakeRoom(120 << 20);
  // 410 bring 79 MB, of which half of the rest, 68 MiB, may be kept.
  for (uint32_t i = 0; i < 410; ++i) {
    const uint32_t stream = 3 + 2 * i;
    std::string bytes = CallHead(stream, kMethod) + CallData(stream, prefix);
    for (int j = 0; j < 12; ++j) bytes += CallData(stream, piece);
    ASSERT_TRUE(SendAll(connection, bytes));
  }
  ASSERT_TRUE(Eventually([&] { return handler_.read().size() > 1; }));
  EXPECT_THAT(handler_.read().back().error_message(),
              HasSubstr("on this connection"));
  EXPECT_GE(inflight_.refused(), 1u);
  EXPECT_LT(inflight_.reading(), held_ + (74 << 20));
  close(connection);
  GiveRoomBack();
}

// One that is announced to be large and stops takes no capacity from others,
// nor do many that began and stopped.
TEST_F(LargeRequestTest, OthersNeedNotWaitForWhatDoesNotCome) {
  const PartialCaller large(listener_.port(), 60 << 20);
  ASSERT_TRUE(Holds(60 << 20));
  const int many = ConnectTo(listener_.port());
  std::string bytes = Greeting();
  for (uint32_t i = 0; i < 300; ++i) {
    bytes +=
        CallHead(1 + 2 * i, kMethod) +
        CallData(1 + 2 * i, MessageHead(1 << 20) + std::string(16'000, 'm'));
  }
  ASSERT_TRUE(SendAll(many, bytes));
  ASSERT_TRUE(Eventually([&] { return handler_.started() == 301; }));
  ASSERT_TRUE(handler_.read().empty());
  const absl::Time start = absl::Now();
  { const Large next(channel_); }
  ASSERT_TRUE(HaveCome(1));
  EXPECT_TRUE(handler_.read().back().ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(9)) << "at ten those end";
  close(many);
}

// Bytes that come one by one would keep the capacity for ever.
TEST_F(LargeRequestTest, OneThatHardlyComesIsEndedWhileOthersWait) {
  const int connection = ConnectTo(listener_.port());
  const absl::Time start = absl::Now();
  ASSERT_TRUE(
      SendAll(connection, absl::StrCat(Greeting(), CallHead(1, kMethod),
                                       CallData(1, MessageHead(kSize)))));
  ASSERT_TRUE(Holds(kSize));
  others_.Set(50 << 20);
  ASSERT_TRUE(Eventually([&] {
    SendAll(connection, CallData(1, "x"));
    return !handler_.read().empty();
  }));
  EXPECT_GE(absl::Now() - start, absl::Seconds(10));
  EXPECT_THAT(handler_.read().front().error_message(),
              HasSubstr("stopped coming"));
  close(connection);
}

// So would bytes within the first window, which need no grant.
TEST_F(IncomingCallTest, OneThatHardlyComesWithoutAGrantIsEndedToo) {
  const int connection = ConnectTo(listener_.port());
  const absl::Time start = absl::Now();
  std::string bytes =
      Greeting() + CallHead(1, kMethod) + CallData(1, MessageHead(50'000));
  for (int i = 0; i < 4; ++i) bytes += CallData(1, std::string(10'000, 'x'));
  ASSERT_TRUE(SendAll(connection, bytes));
  ASSERT_TRUE(Holds(40'000));
  others_.Set(7 << 20);
  ASSERT_TRUE(Eventually([&] {
    SendAll(connection, CallData(1, "x"));
    absl::SleepFor(absl::Milliseconds(100));
    return !handler_.read().empty();
  }));
  EXPECT_GE(absl::Now() - start, absl::Seconds(10));
  EXPECT_THAT(handler_.read().front().error_message(),
              HasSubstr("stopped coming"));
  close(connection);
}

TEST_F(LargeRequestTest, ManyCallsOnItsConnectionEndThat) {
  { const Large first(channel_); }
  ASSERT_TRUE(HaveCome(1));
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 200; ++i) {
    calls.push_back(std::make_unique<TestCall>(channel_, kMethod));
    ASSERT_TRUE(calls.back()->Start());
  }
  ASSERT_TRUE(Eventually([&] { return handler_.started() == 201; }));
  // gRPC's client notices what it has received while it waits for an answer.
  std::string answer;
  TestCall(channel_, kMethod).Unary("x", &answer);
  ASSERT_TRUE(HaveCome(2));
  TakeRoom(16 << 20, calls.size());
  ExpectTheNextToWait();
  for (const auto& call : calls) call->context().TryCancel();
}

TEST_F(LargeRequestTest, WithoutMuchRoomConnectionsStayAsTheyAre) {
  others_.Set(61 << 20);
  { const Large first(channel_); }
  ASSERT_TRUE(HaveCome(1));
  TakeRoom(61 << 20);
  ExpectTheNextToWait();
}

// Answers with bytes that another owner keeps for now, as the memory tier does.
class KeptAnswers final : public CallHandler {
 public:
  explicit KeptAnswers(size_t size = 200'000) : bytes_(size, 'e') {}

  void StartCall(IncomingCallPtr call) override {
    static constexpr http2::Slice::Keeper kKeeper = {
        [](void*) {}, [](void*) {},
        [](void* self) {
          return static_cast<KeptAnswers*>(self)->kept.load();
        }};
    auto kept = std::make_shared<IncomingCallPtr>(std::move(call));
    (*kept)->Read([this, kept](const grpc::Status& status) {
      if (!status.ok()) return IncomingCall::Finish(std::move(*kept), status);
      Message message(http2::Slice::Copy("meta"));
      message.Append(http2::Slice(bytes_, this, &kKeeper));
      if (relays) (*kept)->Relay({}, {});
      IncomingCall::Answer(std::move(*kept), std::move(message),
                           grpc::Status::OK);
      ++answered;
    });
  }
  void OnRefused(Refusal why, const grpc::Status& /*status*/) override {
    if (why == Refusal::kStalled) ++given_up;
    if (why == Refusal::kRoom) ++no_room;
  }
  std::atomic<bool> kept{true};
  std::atomic<bool> relays{false};  // as the answers of misses are
  std::atomic<int> answered{0};
  std::atomic<int> given_up{0};
  std::atomic<int> no_room{0};

 private:
  const std::string bytes_;
};

// A miss waits for capacity to run; other calls have all of it.
class MissThatWaits final : public limits::Budget::Waiter {
 public:
  explicit MissThatWaits(limits::Budget* inflight)
      : inflight_(*inflight),
        others_(inflight, limits::Budget::Quota::kRunning, 2) {
    others_.Set(inflight_.limit(limits::Budget::Quota::kRunning));
    EXPECT_EQ(inflight_.Admit(this, worker_->loop(), 2, 1000),
              limits::Budget::Admission::kWaits);
  }
  ~MissThatWaits() { inflight_.Forget(this); }
  MissThatWaits(const MissThatWaits&) = delete;
  MissThatWaits& operator=(const MissThatWaits&) = delete;
  void OnAdmitted() override {}

 private:
  limits::Budget& inflight_;
  const std::unique_ptr<Worker> worker_ = std::make_unique<Worker>(2);
  limits::Charge others_;
};

std::string SmallCall(uint32_t id, const std::string& metadata = "") {
  return CallHead(id, kMethod, metadata) +
         CallData(id, MessageHead(1) + "x", /*end=*/true);
}

// SETTINGS_INITIAL_WINDOW_SIZE of 0.
std::string NoWindow() {
  return Http2Bytes({Http2Frame::kSettings, 0, std::string("\0\4\0\0\0\0", 6)},
                    BigEndian(0));
}

// Answers that are not read, however small, count as calls.
TEST(SlowTakerTest, CallsWhoseAnswersAreNotTakenAreCountedAndBounded) {
  limits::Budget inflight(1 << 20, 3);
  KeptAnswers handler;
  TestListener listener(&handler, 2, nullptr, &inflight);
  const int connection = ConnectTo(listener.port());
  std::string calls = absl::StrCat(Greeting(), NoWindow());
  constexpr int kCalls = 600;
  for (uint32_t i = 0; i < kCalls; ++i) {
    calls += SmallCall(2 * i + 1);
  }
  ASSERT_TRUE(SendAll(connection, calls));
  ASSERT_TRUE(
      Eventually([&] { return handler.answered + handler.no_room == kCalls; }));
  // Half of what others leave.
  constexpr int kRoom = (1 << 20) / 2 / IncomingCall::kCallItself;
  EXPECT_LE(std::abs(handler.answered - kRoom), 20);
  EXPECT_TRUE(Eventually([&] {
    return inflight.reading() == handler.answered * IncomingCall::kCallItself;
  }));
  // Which leaves others so little that they are ended after a while.
  limits::Charge others(&inflight, limits::Budget::Quota::kKept, 2);
  others.Set(inflight.bound());
  EXPECT_TRUE(Eventually([&] { return handler.given_up == handler.answered; }));
  EXPECT_TRUE(Eventually([&] { return inflight.reading() == others.bytes(); }));
  close(connection);
}

// A miss's answer occupies capacity while it is not read. So does an entry that
// has left the memory tier. The memory of its request's metadata is free again.
TEST(SlowTakerTest, SmallAnswersAreGivenUpWhileMissesWait) {
  limits::Budget inflight(8 << 20, 3);
  KeptAnswers handler(1000);
  TestListener listener(&handler, 2, nullptr, &inflight);
  const MissThatWaits miss(&inflight);
  const size_t before = inflight.running();
  const int connection = ConnectTo(listener.port());
  ASSERT_TRUE(SendAll(connection, absl::StrCat(Greeting(), NoWindow())));
  std::string metadata;
  for (int i = 0; i < 10; ++i) {
    metadata += Http2Header(absl::StrCat("name-", i), std::string(100, 'v'));
  }
  handler.relays = true;
  ASSERT_TRUE(
      SendAll(connection, SmallCall(1, metadata) + SmallCall(3, metadata)));
  EXPECT_TRUE(Eventually([&] { return handler.answered == 2; }));
  EXPECT_TRUE(Eventually([&] { return inflight.running() > before + 2000; }));
  handler.relays = false;
  ASSERT_TRUE(
      SendAll(connection, SmallCall(5, metadata) + SmallCall(7, metadata)));
  ASSERT_TRUE(Eventually([&] { return handler.answered == 4; }));
  EXPECT_LE(inflight.reading(), 4 * IncomingCall::kCallItself);
  EXPECT_TRUE(Eventually([&] { return handler.given_up == 2; }));
  handler.kept = false;
  EXPECT_TRUE(Eventually([&] { return handler.given_up == 4; }));
  EXPECT_TRUE(Eventually([&] { return inflight.running() == before; }));
  close(connection);
}

// Answers are sent one after the other: of the last nothing is taken while the
// first is, though its caller reads.
TEST(SlowTakerTest, WhatStandsBehindOthersIsNotGivenUp) {
  limits::Budget inflight(256 << 20, 3);
  KeptAnswers handler(3'000'000);
  handler.relays = true;
  TestListener listener(&handler, 2, nullptr, &inflight);
  const MissThatWaits miss(&inflight);
  const int connection = ConnectTo(listener.port());
  const int small = 16 << 10;
  setsockopt(connection, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  // Windows of 16 MiB.
  std::string calls = absl::StrCat(
      Greeting(),
      Http2Bytes({Http2Frame::kSettings, 0, std::string("\0\4\1\0\0\0", 6)},
                 BigEndian(0)),
      Http2Bytes({Http2Frame::kWindowUpdate, 0, BigEndian(1 << 24)},
                 BigEndian(0)));
  for (const uint32_t id : {1, 3, 5}) calls += SmallCall(id);
  ASSERT_TRUE(SendAll(connection, calls));
  ASSERT_TRUE(Eventually([&] { return handler.answered == 3; }));
  std::string taken(30'000, '\0');
  const absl::Time start = absl::Now();
  while (absl::Now() - start < absl::Seconds(13)) {
    ASSERT_GT(recv(connection, taken.data(), taken.size(), 0), 0);
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_EQ(handler.given_up, 0);
  // Now it does not.
  EXPECT_TRUE(Eventually([&] { return handler.given_up > 0; }));
  close(connection);
}

// A client that reads a hit byte by byte occupies nothing that others could
// have, until it is the last user of the entry.
TEST(SlowTakerTest, TakesNoRoomUnlessTheEntryHasGone) {
  limits::Budget inflight(8 << 20, 3);
  KeptAnswers handler;
  TestListener listener(&handler, 2, nullptr, &inflight);
  const MissThatWaits miss(&inflight);
  const size_t before = inflight.running();

  const int connection = ConnectTo(listener.port());
  std::string calls = absl::StrCat(Greeting(), NoWindow());
  for (const uint32_t id : {1, 3, 5}) calls += SmallCall(id);
  ASSERT_TRUE(SendAll(connection, calls));
  ASSERT_TRUE(Eventually([&] { return handler.answered == 3; }));
  const auto trickle = [&] {
    for (const uint32_t id : {1, 3, 5}) {
      SendAll(connection,
              Http2Bytes({Http2Frame::kWindowUpdate, 0, BigEndian(1)},
                         BigEndian(id)));
    }
    absl::SleepFor(absl::Milliseconds(100));
  };
  const absl::Time start = absl::Now();
  while (absl::Now() - start < absl::Seconds(11)) {
    trickle();
    ASSERT_EQ(inflight.running(), before);
  }
  EXPECT_EQ(handler.given_up, 0);
  handler.kept = false;
  EXPECT_TRUE(Eventually([&] {
    trickle();
    return handler.given_up == 3;
  }));
  EXPECT_TRUE(Eventually([&] { return inflight.running() == before; }));
  close(connection);
}

}  // namespace
}  // namespace fncache::proxy::transport
