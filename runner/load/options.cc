// SPDX-License-Identifier: Apache-2.0
#include "runner/load/options.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/command_flags.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "common/file.h"
#include "common/status.h"
#include "common/utf8.h"
#include "common/yaml.h"
#include "runner/load/load_line.h"

namespace fncache::runner::load {
namespace {

absl::Status Refused(absl::string_view flag, absl::string_view given,
                     absl::string_view accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": \"", Printable(given),
                   "\" is not accepted; accepted: ", accepted));
}

// Reads flags one after the other; the first that does not fit is the status.
class Checks {
 public:
  // A flag's value is at FILE:LINE, and not on the command line.
  void StandsAt(const std::string& flag, const std::string& location) {
    locations_[flag] = location;
  }
  template <typename T>
  void Count(const char* flag, const std::string& text, uint64_t least,
             uint64_t most, T* value) {
    uint64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && number >= least && number <= most) {
      *value = static_cast<T>(number);
    } else {
      Fail(flag, text,
           absl::StrCat("a whole number from ", least, " to ", most));
    }
  }
  void Time(const char* flag, const std::string& text, absl::Duration least,
            absl::Duration* value,
            absl::Duration most = absl::Hours(24 * 365)) {
    const auto duration = ParseGoDuration(text);
    if (duration.ok() && *duration >= least && *duration <= most) {
      *value = *duration;
    } else {
      Fail(flag, text,
           absl::StrCat("a duration from ", FormatGoDuration(least), " to ",
                        FormatGoDuration(most), ", such as 90s or 1h30m"));
    }
  }
  void Switch(const char* flag, const std::string& text, bool* value) {
    if (text != "on" && text != "off") return Fail(flag, text, "on, off");
    *value = text == "on";
  }
  void Fail(absl::string_view flag, absl::string_view text,
            absl::string_view accepted) {
    const auto location = locations_.find(flag);
    status.Update(Refused(location == locations_.end()
                              ? std::string(flag)
                              : absl::StrCat(location->second, ": ",
                                             absl::StripPrefix(flag, "--")),
                          text, accepted));
  }
  void Say(absl::string_view why) {
    status.Update(absl::InvalidArgumentError(why));
  }
  absl::Status status;

 private:
  std::map<std::string, std::string, std::less<>> locations_;
};

void ReadChurn(const Texts& given, model::Churn* churn, Checks* checks) {
  for (const std::string& text : given) {
    const std::pair<std::string, std::string> halves =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    double* const field = halves.first == "spec"       ? &churn->spec
                          : halves.first == "composed" ? &churn->composed
                          : halves.first == "status"   ? &churn->status
                          : halves.first == "noop"     ? &churn->noop
                                                       : nullptr;
    double value = 0;
    if (field == nullptr || !absl::SimpleAtod(halves.second, &value) ||
        !(value >= 0 && value <= 1e6)) {
      checks->Fail("--churn", text,
                   "KIND=N with KIND one of spec, composed, status, noop and N "
                   "from 0 to 1000000 writes an hour");
      continue;
    }
    *field = value;
  }
}

std::string* FieldOf(absl::string_view key, Given* g) {
  static const auto* const kFields =
      new std::map<std::string, std::string Given::*, std::less<>>{
          {"composites", &Given::composites},
          {"start", &Given::start},
          {"workers", &Given::workers},
          {"reconcile-timeout", &Given::reconcile_timeout},
          {"realtime", &Given::realtime},
          {"poll-interval", &Given::poll_interval},
          {"resync", &Given::resync},
          {"breaker", &Given::breaker},
          {"seed-requirements", &Given::seed_requirements},
          {"ready-after", &Given::ready_after},
          {"ready-writes", &Given::ready_writes},
          {"connections", &Given::connections},
          {"duration", &Given::duration},
          {"warmup", &Given::warmup},
          {"seed", &Given::seed}};
  return &(g->*kFields->at(std::string(key)));
}

