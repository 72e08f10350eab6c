// SPDX-License-Identifier: Apache-2.0
// It is one thing: the steps of one story, in the order in which they run.
#include "runner/demo/demo.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "common/file.h"
#include "google/protobuf/struct.pb.h"
#include "insight/trace/reader.h"
#include "runner/demo/child_process.h"
#include "runner/demo/inputs.h"
#include "runner/load/results.h"
#include "runner/scrape/scrape.h"
#include "text/json.h"
#include "text/object.h"

namespace fncache::runner::demo {
namespace {

namespace fs = std::filesystem;
using insight::trace::Outcome;
using insight::trace::TracedCall;
using load::LoadResults;
using scrape::Get;
using scrape::Sum;

using Arguments = std::vector<std::string>;

constexpr int kComposites = 40;
constexpr int kPipelines = 120;
constexpr int kAtOnce = 10;
constexpr absl::Duration kCost = absl::Milliseconds(150);
constexpr absl::Duration kTtl = absl::Minutes(2);
constexpr absl::Duration kShortTtl = absl::Seconds(2);
// For a miss, an entry's whole life, and another miss.
constexpr absl::Duration kExpiry = absl::Seconds(5);
constexpr int kExpiryRate = 20;
// Per composite and hour; all composites together make twenty a second.
constexpr int kWrites = 1800;
constexpr absl::Duration kModel = absl::Seconds(8);
// Heartbeats: composites, heartbeats of each in an hour, which make thirty a
// second, the function's cost, and how long the end of the run is.
constexpr int kBeating = 10;
constexpr int kBeats = 10800;
constexpr absl::Duration kBeatCost = absl::Milliseconds(50);
constexpr double kLastSeconds = 3;
constexpr absl::Duration kProofsEnd = absl::Seconds(5);
// DESIGN, "Questions": the budget at the start, and what each run adds to it.
constexpr double kFirstQuestions = 40;
constexpr double kTuneShare = 0.1;
constexpr absl::Duration kPatience = absl::Seconds(30);
// The longest time that a run of the function takes to be counted.
constexpr absl::Duration kLogged = absl::Seconds(5);
constexpr absl::Duration kPoll = absl::Milliseconds(20);
constexpr size_t kMaxResults = 64u << 20;
// DESIGN: an entry is served for L x (1 - margin).
constexpr double kMargin = 0.1;
// By how much what-if may be wrong about a run of a few hundred calls.
constexpr double kPredicted = 0.05;

std::string Millis(double seconds) {
  const double millis = seconds * 1e3;
  return absl::StrFormat("%.*f ms", millis < 1 ? 2 : 1, millis);
}

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

std::string Mebibytes(double bytes) {
  return absl::StrFormat("%.1f MiB", bytes / (1 << 20));
}

std::string Percent(double share) {
  return absl::StrFormat("%.1f %%", 100 * share);
}

// The number in a field of `object`; nullopt if it has none.
absl::optional<double> Number(const text::Value& object,
                              absl::string_view name) {
  const text::Value* const value = text::Find(object.struct_value(), {name});
  if (value == nullptr || !value->has_number_value()) return absl::nullopt;
  return value->number_value();
}

double DiskBytes(const std::string& folder) {
  double bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    std::error_code gone;
    const auto size = at->file_size(gone);
    if (!gone) bytes += static_cast<double>(size);
  }
  return bytes;
}

absl::Status WriteText(const std::string& path, const char* text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file.fail()) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

uint64_t Calls(const LoadResults& results) {
  uint64_t calls = 0;
  for (const load::CallResults& of : results.calls) calls += of.count;
  return calls;
}

// The latency of the calls of the first step: its largest outcome.
const load::LatencySummary* FirstStep(const LoadResults& results) {
  const load::CallResults* most = nullptr;
  for (const load::CallResults& of : results.calls) {
    if (of.step != "buckets") continue;
    if (most == nullptr || of.count > most->count) most = &of;
  }
  return most == nullptr ? nullptr : &most->latency;
}

}  // namespace

