// SPDX-License-Identifier: Apache-2.0
#include "runner/demo/demo.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/function_v1.pb.h"
#include "runner/demo/child_process.h"
#include "runner/demo/scrape.h"
#include "runner/demo/traffic.h"

namespace fncache::runner::demo {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;

constexpr int kComposites = 50;
constexpr int kReconciles = 5;
constexpr int kBuckets = 20;
constexpr int kAtOnce = 10;
// Different requests: one for each step of each composite.
constexpr int kKeys = kComposites * kDemoSteps;
constexpr absl::Duration kCost = absl::Milliseconds(150);
constexpr absl::Duration kTtl = absl::Seconds(60);
constexpr absl::Duration kShortTtl = absl::Seconds(3);
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr absl::Duration kPoll = absl::Milliseconds(20);
// DESIGN: an entry is served for L x (1 - margin).
constexpr double kMargin = 0.1;

std::string Millis(absl::Duration duration) {
  const double millis = absl::ToDoubleMilliseconds(duration);
  return absl::StrFormat("%.*f ms", millis < 1 ? 2 : 1, millis);
}

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

std::string Mebibytes(double bytes) {
  return absl::StrFormat("%.1f MiB", bytes / (1 << 20));
}

// The latency that `fraction` of the calls do not exceed.
absl::Duration Percentile(std::vector<absl::Duration> sorted, double fraction) {
  if (sorted.empty()) return absl::ZeroDuration();
  std::sort(sorted.begin(), sorted.end());
  const auto rank =
      static_cast<size_t>(fraction * static_cast<double>(sorted.size()));
  return sorted[std::min(rank, sorted.size() - 1)];
}

// The outcome of one step's traffic.
struct Traffic {
  std::vector<DemoReconcile> reconciles;
  std::vector<DemoCall> calls;  // of all of them
  int runs = 0;                 // of the function
  absl::Duration elapsed;

  std::vector<absl::Duration> Latencies(bool hits_only) const {
    std::vector<absl::Duration> latencies;
    for (const DemoCall& call : calls) {
      if (!hits_only || Hit(call)) latencies.push_back(call.latency);
    }
    return latencies;
  }
  int Hits() const {
    return static_cast<int>(std::count_if(calls.begin(), calls.end(), Hit));
  }
  static bool Hit(const DemoCall& call) {
    return absl::StartsWith(call.cache_status, "fncache; hit");
  }
};

absl::Duration Ttl(const DemoCall& call) {
  return absl::Seconds(call.response.meta().ttl().seconds()) +
         absl::Nanoseconds(call.response.meta().ttl().nanos());
}

double DiskBytes(const std::string& folder) {
  double bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    std::error_code gone;
    const auto size = at->file_size(gone);
    if (!gone) bytes += static_cast<double>(size);
  }
  return bytes;
}

}  // namespace

struct Demo::Impl {
  // A child and where it listens.
  struct Running {
    std::unique_ptr<ChildProcess> process;
    std::string address;
    std::string admin;
  };

  Impl(std::string folder, DemoScreen* screen)
      : cache_dir(std::move(folder)), screen(screen) {}

  void Claim(bool holds, absl::string_view what) {
    if (holds) return;
    held = false;
    screen->Failure(what);
  }

  absl::StatusOr<Running> StartFunction(absl::Duration ttl) {
    return Start(
        "the function", 1,
        {"function", "--insecure", "--listen", "127.0.0.1:0", "--log-calls",
         "--cost", absl::StrCat("sleep=", absl::FormatDuration(kCost)), "--ttl",
         absl::FormatDuration(ttl)});
  }

  absl::StatusOr<Running> StartDaemon(const Running& behind, bool with_disk) {
    std::vector<std::string> args = {
        "serve",       "--insecure", "--listen",     "127.0.0.1:0", "--admin",
        "127.0.0.1:0", "--upstream", behind.address, "--function",  "demo"};
    if (with_disk) {
      args.insert(args.end(), {"--cache-dir", cache_dir, "--generation",
                               "demo-function-1"});
    }
    return Start("fncache serve", 2, args);
  }

  absl::StatusOr<Running> Start(absl::string_view what, size_t listeners,
                                const std::vector<std::string>& args) {
    auto process = ChildProcess::Start(args);
    if (!process.ok()) return process.status();
    Running running;
    running.process = *std::move(process);
    const auto addresses = running.process->Listening(listeners, kPatience);
    if (!addresses.ok()) {
      return absl::UnavailableError(
          absl::StrCat(what, " did not start: ", addresses.status().message()));
    }
    running.address = (*addresses)[0];
    if (listeners > 1) running.admin = (*addresses)[1];
    return running;
  }

