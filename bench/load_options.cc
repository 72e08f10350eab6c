// SPDX-License-Identifier: Apache-2.0
#include "bench/load_options.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "common/method.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

constexpr char kDescription[] =
    "Puts load on a server of the function protocol and prints one JSON "
    "object\n"
    "about it.";

constexpr char kFooter[] = R"(
Closed loop: --streams calls at once on each of --connections connections.
Open loop: --rate calls a second in all, whatever the server does; latency
counts from the moment at which a call was meant to begin (corrected for
coordinated omission).

Every answer is checked: status 0, one message of the announced length, with
--expect-response a body of that length, with --expect-status the cache-status;
one in --check-every, and the first 64, byte for byte (but for meta, which the
daemon rewrites) and for the caller's tag.

Server CPU is the processes' own accounting (user and system time of all their
threads, from their CPU clocks) between the ends of the measured window.

Examples:
  load --write-response answer.bin
  load --target 127.0.0.1:9443 --shape 17k --streams 64 --warmup 1s \
       --duration 5s --expect-response answer.bin --expect-status hit
  load --target 127.0.0.1:9443 --shape 4k --rate 5000 --connections 16
  load --shape 130k --write-request framed.bin    (for h2load -d)

Exit codes: 0 when all answers were right; 1 when any was not, or the run could
not be made; 2 for options that do not fit.)";

// Parse fills these in. The texts are read afterwards, so that each error can
// name the option and what it accepts.
struct Texts {
  std::vector<std::string> targets;
  std::vector<std::string> headers;
  std::vector<std::string> pids;
  std::string path;
  std::string shape = "17k";
  std::string seed = "1";
  std::string distinct = "64";
  std::string orders = "0";
  std::string keys = "64";
  std::string first_key = "0";
  std::string pick = "random";
  std::string connections = "1";
  std::string streams = "1";
  std::string rate = "0";
  std::string max_outstanding = "1000";
  std::string calls = "0";
  std::string duration = "5s";
  std::string warmup = "0s";
  std::string patience = "20s";
  std::string check_every = "64";
  std::string check_tags = "hits";
  std::string expect_status;
  std::string response = "13k";
  std::string ttl = "1h";
};

void DefineLoad(CommandLine* line, Texts* texts) {
  const std::string group = "How much";
  line->AddOption("--target", &texts->targets,
                  "Where the server listens; connections are\n"
                  "spread over repeated ones in turn")
      .TypeName("HOST:PORT")
      .Group(group)
      .Repeats();
  line->AddOption("--connections", &texts->connections, "How many connections")
      .TypeName("N")
      .Group(group)
      .ShowDefault();
  line->AddOption("--streams", &texts->streams,
                  "Closed loop: calls at once on each of them")
      .TypeName("N")
      .Group(group)
      .ShowDefault();
  line->AddOption("--rate", &texts->rate,
                  "Open loop: so many calls a second in all;\n"
                  "0: closed loop")
      .TypeName("NUMBER")
      .Group(group)
      .ShowDefault();
  line->AddOption("--max-outstanding", &texts->max_outstanding,
                  "Open loop: calls at once at most; what is due\n"
                  "beyond waits, and its latency counts that")
      .TypeName("N")
      .Group(group)
      .ShowDefault();
  line->AddOption("--warmup", &texts->warmup, "Load before the measured window")
      .TypeName("DURATION")
      .Group(group)
      .ShowDefault();
  line->AddOption("--duration", &texts->duration, "The measured window")
      .TypeName("DURATION")
      .Group(group)
      .ShowDefault();
  line->AddOption("--calls", &texts->calls,
                  "The measured window in calls, instead of\n"
                  "--duration; without --warmup the run makes\n"
                  "exactly so many; 0: by --duration")
      .TypeName("N")
      .Group(group)
      .ShowDefault();
  line->AddOption("--patience", &texts->patience,
                  "Give up when no call ends for so long")
      .TypeName("DURATION")
      .Group(group)
      .ShowDefault();
  line->AddOption("--server-pid", &texts->pids,
                  "Measure this process's CPU time; repeats")
      .TypeName("PID")
      .Group(group)
      .Repeats();
}

void DefineRequests(CommandLine* line, Texts* texts) {
  const std::string group = "Requests";
  line->AddOption("--shape", &texts->shape, "small, 4k, 17k, 130k or 1m")
      .TypeName("SHAPE")
      .Group(group)
      .ShowDefault();
  line->AddOption("--distinct", &texts->distinct, "So many different messages")
      .TypeName("N")
      .Group(group)
      .ShowDefault();
  line->AddOption("--orders", &texts->orders,
                  "Prepared encodings of each, in other random\n"
                  "map orders; 0: 8, of 1m 2")
      .TypeName("N")
      .Group(group)
      .ShowDefault();
  line->AddOption("--keys", &texts->keys,
                  "Ask for so many keys; 0: every call's is new")
      .TypeName("N")
      .Group(group)
      .ShowDefault();
  line->AddOption("--first-key", &texts->first_key, "The first of them")
      .TypeName("K")
      .Group(group)
      .ShowDefault();
  line->AddOption("--pick", &texts->pick, "random or sequential")
      .TypeName("HOW")
      .Group(group)
      .ShowDefault();
  line->AddOption("--seed", &texts->seed,
                  "Decides all that is random; other seeds are\n"
                  "other messages")
      .TypeName("NUMBER")
      .Group(group)
      .ShowDefault();
  line->AddOption("--path", &texts->path,
                  "The method's path; default: RunFunction, v1")
      .TypeName("METHOD")
      .Group(group);
  line->AddOption("--header", &texts->headers,
                  "One more header of every request; repeats")
      .TypeName("NAME:VALUE")
      .Group(group)
      .Repeats();
}