struct Demo::Impl {
  // A child and where it listens.
  struct Running {
    std::unique_ptr<ChildProcess> process;
    std::string address;
    std::string admin;
  };
  // A command that runs, and the file that it prints to.
  struct Command {
    std::unique_ptr<ChildProcess> process;
    std::string name;
    std::string printed;
  };
  // A command that has ended.
  struct Ran {
    int code = 0;
    std::string out;
  };
  // A run of `fncache load` and how often the function ran meanwhile, by its
  // own log.
  struct Loaded {
    LoadResults results;
    int runs = 0;
  };

  Impl(DemoFolders folders, DemoScreen* screen)
      : folders(std::move(folders)),
        cache_dir(this->folders.work + "/cache"),
        xr(this->folders.out + "/lake.yaml"),
        composition(this->folders.out + "/lakes.yaml"),
        screen(screen) {}

  void Claim(bool holds, absl::string_view what) {
    if (holds) return;
    held = false;
    screen->Failure(what);
  }

  absl::StatusOr<Running> StartFunction(absl::Duration ttl,
                                        absl::Duration cost = kCost) {
    return Start(
        "the function", 1,
        {"function", "--insecure", "--listen", "127.0.0.1:0", "--log-calls",
         "--cost", absl::StrCat("sleep=", absl::FormatDuration(cost)), "--ttl",
         absl::FormatDuration(ttl)});
  }

  absl::StatusOr<Running> StartDaemon(const Running& behind,
                                      const Arguments& more) {
    Arguments args = {"serve",      "--insecure",  "--listen",   "127.0.0.1:0",
                      "--admin",    "127.0.0.1:0", "--upstream", behind.address,
                      "--function", "demo"};
    args.insert(args.end(), more.begin(), more.end());
    return Start("fncache serve", 2, args);
  }