  // `rounds` of reconciles of all composites, their functions at `address`;
  // `behind` is the function that answers in the end.
  absl::StatusOr<Traffic> Send(absl::string_view what,
                               const std::string& address,
                               const Running& behind, int rounds) {
    Traffic traffic;
    for (int round = 0; round < rounds; ++round) {
      for (int composite = 0; composite < kComposites; ++composite) {
        DemoReconcile reconcile;
        reconcile.composite = composite;
        // Two replicas of the runner, of different builds, alternate.
        reconcile.build = round % kDemoBuilds;
        traffic.reconciles.push_back(std::move(reconcile));
      }
    }
    const auto runners = DemoRunners::Create(address, &inputs);
    if (!runners.ok()) return runners.status();
    const int before = behind.process->calls();
    const absl::Time start = absl::Now();
    (*runners)->Drive(
        kAtOnce,
        [&](size_t done) {
          screen->Progress(what, done, traffic.reconciles.size());
        },
        &traffic.reconciles);
    traffic.elapsed = absl::Now() - start;
    traffic.runs = behind.process->calls() - before;
    for (const DemoReconcile& reconcile : traffic.reconciles) {
      traffic.calls.insert(traffic.calls.end(), reconcile.calls.begin(),
                           reconcile.calls.end());
    }
    return traffic;
  }

  // Every pipeline renders the whole composite. Every answer is under its own
  // tag, with a TTL that makes sense, and otherwise what the function alone
  // answers.
  void Check(absl::string_view step, const Traffic& traffic,
             absl::Duration ttl) {
    int failed = 0, wrong_tag = 0, wrong_ttl = 0, different = 0;
    std::string first_error;
    for (const DemoReconcile& reconcile : traffic.reconciles) {
      if (!reconcile.status.ok()) {
        if (failed++ == 0) first_error = reconcile.status.ToString();
      } else if (reconcile.calls.size() != kDemoSteps ||
                 reconcile.composed != kBuckets + 1) {
        ++different;
      }
    }
    for (const DemoCall& call : traffic.calls) {
      if (!call.status.ok()) continue;  // and so did its pipeline
      if (call.response.meta().tag() != call.tag) ++wrong_tag;
      const bool whole = !Traffic::Hit(call);
      if (Ttl(call) <= absl::ZeroDuration() || Ttl(call) > ttl ||
          (whole && Ttl(call) != ttl)) {
        ++wrong_ttl;
      }
      fn::RunFunctionResponse answer = call.response;
      answer.clear_meta();
      auto& wanted = answers[call.composite * kDemoSteps + call.step];
      if (wanted == nullptr) {
        wanted = std::make_unique<fn::RunFunctionResponse>(answer);
      } else if (!google::protobuf::util::MessageDifferencer::Equals(*wanted,
                                                                     answer)) {
        ++different;
      }
    }
    Claim(failed == 0, absl::StrCat(step, ": ", failed,
                                    " pipelines failed, first: ", first_error));
    Claim(wrong_tag == 0,
          absl::StrCat(step, ": ", wrong_tag, " answers under another tag"));
    Claim(wrong_ttl == 0, absl::StrCat(step, ": ", wrong_ttl,
                                       " answers with a TTL that is wrong"));
    Claim(different == 0,
          absl::StrCat(step, ": ", different,
                       " answers differ from the function's own"));
  }

  void Show(const Traffic& traffic) {
    const auto latencies = traffic.Latencies(false);
    screen->Line(absl::StrFormat(
        "%d pipelines, %d calls, %d function runs, %s; a call's p50 %s, p99 %s",
        traffic.reconciles.size(), traffic.calls.size(), traffic.runs,
        Seconds(traffic.elapsed), Millis(Percentile(latencies, 0.5)),
        Millis(Percentile(latencies, 0.99))));
  }

  // Waits until every fill is in the disk tier.
  absl::Status WaitForDisk(const Running& daemon) {
    const absl::Time until = absl::Now() + kPatience;
    while (absl::Now() < until) {
      const auto metrics = Get(daemon.admin, "/metrics", kPatience);
      if (!metrics.ok()) return metrics.status();
      if (Sum(*metrics, "fncache_tier_writes_total", "tier=\"disk\"") >=
          kKeys) {
        return absl::OkStatus();
      }
      absl::SleepFor(kPoll);
    }
    return absl::DeadlineExceededError(
        "the daemon does not write its entries to disk");
  }

  absl::Status Scrape(const Running& daemon, std::string* metrics) {
    auto body = Get(daemon.admin, "/metrics", kPatience);
    if (!body.ok()) return body.status();
    *metrics = *std::move(body);
    saved += Sum(*metrics, "fncache_function_seconds_saved_total");
    return absl::OkStatus();
  }