void DefineAnswers(CommandLine* line, LoadCommand* command, Texts* texts) {
  const std::string group = "Answers";
  line->AddOption("--expect-response", &command->expect_response,
                  "The message that every answer must be, but\n"
                  "for meta")
      .TypeName("FILE")
      .Group(group);
  line->AddOption("--expect-status", &texts->expect_status,
                  "What every cache-status must say: hit, miss,\n"
                  "stale, request, bypass, or none for no such\n"
                  "header")
      .TypeName("STATUS")
      .Group(group);
  line->AddOption("--check-every", &texts->check_every,
                  "Check one in so many byte for byte")
      .TypeName("N")
      .Group(group)
      .ShowDefault();
  line->AddOption("--check-tags", &texts->check_tags,
                  "Of which answers the tag must be the\n"
                  "caller's: hits (and collapsed ones), all, none")
      .TypeName("WHICH")
      .Group(group)
      .ShowDefault();
}

void DefineFiles(CommandLine* line, LoadCommand* command, Texts* texts) {
  const std::string group = "Files, instead of a run";
  line->AddOption("--write-request", &command->write_request,
                  "Write the request of --first-key as one gRPC\n"
                  "message, prefix included")
      .TypeName("FILE")
      .Group(group);
  line->AddOption("--write-response", &command->write_response,
                  "Write an answer, without a prefix")
      .TypeName("FILE")
      .Group(group);
  line->AddOption("--response", &texts->response, "Which: 13k or small")
      .TypeName("SHAPE")
      .Group(group)
      .ShowDefault();
  line->AddOption("--ttl", &texts->ttl, "Its TTL")
      .TypeName("DURATION|none")
      .Group(group)
      .ShowDefault();
}

absl::Status Unfit(absl::string_view option, absl::string_view text,
                   absl::string_view accepted) {
  return absl::InvalidArgumentError(absl::StrCat(
      option, ": \"", text, "\" is not accepted; accepted: ", accepted));
}

// Reads values one after the other and keeps the first complaint.
class Reader {
 public:
  template <typename T>
  void Number(absl::string_view option, const std::string& text, uint64_t min,
              uint64_t max, T* to) {
    uint64_t value = 0;
    if (!absl::SimpleAtoi(text, &value) || value < min || value > max) {
      return Refuse(option, text,
                    absl::StrCat("a whole number from ", min, " to ", max));
    }
    *to = static_cast<T>(value);
  }

  void Duration(absl::string_view option, const std::string& text,
                absl::Duration min, absl::Duration* to) {
    const auto value = ParseGoDuration(text);
    if (!value.ok() || *value < min || *value > absl::Hours(24)) {
      return Refuse(option, text,
                    absl::StrCat(kDurationForm, ", from ",
                                 FormatGoDuration(min), " to 24h"));
    }
    *to = *value;
  }

  void Rate(absl::string_view option, const std::string& text, double* to) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !(value == 0 || value >= 0.01) ||
        value > 1e7) {
      return Refuse(option, text, "0, or a number from 0.01 to 10000000");
    }
    *to = value;
  }

  template <typename T>
  void Choice(absl::string_view option, const std::string& text,
              absl::optional<T> value, absl::string_view accepted, T* to) {
    if (!value.has_value()) return Refuse(option, text, accepted);
    *to = *value;
  }

  void Refuse(absl::string_view option, absl::string_view text,
              absl::string_view accepted) {
    status_.Update(Unfit(option, text, accepted));
  }

  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

absl::optional<bool> RandomPick(absl::string_view text) {
  if (text == "random") return true;
  if (text == "sequential") return false;
  return absl::nullopt;
}

absl::optional<TagCheck> TagCheckOf(absl::string_view text) {
  if (text == "none") return TagCheck::kNone;
  if (text == "hits") return TagCheck::kHits;
  if (text == "all") return TagCheck::kAll;
  return absl::nullopt;
}

bool IsTarget(absl::string_view target) {
  const size_t colon = target.rfind(':');
  uint32_t port = 0;
  return colon != absl::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(target.substr(colon + 1), &port) && port >= 1 &&
         port <= 65535;
}

void ReadHeaders(const std::vector<std::string>& texts, Reader* reader,
                 LoadOptions* load) {
  for (const std::string& text : texts) {
    const size_t colon = text.find(':');
    const absl::string_view name = absl::string_view(text).substr(0, colon);
    if (colon == std::string::npos || name.empty() ||
        std::any_of(name.begin(), name.end(),
                    [](unsigned char c) { return !absl::ascii_isgraph(c); })) {
      reader->Refuse("--header", text, "NAME:VALUE");
      continue;
    }
    load->headers.emplace_back(absl::AsciiStrToLower(name),
                               std::string(absl::StripAsciiWhitespace(
                                   absl::string_view(text).substr(colon + 1))));
  }
}