// Puts the file's options where the flags' are; flags win.
absl::Status ReadScenario(const CommandLine& line, Given* g,
                          LoadOptions* options, Checks* checks) {
  const auto text = ReadSmallFile(g->scenario, kMaxYamlBytes);
  if (!text.ok()) return Prefixed("--scenario", text.status());
  auto scenario = ParseScenario(*text, g->scenario);
  if (!scenario.ok()) return scenario.status();
  const bool churn_given = line.Given("--churn");
  for (const Scenario::Option& option : scenario->options) {
    const std::string flag = absl::StrCat("--", option.key);
    if (line.Given(flag)) continue;
    checks->StandsAt(flag, option.location);
    std::string& given = options->given[flag];
    if (option.key == "churn") {
      if (churn_given) continue;
      g->churn.push_back(option.text);
      absl::StrAppend(&given, given.empty() ? "" : ", ", option.text);
    } else {
      *FieldOf(option.key, g) = option.text;
      given = option.text;
    }
  }
  options->model.status = model::StatusWith(std::move(scenario->status));
  options->model.events = std::move(scenario->events);
  options->upgrades = std::move(scenario->upgrades);
  options->event_locations = std::move(scenario->event_locations);
  return absl::OkStatus();
}

// A flag without effect is an error: the loops send requests of a settled
// state, and --request knows no composites.
void CheckLoop(const CommandLine& line, const LoadOptions& options,
               Checks* checks) {
  if (options.loop != LoadOptions::Loop::kModel && line.Given("--churn")) {
    checks->Say(
        "--churn: not with --rate, --stages, --concurrency or --request, where "
        "state does not evolve");
  }
  if (options.requests.empty()) return;
  for (const char* const flag :
       {"--composites", "--start", "--workers", "--reconcile-timeout",
        "--realtime", "--poll-interval", "--resync", "--breaker",
        "--seed-requirements", "--ready-after", "--ready-writes",
        "--scenario"}) {
    if (line.Given(flag)) {
      checks->Say(absl::StrCat(flag, ": not with --request"));
    }
  }
}

// Events need the model, and must happen before the end.
void CheckEvents(const LoadOptions& options, Checks* checks) {
  if (options.model.events.empty()) return;
  if (options.loop != LoadOptions::Loop::kModel) {
    return checks->Say(absl::StrCat(
        options.event_locations.front(),
        ": events: not with --rate, --stages, --concurrency or --request, "
        "where state does not evolve"));
  }
  const absl::Duration end = options.warmup + options.duration;
  for (size_t i = 0; i < options.model.events.size(); ++i) {
    if (options.model.events[i].at < end) continue;
    checks->Say(absl::StrCat(options.event_locations[i], ": at: ",
                             FormatGoDuration(options.model.events[i].at),
                             " is not accepted; accepted: less than the run's ",
                             FormatGoDuration(end)));
  }
}

void ReadModel(const Given& g, model::ModelOptions* model, Checks* checks) {
  checks->Count("--composites", g.composites, 1, 1000000, &model->composites);
  if (g.start == "create") {
    model->start = model::StartFrom::kCreate;
  } else if (g.start == "steady") {
    model->start = model::StartFrom::kSteady;
  } else if (g.start == "cold") {
    model->start = model::StartFrom::kCold;
  } else {
    checks->Fail("--start", g.start, "create, steady, cold");
  }
  checks->Count("--workers", g.workers, 1, 100000, &model->workers);
  checks->Time("--reconcile-timeout", g.reconcile_timeout,
               absl::Milliseconds(1), &model->reconcile_timeout);
  checks->Switch("--realtime", g.realtime, &model->realtime);
  checks->Time("--poll-interval", g.poll_interval, absl::Seconds(1),
               &model->poll_interval);
  if (g.resync == "0" || g.resync == "0s") {
    model->resync = absl::InfiniteDuration();
  } else {
    checks->Time("--resync", g.resync, absl::Seconds(1), &model->resync);
  }
  checks->Switch("--breaker", g.breaker, &model->breaker);
  checks->Switch("--seed-requirements", g.seed_requirements,
                 &model->seed_requirements);
  checks->Time("--ready-after", g.ready_after, absl::ZeroDuration(),
               &model->ready_after, absl::Hours(24));
  checks->Count("--ready-writes", g.ready_writes, 0, 1000,
                &model->ready_writes);
  ReadChurn(g.churn, &model->churn, checks);
  checks->Count("--seed", g.seed, 0, UINT64_MAX, &model->seed);
}