  absl::Status Alone(const Running& function) {
    screen->Title(absl::StrCat("1  The function alone, ",
                               absl::FormatDuration(kCost), " a call"));
    auto sent = Send("rendering", function.address, function, kReconciles);
    if (!sent.ok()) return sent.status();
    alone = *std::move(sent);
    Check("the function alone", alone, kTtl);
    Show(alone);
    Claim(alone.runs == kKeys * kReconciles,
          "the function runs once for every call");
    return absl::OkStatus();
  }

  absl::Status Cached(const Running& function, Running* daemon) {
    screen->Title("2  The same traffic through fncache serve");
    auto started = StartDaemon(function, true);
    if (!started.ok()) return started.status();
    *daemon = *std::move(started);
    auto sent = Send("rendering through fncache", daemon->address, function,
                     kReconciles);
    if (!sent.ok()) return sent.status();
    cached = *std::move(sent);
    Check("through fncache", cached, kTtl);
    Show(cached);
    screen->Line(absl::StrFormat("%d hits of %d calls", cached.Hits(),
                                 cached.calls.size()));
    Claim(cached.runs == kKeys,
          absl::StrCat("through fncache the function runs once for each of ",
                       kKeys, " requests, not ", cached.runs, " times"));
    Claim(cached.Hits() == kKeys * (kReconciles - 1),
          "every call but those of a composite's first pipeline is a hit");
    return absl::OkStatus();
  }

  absl::Status Restart(const Running& function, Running* daemon) {
    screen->Title("3  kill -9, and a new daemon over the same directory");
    absl::Status status = WaitForDisk(*daemon);
    if (status.ok()) status = Scrape(*daemon, &last_metrics);
    if (!status.ok()) return status;
    daemon->process->Signal(SIGKILL);
    daemon->process->Wait();
    const absl::Time start = absl::Now();
    auto started = StartDaemon(function, true);
    if (!started.ok()) return started.status();
    *daemon = *std::move(started);
    const absl::Duration ready = absl::Now() - start;
    auto sent = Send("rendering through fncache", daemon->address, function, 1);
    if (!sent.ok()) return sent.status();
    restarted = *std::move(sent);
    Check("after the restart", restarted, kTtl);
    screen->Line(absl::StrFormat(
        "listening again after %s; %d of %d calls are hits, %d function runs",
        Millis(ready), restarted.Hits(), restarted.calls.size(),
        restarted.runs));
    Claim(restarted.Hits() == kKeys && restarted.runs == 0,
          "after kill -9 and restart every call is a hit");
    return Scrape(*daemon, &last_metrics);
  }

  // One composite, called until its entry ends.
  absl::Status Expiry() {
    screen->Title(absl::StrCat("4  Expiry: a function that says TTL ",
                               absl::FormatDuration(kShortTtl)));
    auto function = StartFunction(kShortTtl);
    if (!function.ok()) return function.status();
    auto daemon = StartDaemon(*function, false);
    if (!daemon.ok()) return daemon.status();
    const auto runners = DemoRunners::Create(daemon->address, &inputs);
    if (!runners.ok()) return runners.status();
    // True if the first step's answer came from the cache.
    Traffic traffic;
    const auto render = [&]() -> absl::StatusOr<bool> {
      std::vector<DemoReconcile> one(1);
      (*runners)->Drive(
          1, [](size_t) {}, &one);
      if (one[0].calls.empty()) return one[0].status;
      traffic.calls.insert(traffic.calls.end(), one[0].calls.begin(),
                           one[0].calls.end());
      traffic.reconciles.push_back(std::move(one[0]));
      return Traffic::Hit(traffic.reconciles.back().calls[0]);
    };
    auto hit = render();
    if (!hit.ok()) return hit.status();
    Claim(!*hit, "the first call is a miss");
    const DemoCall first = traffic.calls.front();
    const absl::Time filled = first.started + first.latency;
    absl::Duration shortest = kShortTtl;
    do {
      screen->Progress("waiting for the entry's end",
                       absl::ToInt64Milliseconds(absl::Now() - filled),
                       absl::ToInt64Milliseconds(kShortTtl));
      absl::SleepFor(kPoll);
      hit = render();
      if (!hit.ok()) return hit.status();
      if (*hit) {
        shortest =
            std::min(shortest, Ttl(traffic.reconciles.back().calls.front()));
      }
    } while (*hit && absl::Now() < filled + kPatience);
    const absl::Duration served =
        traffic.reconciles.back().calls.front().started - filled;
    Check("expiry", traffic, kShortTtl);
    screen->Line(
        absl::StrFormat("a miss, then hits for %s, their TTLs down to %s,",
                        Seconds(served), Seconds(shortest)));
    screen->Line("then a miss: the last tenth of a lifetime is not served");
    Claim(traffic.Hits() > 0, "the entry is served while it lives");
    single = traffic;
    const auto metrics = Get(daemon->admin, "/metrics", kPatience);
    if (!metrics.ok()) return metrics.status();
    within_daemon =
        Quantile(*metrics, "fncache_request_seconds", "outcome=\"hit\"", 0.5);
    // The second step's entry, a little younger, may have ended by then, too.
    const int runs = function->process->calls();
    Claim(runs == kDemoSteps + 1 || runs == 2 * kDemoSteps,
          "the function runs once more after an entry's end");
    Claim(served <= kShortTtl, "no entry is served beyond its TTL");
    Claim(served >= kShortTtl * (1 - kMargin) - absl::Milliseconds(100),
          "an entry is served for nine tenths of its TTL");
    return absl::OkStatus();
  }