void ReadLoad(const Texts& texts, Reader* reader, LoadOptions* load) {
  for (const std::string& target : texts.targets) {
    if (!IsTarget(target)) {
      reader->Refuse("--target", target, "HOST:PORT, the port from 1 to 65535");
    }
  }
  load->targets = texts.targets;
  for (const std::string& text : texts.pids) {
    reader->Number("--server-pid", text, 1, INT32_MAX,
                   &load->server_pids.emplace_back());
  }
  if (!texts.path.empty()) {
    if (texts.path.front() != '/') {
      reader->Refuse("--path", texts.path, "/package.Service/Method");
    }
    load->path = texts.path;
  }
  ReadHeaders(texts.headers, reader, load);
  reader->Number("--connections", texts.connections, 1, 50000,
                 &load->connections);
  reader->Number("--streams", texts.streams, 1, 100000, &load->streams);
  reader->Rate("--rate", texts.rate, &load->rate);
  reader->Number("--max-outstanding", texts.max_outstanding, 1, 1000000,
                 &load->max_outstanding);
  reader->Number("--calls", texts.calls, 0, uint64_t{1} << 40, &load->calls);
  reader->Duration("--duration", texts.duration, absl::Milliseconds(1),
                   &load->duration);
  reader->Duration("--warmup", texts.warmup, absl::ZeroDuration(),
                   &load->warmup);
  reader->Duration("--patience", texts.patience, absl::Milliseconds(1),
                   &load->patience);
  reader->Number("--keys", texts.keys, 0, uint64_t{1} << 40, &load->keys);
  reader->Number("--first-key", texts.first_key, 0, uint64_t{1} << 60,
                 &load->first_key);
  reader->Choice("--pick", texts.pick, RandomPick(texts.pick),
                 "random, sequential", &load->random_keys);
  reader->Number("--check-every", texts.check_every, 1, uint64_t{1} << 40,
                 &load->check_every);
  reader->Choice("--check-tags", texts.check_tags, TagCheckOf(texts.check_tags),
                 "hits, all, none", &load->expected.tags);
  if (!texts.expect_status.empty()) {
    CacheStatus status = CacheStatus::kNone;
    reader->Choice("--expect-status", texts.expect_status,
                   CacheStatusOf(texts.expect_status),
                   "hit, miss, stale, request, bypass, other, none", &status);
    load->expected.status = status;
  }
}

void ReadWorkload(const Texts& texts, Reader* reader,
                  WorkloadOptions* workload) {
  reader->Choice("--shape", texts.shape, ShapeOf(texts.shape),
                 "small, 4k, 17k, 130k, 1m", &workload->shape);
  reader->Number("--seed", texts.seed, 0, UINT64_MAX, &workload->seed);
  reader->Number("--distinct", texts.distinct, 1, 1000000, &workload->distinct);
  // Prepared encodings take memory: 64 x 2 of the largest shape are 128 MB.
  reader->Number("--orders", texts.orders, 0, 1000000, &workload->orders);
  if (workload->orders == 0) {
    workload->orders = workload->shape == Shape::k1M ? 2 : 8;
  }
}

absl::Status Read(const Texts& texts, LoadCommand* command) {
  Reader reader;
  ReadWorkload(texts, &reader, &command->workload);
  ReadLoad(texts, &reader, &command->load);
  command->load.seed = command->workload.seed;
  reader.Choice("--response", texts.response, AnswerShapeOf(texts.response),
                "13k, small", &command->answer);
  if (texts.ttl == "none") {
    command->ttl.reset();
  } else {
    absl::Duration ttl;
    reader.Duration("--ttl", texts.ttl, absl::ZeroDuration(), &ttl);
    command->ttl = ttl;
  }
  if (!reader.status().ok()) return reader.status();
  if (command->load.targets.empty() && command->write_request.empty() &&
      command->write_response.empty()) {
    return absl::InvalidArgumentError(
        "--target: needed, as HOST:PORT (or --write-request, "
        "--write-response)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadCommand> ParseLoadCommand(int argc,
                                             const char* const* argv) {
  LoadCommand command;
  Texts texts;
  CommandLine line(kDescription, "load");
  DefineLoad(&line, &texts);
  DefineRequests(&line, &texts);
  DefineAnswers(&line, &command, &texts);
  DefineFiles(&line, &command, &texts);
  line.Footer(kFooter);
  switch (line.Parse(argc, argv)) {
    case CommandLine::Outcome::kHelp:
      command.help = line.Help();
      return command;
    case CommandLine::Outcome::kError:
      return absl::InvalidArgumentError(line.plain_error());
    case CommandLine::Outcome::kParsed:
      break;
  }
  absl::Status status = Read(texts, &command);
  if (!status.ok()) return status;
  return command;
}

}  // namespace fncache::bench