void ReadLoop(const Given& g, bool duration_given, LoadOptions* options,
              Checks* checks) {
  const int loops = (g.rate.empty() ? 0 : 1) + (g.stages.empty() ? 0 : 1) +
                    (g.concurrency.empty() ? 0 : 1);
  if (loops > 1) {
    checks->Say("--rate, --stages and --concurrency: accepted is one of them");
  }
  checks->Count("--connections", g.connections, 1, 1000, &options->connections);
  checks->Time("--duration", g.duration, absl::Milliseconds(1),
               &options->duration);
  checks->Time("--warmup", g.warmup, absl::ZeroDuration(), &options->warmup);
  checks->Count("--max-in-flight", g.max_in_flight, 1, 1000000,
                &options->max_in_flight);
  if (!g.total.empty()) {
    checks->Count("--total", g.total, 1, UINT64_MAX / 2, &options->total);
    if (!duration_given) options->duration = absl::InfiniteDuration();
  }
  if (!g.rate.empty()) {
    options->loop = LoadOptions::Loop::kOpen;
    if (!absl::SimpleAtod(g.rate, &options->rate) ||
        !(options->rate > 0 && options->rate <= 1e6)) {
      checks->Fail("--rate", g.rate,
                   "a number above 0, at most 1000000, pipelines a second");
    }
  } else if (!g.stages.empty()) {
    options->loop = LoadOptions::Loop::kOpen;
    const auto stages = ParseStages(g.stages);
    if (stages.ok()) {
      options->stages = *stages;
      if (duration_given) {
        checks->Say("--duration: not with --stages, which have times");
      }
      if (options->warmup > absl::ZeroDuration()) {
        checks->Say("--warmup: not with --stages; begin with a stage");
      }
      options->duration = TotalTime(*stages);
    }
    checks->status.Update(stages.status());
  } else if (!g.concurrency.empty() || !g.requests.empty()) {
    options->loop = LoadOptions::Loop::kClosed;
    checks->Count("--concurrency", g.concurrency.empty() ? "1" : g.concurrency,
                  1, 1000000, &options->concurrency);
  }
}

void ReadOutput(const Given& g, LoadOptions* options, Checks* checks) {
  if (g.progress == "plain") {
    options->progress = LoadOptions::Progress::kPlain;
  } else if (g.progress == "none") {
    options->progress = LoadOptions::Progress::kNone;
  } else if (g.progress != "auto") {
    checks->Fail("--progress", g.progress, "auto, plain, none");
  }
  using insight::trace::Level;
  if (g.trace_level == "keys") {
    options->trace_level = Level::kKeys;
  } else if (g.trace_level == "full") {
    options->trace_level = Level::kFull;
  } else if (g.trace_level != "paths") {
    checks->Fail("--trace-level", g.trace_level, "keys, paths, full");
  }
  absl::string_view change = g.max_change;
  const bool percent = absl::ConsumeSuffix(&change, "%");
  if (!absl::SimpleAtod(change, &options->max_change) ||
      !(options->max_change >= 0 && options->max_change <= 1e6)) {
    checks->Fail("--max-change", g.max_change, "a fraction such as 10% or 0.1");
  }
  if (percent) options->max_change /= 100;
  for (absl::string_view url : g.admin_urls) {
    const absl::string_view whole = url;
    absl::ConsumePrefix(&url, "http://");
    while (absl::ConsumeSuffix(&url, "/")) {
    }
    if (url.empty() || !absl::StrContains(url, ':') ||
        absl::StrContains(url, '/')) {
      checks->Fail("--admin-url", whole, "HOST:PORT or http://HOST:PORT");
    }
    options->admin_urls.emplace_back(url);
  }
  options->json = g.json;
  options->html = g.html;
  options->junit = g.junit;
  options->summary_markdown = g.summary_markdown;
  options->csv = g.csv;
  options->trace_dir = g.trace;
  options->baseline = g.baseline;
  options->thresholds = g.thresholds;
  options->find_max = g.find_max;
  options->abort_on_fail = g.abort_on_fail;
  options->percentiles = g.percentiles;
}