  void Report() {
    const auto count = [](size_t n) { return absl::StrCat(n); };
    const auto rate = [](int hits, size_t calls) {
      return absl::StrFormat("%.1f %%", 100.0 * hits / calls);
    };
    const auto latency = [](const Traffic& traffic, double fraction) {
      return Millis(Percentile(traffic.Latencies(false), fraction));
    };
    const size_t all = cached.calls.size() + restarted.calls.size();
    screen->Title("What it was worth");
    screen->Table({
        {"", "without", "with fncache"},
        {"pipelines of two steps", count(alone.reconciles.size()),
         count(cached.reconciles.size())},
        {"calls", count(alone.calls.size()), count(cached.calls.size())},
        {"function runs", count(alone.runs), count(cached.runs)},
        {"hit rate", "-", rate(cached.Hits(), cached.calls.size())},
        {"hit rate, restart included", "-",
         rate(cached.Hits() + restarted.Hits(), all)},
        {"ten pipelines at once: p50 of a call", latency(alone, 0.5),
         latency(cached, 0.5)},
        {"  p99", latency(alone, 0.99), latency(cached, 0.99)},
        {"one call at a time: p50 of a hit", "-",
         Millis(Percentile(single.Latencies(true), 0.5))},
        {"  of it in the daemon (/metrics)", "-", Millis(within_daemon)},
        {"time for all pipelines", Seconds(alone.elapsed),
         Seconds(cached.elapsed)},
        {"function seconds saved, with restart", "-",
         absl::StrFormat("%.1f s", saved)},
        {"disk used", "-", Mebibytes(DiskBytes(cache_dir))},
        {"memory tier used", "-",
         Mebibytes(Sum(last_metrics, "fncache_tier_bytes", "tier=\"memory\""))},
        {"memory of the daemon", "-",
         Mebibytes(Sum(last_metrics, "process_resident_memory_bytes"))},
    });
    Claim(saved > 0, "/metrics tells function seconds saved");
  }

  absl::Status Run() {
    const auto composition = DemoComposition();
    for (int i = 0; i < kComposites; ++i) {
      inputs.push_back(DemoInput(composition, i, kBuckets));
    }
    answers.resize(kKeys);
    screen->Line(absl::StrFormat(
        "%d composites of %d buckets, %d reconciles each, %d at once;",
        kComposites, kBuckets, kReconciles, kAtOnce));
    screen->Line(
        "pipelines of two steps, maps in random order, tags of two runner "
        "builds.");

    auto function = StartFunction(kTtl);
    if (!function.ok()) return function.status();
    Running daemon;
    absl::Status status = Alone(*function);
    if (status.ok()) status = Cached(*function, &daemon);
    if (status.ok()) status = Restart(*function, &daemon);
    if (status.ok()) status = Expiry();
    if (status.ok()) Report();
    return status;
  }

  const std::string cache_dir;
  DemoScreen* const screen;
  bool held = true;
  std::vector<engine::EngineInput> inputs;  // by composite
  // The function's own answers, without meta, by composite and step.
  std::vector<std::unique_ptr<fn::RunFunctionResponse>> answers;
  Traffic alone, cached, restarted;
  Traffic single;  // one call at a time
  // How long that traffic's daemon took for a hit, by its own count.
  absl::Duration within_daemon;
  double saved = 0;  // function seconds, over all daemons
  std::string last_metrics;
};

Demo::Demo(std::string folder, DemoScreen* screen)
    : impl_(std::make_unique<Impl>(std::move(folder), screen)) {}

Demo::~Demo() = default;

absl::Status Demo::Run() { return impl_->Run(); }

bool Demo::held() const { return impl_->held; }

}  // namespace fncache::runner::demo
