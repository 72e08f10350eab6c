// SPDX-License-Identifier: Apache-2.0
#include "runner/replay/play.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/json_tree.h"
#include "common/mutex.h"
#include "common/utf8.h"
#include "insight/request/redact.h"
#include "insight/trace/reader.h"
#include "proto/function_v1.pb.h"
#include "runner/client/function_client.h"
#include "runner/load/format.h"
#include "runner/load/measure.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::replay {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using insight::trace::ReadCall;
using insight::trace::TraceReader;

constexpr char kFunction[] = "target";
// The runner's patience with a whole pipeline.
constexpr absl::Duration kPatience = absl::Minutes(2);
// Calls that are under way at once: without pauses, and at all.
constexpr int kAtOnce = 64;
constexpr int kMostAtOnce = 10'000;

// The bytes by which two answers are compared.
std::string Canonical(fn::RunFunctionResponse response) {
  insight::request::Redact(&response);
  response.clear_meta();
  return text::DeterministicBytes(response);
}

// The calls of a trace by their arrival, though they were written when they
// ended: held back until none that ended later can have come before.
class ByArrival {
 public:
  ByArrival(std::unique_ptr<TraceReader> reader, absl::Duration longest)
      : reader_(std::move(reader)), longest_(longest) {}

  bool Next(ReadCall* call) {
    ReadCall read;
    while (!over_ &&
           (held_.empty() || held_.top().call.arrived + longest_ >= newest_)) {
      if (!reader_->Next(&read)) {
        over_ = true;
        break;
      }
      newest_ = std::max(newest_, read.call.arrived + read.call.latency);
      if (!read.request_message.empty()) held_.push(std::move(read));
    }
    if (held_.empty()) return false;
    *call = held_.top();
    held_.pop();
    return true;
  }

 private:
  struct Later {
    bool operator()(const ReadCall& a, const ReadCall& b) const {
      return a.call.arrived > b.call.arrived;
    }
  };
  const std::unique_ptr<TraceReader> reader_;
  const absl::Duration longest_;
  absl::Time newest_ = absl::InfinitePast();
  bool over_ = false;
  std::priority_queue<ReadCall, std::vector<ReadCall>, Later> held_;
};

class Player {
 public:
  Player(client::FunctionCaller* caller, int at_once)
      : caller_(caller), at_once_(at_once) {}

  void Send(const ReadCall& read) {
    fn::RunFunctionRequest request;
    if (!request.ParseFromString(read.request_message)) {
      MutexLock lock(&mutex_);
      ++played_.without_message;
      return;
    }
    {
      MutexLock lock(&mutex_);
      while (under_way_ >= at_once_) changed_.Wait(&mutex_);
      ++under_way_;
      ++played_.sent;
    }
    const bool succeeded = read.call.status == 0;
    fn::RunFunctionResponse recorded;
    const bool known =
        !succeeded || (!read.response_message.empty() &&
                       recorded.ParseFromString(read.response_message));
    std::string whose = absl::StrCat(
        read.call.composite.object_namespace, "/", read.call.composite.name,
        read.call.step.empty() ? "" : ", step ", read.call.step, " at ",
        absl::FormatTime("%H:%M:%E3S", read.call.arrived, absl::UTCTimeZone()));
    caller_->Call(
        kFunction, request, absl::Now() + kPatience,
        [this, succeeded, known, expected = Canonical(std::move(recorded)),
         whose = std::move(whose)](client::CallResult result) {
          std::string difference;
          if (result.status.ok() != succeeded) {
            difference = succeeded ? std::string(result.status.message())
                                   : "it failed then, and not now";
          } else if (succeeded && known &&
                     Canonical(std::move(result.response)) != expected) {
            difference = "another answer";
          }
          Ended(known, difference, whose,
                insight::trace::OutcomeName(
                    load::OutcomeOf(result.cache_status)));
        });
  }

  Played End() {
    MutexLock lock(&mutex_);
    while (under_way_ > 0) changed_.Wait(&mutex_);
    return played_;
  }

 private:
  void Ended(bool known, const std::string& difference,
             const std::string& whose, const char* outcome) {
    MutexLock lock(&mutex_);
    ++played_.outcomes[outcome];
    if (!difference.empty()) {
      if (played_.different++ == 0) {
        played_.example = absl::StrCat(whose, ": ", difference);
      }
    } else {
      ++(known ? played_.same : played_.unknown);
    }
    --under_way_;
    changed_.SignalAll();
  }

  client::FunctionCaller* const caller_;
  const int at_once_;
  Mutex mutex_;
  CondVar changed_;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  Played played_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<Played> Play(const PlayOptions& options) {
  auto reader = TraceReader::Open(options.trace);
  if (!reader.ok()) return reader.status();
  if ((*reader)->header().level != insight::trace::Level::kFull) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.trace,
                     ": has no messages; --play needs a trace of level full "
                     "(trace.level, --trace-level)"));
  }
  absl::Duration longest;
  absl::Time first = absl::InfiniteFuture();
  uint64_t without = 0;
  ReadCall read;
  while ((*reader)->Next(&read)) {
    if (read.request_message.empty()) {
      ++without;
      continue;
    }
    longest = std::max(longest, read.call.latency);
    first = std::min(first, read.call.arrived);
  }
  if (first == absl::InfiniteFuture()) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.trace, ": holds no calls with messages"));
  }
  client::FunctionClientOptions connection;
  connection.functions = {{kFunction, options.target}};
  connection.tls_dir = options.tls_dir;
  auto client = client::FunctionClient::Create(std::move(connection));
  if (!client.ok()) return client.status();
  auto again = TraceReader::Open(options.trace);
  if (!again.ok()) return again.status();
  ByArrival calls(*std::move(again), longest);
  Player player(client->get(),
                options.speed.has_value() ? kMostAtOnce : kAtOnce);
  const absl::Time began = absl::Now();
  while (calls.Next(&read)) {
    if (options.speed.has_value()) {
      absl::SleepFor(began + (read.call.arrived - first) / *options.speed -
                     absl::Now());
    }
    player.Send(read);
  }
  Played played = player.End();
  played.without_message += without;
  played.seconds = absl::ToDoubleSeconds(absl::Now() - began);
  return played;
}

std::string PlayedText(const Played& played) {
  std::string text =
      absl::StrCat(played.sent, " calls played in ",
                   load::FormatSeconds(played.seconds), ": ", played.same,
                   " answered as recorded, ", played.different, " otherwise");
  if (played.unknown > 0) {
    absl::StrAppend(&text, ", ", played.unknown, " without a recorded answer");
  }
  absl::StrAppend(&text, "\noutcomes: ",
                  absl::StrJoin(played.outcomes, ", ",
                                [](std::string* out, const auto& one) {
                                  absl::StrAppend(out, one.first, " ",
                                                  one.second);
                                }),
                  "\n");
  if (played.without_message > 0) {
    absl::StrAppend(&text, played.without_message,
                    " calls have no message in the trace and were not sent\n");
  }
  if (!played.example.empty()) {
    absl::StrAppend(&text, "otherwise, such as ", Printable(played.example),
                    "\n");
  }
  return text;
}

std::string PlayedJson(const Played& played) {
  const JsonTree all = {{"version", 1},
                        {"sent", played.sent},
                        {"same", played.same},
                        {"different", played.different},
                        {"unknown", played.unknown},
                        {"without_message", played.without_message},
                        {"outcomes", played.outcomes},
                        {"example", played.example},
                        {"seconds", played.seconds}};
  return all.Dump(2, JsonTree::Order::kSorted) + "\n";
}

}  // namespace fncache::runner::replay