void ReadRequests(const Given& g, const Texts& files, LoadOptions* options,
                  Checks* checks) {
  options->requests = g.requests;
  if (files.empty()) {
    return checks->Say("TARGET is missing: --request FILE... HOST:PORT");
  }
  // The shell may have made several files of one argument.
  options->requests.insert(options->requests.end(), files.begin(),
                           files.end() - 1);
  options->target = files.back();
  uint64_t port = 0;
  const size_t colon = options->target.rfind(':');
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(options->target.substr(colon + 1), &port) || port < 1 ||
      port > 65535) {
    checks->Fail("TARGET", options->target, "HOST:PORT");
  }
  for (const std::string& text : g.metadata) {
    const size_t equals = text.find('=');
    const std::string name =
        equals == std::string::npos ? "" : text.substr(0, equals);
    const bool fits =
        !name.empty() &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") ==
            std::string::npos &&
        std::all_of(text.begin(), text.end(),
                    [](char c) { return c >= ' ' && c <= '~'; });
    if (!fits || absl::StartsWith(name, "grpc-")) {
      checks->Fail("--metadata", text,
                   "KEY=VALUE, the key of a-z, 0-9, -, _ and ., the value of "
                   "printable ASCII");
      continue;
    }
    options->metadata.emplace_back(name, text.substr(equals + 1));
  }
}

absl::Status WithHelp(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(why, "; see fncache load --help"));
}

// The first flag of `texts` that neither load nor render has; empty if there is
// none.
std::string UnknownFlag(const Texts& texts) {
  std::vector<CommandFlag> known = LoadCommandFlags();
  for (CommandFlag& flag : render::RenderCommandFlags()) {
    known.push_back(std::move(flag));
  }
  for (const std::string& text : texts) {
    if (!absl::StartsWith(text, "--")) continue;
    const std::string name = text.substr(0, text.find('='));
    const bool taken =
        std::any_of(known.begin(), known.end(), [&](const CommandFlag& flag) {
          return std::find(flag.names.begin(), flag.names.end(), name) !=
                 flag.names.end();
        });
    if (!taken) return text;
  }
  return "";
}

}  // namespace

std::string LoadHelp() {
  Given given;
  return MakeLine(&given).Help();
}

