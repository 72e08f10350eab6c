// SPDX-License-Identifier: Apache-2.0
#include "proxy/shared_check.h"

#include <cstdint>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cache/store/shared_scripts.h"
#include "cache/store/shared_store.h"
#include "cache/store/shared_value.h"
#include "common/size.h"
#include "common/utf8.h"

namespace fncache::proxy {
namespace {

using cache::store::SharedStore;
using resp::Answer;
using resp::Node;
using resp::Outcome;

// The time in which all nodes must be up: connecting, login and PING have 2 s
// each.
constexpr absl::Duration kPatience = absl::Seconds(6);
constexpr absl::Duration kPause = absl::Milliseconds(10);
// A value that the check cannot delete is gone after this time.
constexpr char kLifetimeMs[] = "10000";

std::string ShortText(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Microseconds(1)));
}

class Check {
 public:
  Check(absl::string_view prefix, std::string record, resp::Server* server)
      : server_(server),
        until_(absl::Now() + kPatience),
        record_(std::move(record)) {
    absl::BitGen random;
    name_ = absl::StrFormat("%s:1:%016x%016x", prefix,
                            absl::Uniform<uint64_t>(random),
                            absl::Uniform<uint64_t>(random));
  }

  absl::StatusOr<SharedReport> Run() {
    const std::string value =
        absl::StrCat(cache::store::ClearHeader(absl::Now()), "fncache checks");
    // The script stores nothing after this time of the server.
    const std::string never = absl::StrCat("1", std::string(20, '9'));
    // In a Cluster the first look finds the node of the record, the second one
    // takes its time. The fill finds another node.
    if (AwaitNodes() && Look() && Look() && ReadClock() &&
        Try("fill", name_,
            {"EVAL", cache::store::kFillScript, "1", name_, value, never,
             kLifetimeMs}) &&
        Try("GET", name_, {"GET", name_}) && IsValue(value) &&
        Try("DEL", name_, {"DEL", name_}) && AwaitNodes()) {
      Describe();
      // The last command, because the client takes a node for down on which it
      // may not do something.
      DescribeMemory();
      return std::move(report_);
    }
    return absl::UnavailableError(Printable(failed_));
  }

 private:
  // True once every known node is up.
  bool AwaitNodes() {
    bool up = false;
    while (!up && failed_.empty()) {
      const std::vector<Node> nodes = server_->figures().nodes;
      up = !nodes.empty();
      for (const Node& node : nodes) {
        if (node.state == Node::State::kUp) continue;
        up = false;
        if (node.state == Node::State::kDown || absl::Now() >= until_) {
          failed_ = absl::StrCat(node.address, ": ",
                                 node.why.empty() ? "no reply" : node.why);
        }
      }
      if (!up) absl::SleepFor(kPause);
    }
    return up;
  }

  void Ask(absl::string_view key, std::vector<absl::string_view> words) {
    asked_ = absl::Now();
    answer_ = cache::store::RunCommand(server_, key, std::move(words));
    took_ = absl::Now() - asked_;
  }

  // Whether the server does it. In a Cluster the command may lead to a node
  // that still connects.
  bool Try(absl::string_view step, absl::string_view key,
           const std::vector<absl::string_view>& words) {
    Ask(key, words);
    while (answer_.outcome == Outcome::kDown && AwaitNodes() &&
           absl::Now() < until_) {
      absl::SleepFor(kPause);
      Ask(key, words);
    }
    if (answer_.outcome == Outcome::kReply) return true;
    failed_ = absl::StrCat(step, ": ", answer_.why);
    return false;
  }

  bool Look() {
    return Try("TIME", record_,
               {"EVAL", cache::store::kLookScript, "1", record_, "1"});
  }

  bool ReadClock() {
    const std::vector<resp::Reply>& reply = answer_.reply.elements;
    int64_t seconds = 0, micros = 0;
    if (reply.size() != 3 || !absl::SimpleAtoi(reply[1].text, &seconds) ||
        !absl::SimpleAtoi(reply[2].text, &micros)) {
      failed_ = "TIME: the reply is no time";
      return false;
    }
    round_trip_ = took_;
    ahead_ = asked_ + took_ / 2 - absl::FromUnixSeconds(seconds) -
             absl::Microseconds(micros);
    return true;
  }

  bool IsValue(const std::string& value) {
    if (answer_.reply.text == value) return true;
    failed_ = "GET: the value is not the one that was stored";
    return false;
  }

  void Describe() {
    const resp::ServerFigures figures = server_->figures();
    Say("login, TIME, fill, read and delete", "done");
    Say("Cluster", figures.cluster ? "yes" : "no");
    for (const Node& node : figures.nodes) {
      Say("node", absl::StrCat(node.address, ", version ", node.version, ", ",
                               node.role));
    }
    Say("round trip", ShortText(round_trip_));
    const absl::Duration apart = absl::AbsDuration(ahead_);
    Say("clock difference",
        absl::StrCat(
            ShortText(apart), ", that of ",
            ahead_ > absl::ZeroDuration() ? "this machine" : "the server",
            " is ahead"));
    if (apart > SharedStore::kClockLimit) {
      report_.warnings.push_back(absl::StrCat(
          "the clocks of this machine and of the server differ by ",
          ShortText(apart), ": beyond ", ShortText(SharedStore::kClockLimit),
          " the daemon does not use the shared tier"));
    }
  }

  void DescribeMemory() {
    Ask(record_, {"CONFIG", "GET", "maxmemory", "maxmemory-policy"});
    if (answer_.outcome != Outcome::kReply) {
      Say("memory bound and eviction policy",
          absl::StrCat("unknown, this user may not ask (", answer_.why, ")"));
      return;
    }
    const std::vector<resp::Reply>& reply = answer_.reply.elements;
    for (size_t i = 0; i + 1 < reply.size(); i += 2) {
      const std::string& value = reply[i + 1].text;
      const bool policy = reply[i].text == "maxmemory-policy";
      uint64_t bytes = 0;
      const bool number = absl::SimpleAtoi(value, &bytes);
      Say(policy ? "eviction policy" : "memory bound", !number ? value
                                                       : bytes > 0
                                                           ? FormatSize(bytes)
                                                           : "none");
      if (!policy && number && bytes == 0) {
        report_.warnings.emplace_back(
            "the server has no memory bound (maxmemory 0): it grows until its "
            "machine has no memory");
      }
      if (policy && value == "noeviction") {
        report_.warnings.emplace_back(
            "the server's maxmemory-policy is noeviction: it refuses fills "
            "once its memory is full; better use volatile-lru");
      }
    }
  }

  void Say(absl::string_view what, absl::string_view value) {
    absl::StrAppend(&report_.text, "#   ", what, ": ", Printable(value), "\n");
  }

  resp::Server* const server_;
  const absl::Time until_;
  const std::string record_;  // the name of the record of bans
  std::string name_;          // that of the value
  // The last command.
  absl::Time asked_;
  absl::Duration took_;
  Answer answer_;
  std::string failed_;  // what failed
  absl::Duration round_trip_;
  absl::Duration ahead_;  // of this machine's clock
  SharedReport report_{"# Shared tier:\n", {}};
};

}  // namespace

absl::StatusOr<SharedReport> CheckShared(absl::string_view prefix,
                                         std::string record,
                                         resp::Server* server) {
  return Check(prefix, std::move(record), server).Run();
}

}  // namespace fncache::proxy
