// SPDX-License-Identifier: Apache-2.0
// The simulated server against real ones: random sequences of our scripts, also
// with arguments and values that no daemon makes, have equal replies and leave
// equal values. And what its faults do.
#include "tests/cache/store/simulated_server.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cache/store/shared_scripts.h"
#include "gtest/gtest.h"
#include "resp/client.h"
#include "tests/common/eventually.h"
#include "tests/common/long_form.h"
#include "tests/resp/redis_server.h"

namespace fncache::cache::store::testing {
namespace {

using resp::Answer;
using resp::Command;
using resp::Outcome;
using resp::Reply;
using Fault = SimulatedServer::Fault;
using Words = std::vector<std::string>;

Answer RunOn(resp::Server* server, const Words& words) {
  Command command;
  command.words.assign(words.begin(), words.end());
  command.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  command.max_reply_bytes = 1 << 20;
  return server->Run(command);
}

// A real server with its client.
class RealServer {
 public:
  RealServer() {
    resp::ClientOptions options;
    options.endpoint = server_.unix_endpoint();
    client_ = resp::Client::Create(std::move(options));
    EXPECT_TRUE(Eventually([this] {
      return client_->NodeOf("").state == resp::Node::State::kUp;
    }));
  }
  Answer Run(const Words& words) { return RunOn(client_.get(), words); }