std::vector<CommandFlag> LoadCommandFlags() {
  Given given;
  std::vector<CommandFlag> flags = MakeLine(&given).Flags();
  Texts names;
  for (const CommandFlag& flag : flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  for (const CommandFlag& flag : render::RenderCommandFlags()) {
    // Those that are about rendering itself, and those that mean another thing
    // here.
    static const auto* const kLeft = new Texts{"--watch",
                                               "--jobs",
                                               "--expect",
                                               "--update",
                                               "--color",
                                               "--include-context",
                                               "--include-function-results",
                                               "--include-full-xr",
                                               "--help"};
    const std::string& name = flag.names.back();
    if (std::find(kLeft->begin(), kLeft->end(), name) != kLeft->end() ||
        std::find(names.begin(), names.end(), name) != names.end()) {
      continue;
    }
    CommandFlag taken = flag;
    taken.names = {name};
    flags.push_back(std::move(taken));
  }
  return flags;
}

absl::StatusOr<LoadOptions> ParseLoadOptions(int argc, char** argv) {
  Given given;
  CommandLine line = MakeLine(&given);
  if (line.Parse(argc, argv) == CommandLine::Outcome::kError) {
    return WithHelp(line.error());
  }
  LoadOptions options;
  options.help = given.help;
  if (options.help) return options;
  Checks checks;
  if (!given.scenario.empty()) {
    const absl::Status read = ReadScenario(line, &given, &options, &checks);
    if (!read.ok()) return read;
  }
  ReadModel(given, &options.model, &checks);
  ReadLoop(given, line.Given("--duration"), &options, &checks);
  ReadOutput(given, &options, &checks);
  for (const CommandLine::Option& option : line.options()) {
    if (!option.given()) continue;
    options.given[option.name()] = absl::StrJoin(option.results(), ", ");
  }
  const Texts rest = line.remaining();
  if (!given.requests.empty()) {
    for (const std::string& text : rest) {
      if (absl::StartsWith(text, "-")) {
        return WithHelp(NotTaken(text, LoadCommandFlags()));
      }
    }
    ReadRequests(given, rest, &options, &checks);
    if (!given.trace.empty()) checks.Say("--trace: not with --request");
  } else if (!given.metadata.empty()) {
    checks.Say("--metadata: needs --request FILE");
  }
  if (!given.find_max.empty() && options.loop == LoadOptions::Loop::kClosed) {
    checks.Say(
        "--find-max: not with --concurrency or --total; it looks for "
        "--composites, or for --rate");
  }
  if (!given.find_max.empty() && !options.stages.empty()) {
    checks.Say("--find-max: not with --stages");
  }
  CheckLoop(line, options, &checks);
  CheckEvents(options, &checks);
  if (!checks.status.ok()) return checks.status;
  options.render.tls_dir = given.tls_dir;
  if (!given.requests.empty()) return options;
  const absl::Status valid = model::Validate(options.model);
  if (!valid.ok()) return valid;

  Texts texts = {"render"};
  if (line.Given("--tls-dir")) {
    texts.push_back(absl::StrCat("--tls-dir=", given.tls_dir));
  }
  texts.insert(texts.end(), rest.begin(), rest.end());
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  auto render = render::ParseRenderFlags(static_cast<int>(arguments.size()),
                                         arguments.data());
  if (!render.ok()) {
    if (const std::string flag = UnknownFlag(rest); !flag.empty()) {
      return WithHelp(NotTaken(flag, LoadCommandFlags()));
    }
    return absl::Status(render.status().code(),
                        absl::StrReplaceAll(render.status().message(),
                                            {{"fncache render --help",
                                              "fncache load --help"}}));
  }
  if (render->watch) return WithHelp("--watch: not with load");
  if (!render->expect.empty()) return WithHelp("--expect: not with load");
  options.render = *std::move(render);
  return options;
}

absl::StatusOr<ReportOptions> ParseReportOptions(int argc, char** argv) {
  ReportOptions options;
  CommandLine line("", "fncache load report");
  line.NoHelpFlag();
  line.AddFlag("-h,--help", &options.help, "print this");
  line.AddOption("--html", &options.html, "The page").TypeName("FILE");
  line.AddFlag("--percentiles", &options.percentiles, "As wrk2 writes them");
  line.AddOption("FILE", &options.files).Expected(0, 1000);
  if (line.Parse(argc, argv) == CommandLine::Outcome::kError) {
    return WithHelp(line.error());
  }
  if (!options.help && (options.files.empty() || options.files.size() > 2)) {
    return WithHelp("report: one file of results is needed, or two to compare");
  }
  return options;
}

}  // namespace fncache::runner::load