  absl::StatusOr<Running> Start(absl::string_view what, size_t listeners,
                                const Arguments& args) {
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

  absl::StatusOr<Command> StartCommand(const Arguments& args) {
    Command command;
    command.name = args[0];
    command.printed = absl::StrCat(folders.work, "/printed-", ++commands);
    const int fd = open(command.printed.c_str(),
                        O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) {
      return absl::UnavailableError("cannot write " + command.printed);
    }
    auto process = ChildProcess::Start(args, fd);
    close(fd);
    if (!process.ok()) return process.status();
    command.process = *std::move(process);
    return command;
  }

  // Waits for a command's end. `what` names it in the progress display.
  absl::StatusOr<Ran> Finish(absl::string_view what, const Command& command) {
    const absl::Time start = absl::Now();
    do {
      screen->Progress(what, absl::Now() - start);
    } while (!command.process->Ended(absl::Milliseconds(200)));
    const int status = command.process->Wait();
    Ran ran;
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    auto out = ReadSmallFile(command.printed, kMaxResults);
    if (!out.ok()) return out.status();
    ran.out = *std::move(out);
    // 99: what was to hold does not, which is for the caller to tell.
    if (ran.code != 0 && ran.code != 99) {
      return absl::UnavailableError(absl::StrCat(
          "fncache ", command.name, " failed: ", command.process->LastWords()));
    }
    return ran;
  }

  absl::StatusOr<Ran> RunCommand(absl::string_view what,
                                 const Arguments& args) {
    auto command = StartCommand(args);
    if (!command.ok()) return command.status();
    return Finish(what, *command);
  }

  // A run of `fncache load` that has begun.
  struct Loading {
    Command command;
    std::string json;
  };

  // Starts `fncache load` of the demo's pipeline, its functions at `address`.
  absl::StatusOr<Loading> StartLoad(const std::string& address,
                                    const Arguments& how, std::string json) {
    Arguments args = {"load", xr, composition};
    args.insert(args.end(), how.begin(), how.end());
    args.insert(args.end(),
                {"--function", absl::StrCat(kDemoFunction, "=", address),
                 "--json", json, "--progress", "none"});
    Loading loading;
    loading.json = std::move(json);
    auto command = StartCommand(args);
    if (!command.ok()) return command.status();
    loading.command = *std::move(command);
    return loading;
  }

  absl::StatusOr<Loaded> FinishLoad(absl::string_view what,
                                    const Loading& loading) {
    const auto ran = Finish(what, loading.command);
    if (!ran.ok()) return ran.status();
    const auto text = ReadSmallFile(loading.json, kMaxResults);
    if (!text.ok()) return text.status();
    auto results = load::ResultsFromJson(*text);
    if (!results.ok()) return results.status();
    Loaded loaded;
    loaded.results = *std::move(results);
    std::string first = "nothing";
    if (!loaded.results.errors.empty()) {
      first = loaded.results.errors[0].message;
    }
    Claim(loaded.results.pipelines.errors == 0,
          absl::StrCat(what, ": ", loaded.results.pipelines.errors,
                       " pipelines failed, first: ", first));
    return loaded;
  }

  void ShowLoad(const Arguments& how) {
    screen->Command(absl::StrCat("fncache load lake.yaml lakes.yaml ",
                                 absl::StrJoin(how, " ")));
  }

  absl::StatusOr<Loaded> Load(absl::string_view what,
                              const std::string& address, const Arguments& how,
                              std::string json = "") {
    if (json.empty()) json = folders.work + "/results.json";
    ShowLoad(how);
    const auto loading = StartLoad(address, how, std::move(json));
    if (!loading.ok()) return loading.status();
    return FinishLoad(what, *loading);
  }

  static Arguments ClosedLoop() {
    return {"--composites", absl::StrCat(kComposites),
            "-c",           absl::StrCat(kAtOnce),
            "-n",           absl::StrCat(kPipelines)};
  }

  // Sends every call of a trace once more; whether all answers were as
  // recorded.
  absl::StatusOr<bool> Play(absl::string_view what, const std::string& trace,
                            const Running& target) {
    const auto ran = RunCommand(what, {"replay", trace, "--play", "--speed",
                                       "max", "--target", target.address});
    if (!ran.ok()) return ran.status();
    return ran->code == 0;
  }

  void Show(const Loaded& loaded) {
    const LoadResults& results = loaded.results;
    screen->Line(absl::StrFormat(
        "%d pipelines to settle, then %d in %s: p50 %s, p99 %s;",
        results.settle.pipelines, results.pipelines.count,
        Seconds(absl::Seconds(results.duration)),
        Millis(results.pipelines.latency.p50),
        Millis(results.pipelines.latency.p99)));
    screen->Line(absl::StrFormat("%d calls, %d function runs", AllCalls(loaded),
                                 loaded.runs));
  }

  static uint64_t AllCalls(const Loaded& loaded) {
    return loaded.results.settle.calls + Calls(loaded.results);
  }

  // How often the function has run since `before`. It logs its runs, and its
  // log is read later than callers get answers: waits until all `expected` are
  // there.
  static int RunsSince(const Running& function, int before, double expected) {
    const absl::Time until = absl::Now() + kLogged;
    while (function.process->calls() - before < expected &&
           absl::Now() < until) {
      absl::SleepFor(kPoll);
    }
    return function.process->calls() - before;
  }

  // Waits until every fill is in the disk tier.
  absl::Status WaitForDisk(const Running& daemon, double entries) {
    const absl::Time until = absl::Now() + kPatience;
    while (absl::Now() < until) {
      const auto metrics = Get(daemon.admin, "/metrics", kPatience);
      if (!metrics.ok()) return metrics.status();
      if (Sum(*metrics, "fncache_tier_writes_total", "tier=\"disk\"") >=
          entries) {
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

  static double MissesOf(const std::string& metrics) {
    return Sum(metrics, "fncache_requests_total", "outcome=\"miss\"");
  }

  absl::Status Alone(const Running& function) {
    screen->Title(absl::StrCat("1  The function alone, ",
                               absl::FormatDuration(kCost), " a call"));
    Arguments how = ClosedLoop();
    how.insert(how.end(),
               {"--trace", folders.work + "/alone", "--trace-level", "full"});
    auto sent = Load("rendering", function.address, how);
    if (!sent.ok()) return sent.status();
    alone = *std::move(sent);
    alone.runs = RunsSince(function, 0, static_cast<double>(AllCalls(alone)));
    Show(alone);
    Claim(alone.runs == static_cast<int>(AllCalls(alone)),
          "the function runs once for every call");
    return absl::OkStatus();
  }

  absl::Status Cached(const Running& function, Running* daemon) {
    screen->Title("2  The same through fncache serve");
    auto started = StartDaemon(function, OnDisk());
    if (!started.ok()) return started.status();
    *daemon = *std::move(started);
    Arguments how = ClosedLoop();
    how.insert(how.end(), {"--admin-url", daemon->admin, "--trace",
                           folders.work + "/cached", "--trace-level", "full"});
    auto sent = Load("rendering through fncache", daemon->address, how);
    if (!sent.ok()) return sent.status();
    cached = *std::move(sent);
    std::string metrics;
    absl::Status status = Scrape(*daemon, &metrics);
    if (!status.ok()) return status;
    cached.runs = RunsSince(function, alone.runs, MissesOf(metrics));
    Show(cached);
    const LoadResults& results = cached.results;
    screen->Line(absl::StrCat("hit rate once settled: ",
                              Percent(results.hit_rate.value_or(0))));
    Claim(results.hit_rate.value_or(0) == 1,
          "every call of a settled composite is a hit");
    Claim(results.daemon.has_value() && results.daemon->agrees,
          "the daemon counts what its callers see");
    Claim(MissesOf(metrics) == cached.runs,
          "the function runs once for every miss");

    const auto same = Play("sending the calls of step 1 through fncache",
                           folders.work + "/alone", *daemon);
    if (!same.ok()) return same.status();
    Claim(*same, "through fncache every answer is the function's own");
    if (*same) {
      screen->Line(absl::StrFormat(
          "the %d calls of step 1 once more, byte for byte, through fncache:",
          AllCalls(alone)));
      screen->Line("every answer is the function's own");
    }
    return absl::OkStatus();
  }

  absl::Status Restart(const Running& function, Running* daemon) {
    screen->Title("3  kill -9, and a new daemon over the same directory");
    auto body = Get(daemon->admin, "/metrics", kPatience);
    if (!body.ok()) return body.status();
    const double misses = MissesOf(*body);
    absl::Status status = WaitForDisk(*daemon, misses);
    if (!status.ok()) return status;
    const int before = alone.runs + RunsSince(function, alone.runs, misses);
    daemon->process->Signal(SIGKILL);
    daemon->process->Wait();
    const absl::Time start = absl::Now();
    auto started = StartDaemon(function, OnDisk());
    if (!started.ok()) return started.status();
    *daemon = *std::move(started);
    const absl::Duration ready = absl::Now() - start;
    const auto same = Play("sending the calls of step 2 once more",
                           folders.work + "/cached", *daemon);
    if (!same.ok()) return same.status();
    status = Scrape(*daemon, &last_metrics);
    if (!status.ok()) return status;
    const int runs = RunsSince(function, before, MissesOf(last_metrics));
    screen->Line(absl::StrFormat(
        "back after %s; of the %d calls of step 2, "
        "sent once more,",
        Millis(absl::ToDoubleSeconds(ready)), AllCalls(cached)));
    screen->Line(absl::StrFormat(
        "%s; %d function runs",
        *same ? "all are answered as before" : "some are answered otherwise",
        runs));
    Claim(*same, "after kill -9 and restart every answer is the same");
    Claim(runs == 0, "after kill -9 and restart every call is a hit");
    return absl::OkStatus();
  }

  // One composite, rendered twenty times a second until its entries have ended
  // and were filled again.
  absl::Status Expiry() {
    screen->Title(absl::StrCat("4  Expiry: a function that says TTL ",
                               absl::FormatDuration(kShortTtl)));
    auto function = StartFunction(kShortTtl);
    if (!function.ok()) return function.status();
    auto daemon = StartDaemon(*function, {});
    if (!daemon.ok()) return daemon.status();
    const std::string trace = folders.work + "/expiry";
    auto sent = Load("waiting for entries to end", daemon->address,
                     {"--rate", absl::StrCat(kExpiryRate), "--duration",
                      absl::FormatDuration(kExpiry), "--trace", trace,
                      "--trace-level", "keys"});
    if (!sent.ok()) return sent.status();
    auto reader = insight::trace::TraceReader::Open(trace);
    if (!reader.ok()) return reader.status();
    std::vector<TracedCall> calls;
    insight::trace::ReadCall read;
    while ((*reader)->Next(&read)) {
      if (read.call.phase == "measure" && read.call.step == "buckets") {
        calls.push_back(read.call);
      }
    }
    std::sort(calls.begin(), calls.end(),
              [](const TracedCall& a, const TracedCall& b) {
                return a.arrived < b.arrived;
              });
    return ShowExpiry(calls);
  }

  // Shows the life of the first entry that was filled and expired among
  // `calls`.
  absl::Status ShowExpiry(const std::vector<TracedCall>& calls) {
    const auto miss = [](const TracedCall& call) {
      return call.outcome == Outcome::kMiss;
    };
    const auto first = std::find_if(calls.begin(), calls.end(), miss);
    const auto next = first == calls.end()
                          ? first
                          : std::find_if(first + 1, calls.end(), miss);
    if (next == calls.end()) {
      return absl::UnavailableError(
          absl::StrCat("no entry was filled and ended within ",
                       absl::FormatDuration(kExpiry)));
    }
    int hits = 0;
    int joined = 0;
    absl::Duration shortest = kShortTtl;
    const absl::Time filled = first->arrived + first->latency;
    absl::Duration served;  // until the last hit
    for (auto call = first + 1; call != next; ++call) {
      if (call->outcome == Outcome::kCollapsed) ++joined;
      if (call->outcome != Outcome::kHit) continue;
      ++hits;
      served = call->arrived - filled;
      shortest = std::min(shortest, call->told_ttl.value_or(kShortTtl));
      Claim(call->told_ttl.value_or(absl::ZeroDuration()) >
                    absl::ZeroDuration() &&
                *call->told_ttl <= kShortTtl,
            "a hit tells what is left of its answer's TTL");
    }
    screen->Line(absl::StrFormat(
        "a miss, which %d callers join; then %d hits in %s, their TTLs down to "
        "%s;",
        joined, hits, Seconds(served), Seconds(shortest)));
    screen->Line("then a miss: the last tenth of a lifetime is not served");
    Claim(hits > 0, "the entry is served while it lives");
    Claim(served <= kShortTtl, "no entry is served beyond its TTL");
    Claim(next->arrived - filled >=
              kShortTtl * (1 - kMargin) - absl::Milliseconds(100),
          "an entry is served for nine tenths of its TTL");
    return absl::OkStatus();
  }

  void Report() {
    const auto count = [](uint64_t n) { return absl::StrCat(n); };
    const auto first_step = [](const Loaded& loaded, bool tail) {
      const load::LatencySummary* const latency = FirstStep(loaded.results);
      if (latency == nullptr) return std::string("-");
      return Millis(tail ? latency->p99 : latency->p50);
    };
    screen->Title("What it saved");
    screen->Table({
        {"", "without", "with fncache"},
        {"pipelines, two steps each",
         count(alone.results.settle.pipelines + alone.results.pipelines.count),
         count(cached.results.settle.pipelines +
               cached.results.pipelines.count)},
        {"calls", count(AllCalls(alone)), count(AllCalls(cached))},
        {"function runs", count(alone.runs), count(cached.runs)},
        {"once settled: function runs", count(alone.results.function_runs),
         count(cached.results.function_runs)},
        {"  pipelines a second",
         absl::StrFormat("%.0f", alone.results.pipelines.rate),
         absl::StrFormat("%.0f", cached.results.pipelines.rate)},
        {"  a pipeline's p50", Millis(alone.results.pipelines.latency.p50),
         Millis(cached.results.pipelines.latency.p50)},
        {"  a call's p50", first_step(alone, false), first_step(cached, false)},
        {"  a call's p99", first_step(alone, true), first_step(cached, true)},
        {"function seconds saved", "-", absl::StrFormat("%.1f s", saved)},
        {"disk used", "-", Mebibytes(DiskBytes(cache_dir))},
        {"memory tier used", "-",
         Mebibytes(Sum(last_metrics, "fncache_tier_bytes", "tier=\"memory\""))},
        {"memory of the daemon", "-",
         Mebibytes(Sum(last_metrics, "process_resident_memory_bytes"))},
    });
    Claim(saved > 0, "/metrics tells function seconds saved");
  }

  // One of the two runs of Heartbeats, each with a function of its own.
  struct Beaten {
    Running function, daemon;
    Loading loading;
    Loaded loaded;
    std::string metrics;

    double Questions() const {
      return Sum(metrics, "fncache_tune_questions_total");
    }
    double Proofs(absl::string_view result) const {
      return Sum(metrics, "fncache_tune_proofs_total",
                 absl::StrCat("result=\"", result, "\""));
    }
    // The function runs once for every miss and every question.
    bool Agrees() const {
      return MissesOf(metrics) + Questions() == loaded.runs;
    }
    // The hit rate of the run's last seconds.
    double LastHitRate() const {
      double calls = 0;
      double hits = 0;
      for (const load::TimelinePoint& point : loaded.results.timeline) {
        if (point.at <= loaded.results.duration - kLastSeconds) continue;
        calls += static_cast<double>(point.calls);
        hits += static_cast<double>(point.hits);
      }
      return calls == 0 ? 0 : hits / calls;
    }
  };

  absl::Status StartBeating(const Arguments& settings, const Arguments& how,
                            const std::string& json, Beaten* beaten) {
    auto function = StartFunction(kTtl, kBeatCost);
    if (!function.ok()) return function.status();
    beaten->function = *std::move(function);
    auto daemon = StartDaemon(beaten->function, settings);
    if (!daemon.ok()) return daemon.status();
    beaten->daemon = *std::move(daemon);
    auto loading = StartLoad(beaten->daemon.address, how, folders.work + json);
    if (!loading.ok()) return loading.status();
    beaten->loading = *std::move(loading);
    return absl::OkStatus();
  }

  absl::Status FinishBeating(Beaten* beaten) {
    auto loaded = FinishLoad("waiting for heartbeats", beaten->loading);
    if (!loaded.ok()) return loaded.status();
    beaten->loaded = *std::move(loaded);
    // A proof may still run. Its questions are over when the daemon has counted
    // every run.
    const absl::Time until = absl::Now() + kProofsEnd;
    for (;;) {
      auto metrics = Get(beaten->daemon.admin, "/metrics", kPatience);
      if (!metrics.ok()) return metrics.status();
      beaten->metrics = *std::move(metrics);
      beaten->loaded.runs = beaten->function.process->calls();
      if (beaten->Agrees() || absl::Now() > until) return absl::OkStatus();
      absl::SleepFor(kPoll);
    }
  }

  // Settled composites whose providers write heartbeats, through a daemon
  // without settings and through one with `tune: on`.
  absl::Status Heartbeats() {
    screen->Title("5  Heartbeats, without settings and with tune: on");
    screen->Line(
        "Providers write the time of their last poll into status. The "
        "versions");
    screen->Line("change, too. The function reads neither of them.");
    const Arguments how = {"--composites", absl::StrCat(kBeating),
                           "--start",      "steady",
                           "--churn",      absl::StrCat("composed=", kBeats),
                           "--duration",   absl::FormatDuration(kModel)};
    ShowLoad(how);
    const std::string trace = folders.work + "/beaten";
    Arguments traced = how;
    traced.insert(traced.end(), {"--trace", trace, "--trace-level", "full"});
    Beaten plain;
    Beaten tuned;
    absl::Status status = StartBeating({}, how, "/plain.json", &plain);
    if (status.ok()) {
      status = StartBeating({"--tune", "on"}, traced, "/tuned.json", &tuned);
    }
    if (status.ok()) status = FinishBeating(&plain);
    if (status.ok()) status = FinishBeating(&tuned);
    if (!status.ok()) return status;
    ShowHeartbeats(plain, tuned);

    const auto same = Play("asking the function for all of these answers",
                           trace, tuned.function);
    if (!same.ok()) return same.status();
    Claim(*same, "with tune: on every answer is the function's own");
    if (*same) {
      screen->Line(absl::StrFormat(
          "the %d requests with tune: on once more, to the function alone:",
          AllCalls(tuned.loaded)));
      screen->Line("every answer was the function's own for that very request");
    }
    return absl::OkStatus();
  }

  void ShowHeartbeats(const Beaten& plain, const Beaten& tuned) {
    const auto row = [&](const char* label, const auto& cell) {
      return std::vector<std::string>{label, cell(plain), cell(tuned)};
    };
    const auto number = [](double value) {
      return absl::StrFormat("%.0f", value);
    };
    screen->Table({
        {"", "without settings", "with tune: on"},
        row("calls",
            [](const Beaten& of) {
              return absl::StrCat(Calls(of.loaded.results));
            }),
        row("hit rate",
            [](const Beaten& of) {
              return Percent(of.loaded.results.hit_rate.value_or(0));
            }),
        row("  in the last three seconds",
            [](const Beaten& of) { return Percent(of.LastHitRate()); }),
        row("function runs, for these calls",
            [](const Beaten& of) {
              return absl::StrCat(of.loaded.results.function_runs);
            }),
        row("questions",
            [&](const Beaten& of) { return number(of.Questions()); }),
        row("answers that were proven",
            [&](const Beaten& of) { return number(of.Proofs("proven")); }),
    });
    const double before = plain.loaded.results.hit_rate.value_or(0);
    const double after = tuned.loaded.results.hit_rate.value_or(0);
    const auto calls = static_cast<double>(AllCalls(tuned.loaded));
    Claim(before < 0.1, "without settings every heartbeat is a miss");
    Claim(after > 0.4, "with tune: on most heartbeats are hits");
    Claim(tuned.LastHitRate() > after,
          "the hit rate rises while answers are proven");
    Claim(tuned.Proofs("proven") > 0, "answers are proven");
    Claim(tuned.Proofs("read") == 0 && tuned.Proofs("varies") == 0,
          "the function does not read drift, and its answers do not vary");
    Claim(tuned.Agrees(),
          "the function runs once for every miss and every question");
    Claim(tuned.loaded.runs <= (1 + kTuneShare) * calls + kFirstQuestions,
          "questions stay within their budget");
  }

  // Settled composites that controllers write to without changing anything,
  // through a daemon with `more` settings.
  absl::StatusOr<Loaded> Written(absl::string_view what,
                                 const Running& function, Arguments more,
                                 const std::string& trace,
                                 const std::string& json) {
    more.insert(more.end(), {"--ttl-min", "1h", "--requeue-ttl", "original"});
    auto daemon = StartDaemon(function, more);
    if (!daemon.ok()) return daemon.status();
    Arguments how = {"--composites", absl::StrCat(kComposites),
                     "--start",      "steady",
                     "--churn",      absl::StrCat("noop=", kWrites),
                     "--duration",   absl::FormatDuration(kModel)};
    if (!trace.empty()) how.insert(how.end(), {"--trace", trace});
    return Load(what, daemon->address, how, json);
  }

  absl::Status Misses(const Running& function) {
    screen->Title("6  Why does it miss, and what would end that?");
    screen->Line(
        "Controllers write to composed resources without changing anything;");
    screen->Line("the daemon hides nothing of that from the key.");
    const std::string trace = folders.out + "/trace";
    const std::string without = folders.out + "/without-mask.json";
    const std::string with = folders.out + "/with-mask.json";
    const auto missed = Written("reconciling", function, {}, trace, without);
    if (!missed.ok()) return missed.status();
    const auto why = RunCommand(
        "explaining", {"explain", trace, "--phase", "measure", "--json"});
    if (!why.ok()) return why.status();
    const auto explained = text::ParseJsonStruct(why->out);
    if (!explained.ok()) return explained.status();
    const text::ListValue* const masks = text::FindList(*explained, {"masks"});
    if (masks == nullptr || masks->values().empty()) {
      Claim(false, "fncache explain proposes a mask");
      return absl::OkStatus();
    }
    // Masks, each with those above it: the first group that brings what all
    // bring.
    Arguments hidden;
    Arguments what_if = {"replay", trace, "--json", "-"};
    const double all =
        Number(*masks->values().rbegin(), "hits_together").value_or(0);
    double last_group = std::numeric_limits<double>::infinity();
    for (const text::Value& mask : masks->values()) {
      const double group = Number(mask, "group").value_or(0);
      if (group > last_group) break;
      if (Number(mask, "hits_together").value_or(0) >= all) last_group = group;
      const std::string name = text::FindText(mask.struct_value(), {"mask"});
      hidden.insert(hidden.end(), {"--mask", name});
      what_if.insert(what_if.end(), {"--what-if", "mask=" + name});
    }
    const auto foretold = RunCommand("asking what a mask would give", what_if);
    if (!foretold.ok()) return foretold.status();
    const auto predicted = text::ParseJsonStruct(foretold->out);
    if (!predicted.ok()) return predicted.status();
    const text::ListValue* const settings =
        text::FindList(*predicted, {"settings"});
    if (settings == nullptr || settings->values().empty()) {
      return absl::InternalError("fncache replay --what-if says nothing");
    }
    const double expected =
        Number(settings->values(0), "hit_rate").value_or(-1);
    const auto masked =
        Written("reconciling with the mask", function, hidden, "", with);
    if (!masked.ok()) return masked.status();
    const std::string page = folders.out + "/report.html";
    const auto report =
        RunCommand("writing the report",
                   {"load", "report", without, with, "--html", page});
    if (!report.ok()) return report.status();

    const double before = missed->results.hit_rate.value_or(0);
    const double after = masked->results.hit_rate.value_or(0);
    screen->Command("fncache explain trace --phase measure");
    const auto shown =
        RunCommand("explaining", {"explain", trace, "--phase", "measure"});
    if (!shown.ok()) return shown.status();
    screen->Verbatim(absl::StrCat("\n", shown->out, "\n"));
    screen->Line(
        absl::StrFormat("hit rate, measured:            %s", Percent(before)));
    screen->Line(
        absl::StrFormat("fncache replay --what-if says: %s  with these masks",
                        Percent(expected)));
    screen->Line(
        absl::StrFormat("measured with them:            %s", Percent(after)));
    Claim(after > before, "the proposed masks make hits of misses");
    Claim(std::abs(after - expected) <= kPredicted,
          "what-if foretells the hit rate");
    return absl::OkStatus();
  }

  Arguments OnDisk() const {
    return {"--cache-dir", cache_dir,   "--generation", "demo-function-1",
            "--mask",      "@versions", "--mask",       "@times"};
  }

  absl::Status PrepareOut() const {
    std::error_code error;
    for (const char* name :
         {"/trace", "/report.html", "/without-mask.json", "/with-mask.json"}) {
      fs::remove_all(folders.out + name, error);
      if (error) {
        return absl::UnavailableError(absl::StrCat(
            "cannot replace ", folders.out, name, ": ", error.message()));
      }
    }
    const absl::Status status = WriteText(xr, kDemoXr);
    return status.ok() ? WriteText(composition, kDemoComposition) : status;
  }

  absl::Status Run() {
    screen->Line(absl::StrFormat(
        "%d composites of ten buckets, pipelines of two steps, %d at once.",
        kComposites, kAtOnce));
    absl::Status status = PrepareOut();
    if (!status.ok()) return status;
    auto function = StartFunction(kTtl);
    if (!function.ok()) return function.status();
    {
      Running daemon;
      status = Alone(*function);
      if (status.ok()) status = Cached(*function, &daemon);
      if (status.ok()) status = Restart(*function, &daemon);
    }
    if (status.ok()) status = Expiry();
    if (status.ok()) Report();
    if (status.ok()) status = Heartbeats();
    if (status.ok()) status = Misses(*function);
    return status;
  }

  const DemoFolders folders;
  const std::string cache_dir;
  const std::string xr;
  const std::string composition;
  DemoScreen* const screen;
  bool held = true;
  Loaded alone, cached;
  double saved = 0;  // function seconds, over all daemons
  std::string last_metrics;
  int commands = 0;  // that were started
};

Demo::Demo(DemoFolders folders, DemoScreen* screen)
    : impl_(std::make_unique<Impl>(std::move(folders), screen)) {}

Demo::~Demo() = default;

absl::Status Demo::Run() { return impl_->Run(); }

bool Demo::held() const { return impl_->held; }

}  // namespace fncache::runner::demo