 private:
  const resp::testing::RedisServer server_;
  std::unique_ptr<resp::Client> client_;
};

Words Eval(absl::string_view script, absl::string_view name, Words arguments) {
  Words words = {"EVAL", std::string(script), "1", std::string(name)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::string Shown(const Reply& reply) {
  std::string shown =
      absl::StrCat(static_cast<int>(reply.kind), " ", reply.integer, " ",
                   absl::CHexEscape(reply.text));
  for (const Reply& element : reply.elements) {
    absl::StrAppend(&shown, " (", Shown(element), ")");
  }
  return shown;
}

std::string Header(uint64_t started) {
  return absl::StrFormat("1%020u", started);
}

// --------------------------------------------------------------- Comparison

// Runs the same random commands on the model and on a real server.
class Comparison {
 public:
  Comparison(uint32_t seed, SimulatedServer::Defect defect, RealServer* real)
      : random_(seed), real_(*real) {
    model_.SetDefect(defect);
    SetFull(false);
    real_.Run({"FLUSHALL"});
  }

  // Returns the first difference; empty if there was none.
  std::string Go(int steps) {
    std::string difference;
    for (int i = 0; i < steps && difference.empty(); ++i) difference = Step();
    return difference;
  }
  // How many commands failed on both.
  int errors() const { return errors_; }

 private:
  size_t Draw(size_t n) { return random_() % n; }
  template <typename... Strings>
  std::string OneOf(Strings... strings) {
    const std::string all[] = {strings...};
    return all[Draw(sizeof...(strings))];
  }

  // Few, so that they are often equal, and with neighbours on both sides.
  std::string DrawHeader() {
    std::string header = Header(base_ + Draw(4));
    switch (Draw(14)) {
      case 0:
        return header.substr(0, Draw(21));
      case 1:
        return header + OneOf("0", "9", "a", std::string(1, '\0'));
      case 2:
        header[Draw(21)] = OneOf(std::string(1, '\0'), " ", "-", "/", ":", "x",
                                 "\xff", "2")[0];
        return header;
      case 3:
        return Header(Draw(3));
      case 4:
        return "1" + std::string(20, '9');
      default:
        return header;
    }
  }
  std::string DrawBytes(size_t most) {
    std::string bytes(Draw(most), '\0');
    for (char& c : bytes) {
      c = Draw(3) == 0 ? '\0' : static_cast<char>(random_());
    }
    return bytes;
  }
  std::string DrawValue() { return DrawHeader() + DrawBytes(40); }
  // How a value begins, or nearly.
  std::string DrawBeginning(const std::string& name) {
    const auto value = model_.Read(name);
    std::string begin = value.has_value() ? value->bytes : "";
    begin.resize(std::min(begin.size(), Draw(50)));
    if (Draw(4) == 0 && !begin.empty()) ++begin[Draw(begin.size())];
    if (Draw(10) == 0) begin += DrawBytes(3);
    if (Draw(10) == 0) begin.clear();
    return begin;
  }
  std::string DrawTimeLeft() {
    if (Draw(5) > 0) return absl::StrCat(3'600'000 + Draw(1'000'000));
    return OneOf("9223372036854775807", "9223372036854775808", "0", "-1", "",
                 "x", "1.5", "060000", " 60000", "+60000", "1000000000000000");
  }

  void SetFull(bool full) {
    full_ = full;
    model_.SetFull(full);
    real_.Run({"CONFIG", "SET", "maxmemory", full ? "1" : "0"});
  }

  std::string Step() {
    const std::string name = OneOf("a", "b", "c");
    if (Draw(full_ ? 8 : 40) == 0) SetFull(!full_);
    switch (Draw(12)) {
      case 0: {  // something that no daemon wrote
        if (full_) return "";
        const std::string bytes = Draw(2) == 0 ? DrawValue() : DrawBytes(30);
        model_.Write(name, {bytes, absl::nullopt});
        real_.Run({"SET", name, bytes});
        return "";
      }
      case 1:
        return Compare({"GET", name});
      case 2:
        return Compare({"DEL", name});
      case 3:
        return Compare(Eval(kRejectScript, name, {DrawBeginning(name)}));
      case 4:
      case 5:
        return Compare(Eval(kEraseScript, name,
                            {DrawValue(), DrawHeader(), DrawTimeLeft()}));
      case 6:
        return Compare(Eval(kLookScript, name,
                            {OneOf("25", "25", "25", "0", "1", "2", "100", "-1",
                                   "-7", "x", "")}));
      case 7:
      case 8:
        return Compare(
            Eval(kRecordScript, name, {DrawBeginning(name), DrawValue()}));
      default:
        return Compare(Eval(kFillScript, name,
                            {DrawValue(), DrawHeader(), DrawTimeLeft()}));
    }
  }

  std::string Compare(const Words& words) {
    const absl::Time before = absl::FromUnixMicros(ToUnixMicros(absl::Now()));
    clock_.Set(before);
    Answer simulated = RunOn(client_.get(), words);
    Answer real = real_.Run(words);
    const absl::Time after = absl::Now();
    const std::string command =
        absl::CHexEscape(absl::StrJoin(words, " | ")) + ": ";
    // In errors of scripts more words follow.
    if (simulated.outcome != real.outcome ||
        !absl::StartsWith(real.why, simulated.why)) {
      return absl::StrCat(command, simulated.why, "; but ", real.why);
    }
    errors_ += real.outcome == Outcome::kError;
    if (words.size() > 1 && words[1] == kLookScript &&
        real.outcome == Outcome::kReply) {
      if (real.reply.elements.size() != 3) return command + "no time";
      const absl::Time time = TimeOf(real.reply);
      if (time < before || time > after || TimeOf(simulated.reply) != before) {
        return command + "another time";
      }
      real.reply.elements.resize(1);
      simulated.reply.elements.resize(1);
    }
    if (real.outcome == Outcome::kReply &&
        Shown(simulated.reply) != Shown(real.reply)) {
      return absl::StrCat(command, Shown(simulated.reply), "; but ",
                          Shown(real.reply));
    }
    const std::string values = CompareValues(after - before);
    return values.empty() ? "" : command + values;
  }
  static absl::Time TimeOf(const Reply& reply) {
    int64_t seconds = -1;
    int64_t micros = -1;
    EXPECT_TRUE(absl::SimpleAtoi(reply.elements[1].text, &seconds));
    EXPECT_TRUE(absl::SimpleAtoi(reply.elements[2].text, &micros));
    return absl::FromUnixSeconds(seconds) + absl::Microseconds(micros);
  }
  // The last command took `took`, so a value may end later by that much.
  std::string CompareValues(absl::Duration took) {
    for (const char* const name : {"a", "b", "c"}) {
      const auto simulated = model_.Read(name);
      const Answer bytes = real_.Run({"GET", name});
      const bool there = bytes.reply.kind == Reply::Kind::kText;
      if (there != simulated.has_value()) {
        return absl::StrCat(name, there ? " is there" : " is not there");
      }
      if (!there) {
        longer_.erase(name);
        continue;
      }
      if (bytes.reply.text != simulated->bytes) {
        return absl::StrCat(name, " is ", absl::CHexEscape(simulated->bytes),
                            "; but ", absl::CHexEscape(bytes.reply.text));
      }
      const int64_t end = simulated->ends.value_or(-1);
      auto& [last_end, longer] = longer_[name];
      if (end != last_end) {
        last_end = end;
        longer = end == -1 ? 0 : absl::ToInt64Milliseconds(took) + 1;
      }
      const int64_t real_end = real_.Run({"PEXPIRETIME", name}).reply.integer;
      if (real_end < end || real_end > end + longer) {
        return absl::StrCat(name, " ends at ", end, "; but at ", real_end);
      }
    }
    return "";
  }

  std::mt19937 random_;
  RealServer& real_;
  SimulatedClock clock_{absl::Now()};
  SimulatedServer model_{&clock_};
  const std::unique_ptr<resp::Server> client_ = model_.Connect(0);
  // By name: when the value ends in the model, and how much later the real one
  // may end, in milliseconds.
  std::map<std::string, std::pair<int64_t, int64_t>> longer_;
  // Neither server is late: an hour ahead, in nanoseconds.
  const uint64_t base_ = absl::ToUnixNanos(clock_.Now() + absl::Hours(1));
  bool full_ = false;
  int errors_ = 0;
};

constexpr int kSteps = 100;

// FNCACHE_TEST_REDIS_SERVER names another server.
TEST(SimulatedServerTest, ScriptsDoWhatTheyDoInARealServer) {
  RealServer real;
  const int sequences = fncache::testing::FewerSanitized(64);
  int errors = 0;
  for (int seed = 1; seed <= sequences; ++seed) {
    Comparison comparison(seed, SimulatedServer::Defect::kNone, &real);
    ASSERT_EQ(comparison.Go(kSteps), "") << seed;
    errors += comparison.errors();
  }
  EXPECT_GT(errors, sequences);
}

TEST(SimulatedServerTest, TheComparisonFindsEachDefect) {
  using Defect = SimulatedServer::Defect;
  RealServer real;
  for (const Defect defect : {Defect::kFillsOverLater, Defect::kErasesLater,
                              Defect::kNeverEnds, Defect::kWritesAnyRecord}) {
    bool found = false;
    for (int seed = 1; seed <= 8 && !found; ++seed) {
      found = !Comparison(seed, defect, &real).Go(kSteps).empty();
    }
    EXPECT_TRUE(found) << static_cast<int>(defect);
  }
}

// -------------------------------------------------------------------- Model

class SimulatedServerFaultTest : public ::testing::Test {
 protected:
  SimulatedServerFaultTest() {
    server_.SetHooks({[this](int replica, const Command&) {
                        seen_ = replica;
                        return fault_;
                      },
                      nullptr});
  }
  // The latest start that counts.
  std::string Latest() {
    return Header(absl::ToUnixNanos(clock_.Now() + absl::Seconds(5)));
  }
  Answer Fill(uint64_t started) {
    return RunOn(one_.get(), Eval(kFillScript, "a",
                                  {Header(started) + "x", Latest(), "1000"}));
  }
  Outcome Get() { return RunOn(two_.get(), {"GET", "a"}).outcome; }
  bool There() { return server_.Read("a").has_value(); }

  SimulatedClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  SimulatedServer server_{&clock_};
  Fault fault_ = Fault::kNone;
  int seen_ = 0;
  const std::unique_ptr<resp::Server> one_ = server_.Connect(1);
  const std::unique_ptr<resp::Server> two_ = server_.Connect(2);
};

TEST_F(SimulatedServerFaultTest, ReplicasHaveOneState) {
  EXPECT_EQ(Fill(7).reply.integer, 1);
  EXPECT_EQ(seen_, 1);
  EXPECT_EQ(RunOn(two_.get(), {"GET", "a"}).reply.text, Header(7) + "x");
  EXPECT_EQ(seen_, 2);
}

TEST_F(SimulatedServerFaultTest, AValueEndsByTheServersClock) {
  Fill(7);
  clock_.Advance(absl::Milliseconds(1000));
  EXPECT_TRUE(There());
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_FALSE(There());
  EXPECT_EQ(RunOn(two_.get(), {"GET", "a"}).reply.kind, Reply::Kind::kNil);
}

TEST_F(SimulatedServerFaultTest, ACommandWithoutReplyMayHaveTakenEffect) {
  for (const auto& [fault, outcome, effect] :
       std::vector<std::tuple<Fault, Outcome, bool>>{
           {Fault::kLost, Outcome::kTimeout, false},
           {Fault::kNoReply, Outcome::kTimeout, true},
           {Fault::kLate, Outcome::kTimeout, false},
           {Fault::kClosed, Outcome::kBroken, false},
           {Fault::kClosedAfter, Outcome::kBroken, true},
           {Fault::kDown, Outcome::kDown, false},
           {Fault::kError, Outcome::kError, false}}) {
    server_.Clear();
    fault_ = fault;
    EXPECT_EQ(Fill(7).outcome, outcome);
    EXPECT_EQ(There(), effect) << static_cast<int>(fault);
  }
  EXPECT_EQ(server_.DeliverLate(), 1u);
  EXPECT_TRUE(There());
}

TEST_F(SimulatedServerFaultTest, ALateCommandTakesNoEffect) {
  for (const absl::Duration late : {absl::Seconds(5), absl::Seconds(6)}) {
    fault_ = Fault::kLate;
    Fill(7);
    clock_.Advance(late);
    server_.DeliverLate();
    EXPECT_EQ(There(), late <= absl::Seconds(5));
    server_.Clear();
  }
}

TEST_F(SimulatedServerFaultTest, AReplicaOrAllAreCutOff) {
  server_.SetReachable(1, false);
  EXPECT_EQ(Fill(7).outcome, Outcome::kDown);
  EXPECT_EQ(one_->NodeOf("").state, resp::Node::State::kDown);
  EXPECT_EQ(Get(), Outcome::kReply);
  server_.SetReachable(1, true);
  server_.SetUp(false);
  EXPECT_EQ(Get(), Outcome::kDown);
  server_.SetUp(true);
  EXPECT_EQ(Fill(7).outcome, Outcome::kReply);
}

TEST_F(SimulatedServerFaultTest, AFullServerOnlyRefusesToSet) {
  Fill(7);
  server_.SetFull(true);
  EXPECT_EQ(Fill(8).outcome, Outcome::kError);
  EXPECT_EQ(Fill(6).reply.integer, 0) << "older, so nothing is set";
  EXPECT_EQ(
      RunOn(one_.get(), Eval(kEraseScript, "a", {Header(7), Latest(), "1000"}))
          .reply.integer,
      1);
  EXPECT_FALSE(There()) << "without a mark";
}

TEST_F(SimulatedServerFaultTest, AnOlderCopyIsPromoted) {
  Fill(7);
  const SimulatedServer::Copy copy = server_.Take();
  Fill(8);
  EXPECT_EQ(server_.Read("a")->bytes, Header(8) + "x");
  server_.Promote(copy);
  EXPECT_EQ(server_.Read("a")->bytes, Header(7) + "x");
  EXPECT_EQ(server_.History("a").size(), 2u);
  EXPECT_TRUE(server_.Evict("a"));
  EXPECT_FALSE(server_.Evict("a"));
  EXPECT_TRUE(server_.Names().empty());
}

TEST_F(SimulatedServerFaultTest, AReplyThatIsTooLargeBreaksTheConnection) {
  Fill(7);
  Command command;
  command.words = {"GET", "a"};
  command.max_reply_bytes = 21;
  EXPECT_EQ(one_->Run(command).outcome, Outcome::kBroken);
  EXPECT_EQ(one_->figures().broken, 1u);
}

TEST_F(SimulatedServerFaultTest, AMeddlerChangesOnlyWhatItMay) {
  Fill(7);
  server_.Write("b", {"kept", absl::nullopt});
  std::mt19937 random(1);
  int changes = 0;
  for (int i = 0; i < 100; ++i) {
    const SimulatedServer::Copy before = server_.Take();
    const bool changed =
        server_.Meddle(&random, [](const auto& name) { return name == "a"; });
    changes += changed && !(server_.Take() == before);
    if (!server_.Read("a").has_value() || server_.Read("a")->bytes.empty()) {
      Fill(7);
    }
  }
  EXPECT_GT(changes, 20);
  EXPECT_EQ(server_.Read("b")->bytes, "kept");
}

}  // namespace
}  // namespace fncache::cache::store::testing
