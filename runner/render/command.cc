// SPDX-License-Identifier: Apache-2.0
#include "runner/render/command.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/file.h"
#include "common/standard_streams.h"
#include "common/threads.h"
#include "common/utf8.h"
#include "runner/client/function_client.h"
#include "runner/engine/fetched_schemas.h"
#include "runner/render/batch.h"
#include "runner/render/error_line.h"
#include "runner/render/expect.h"
#include "runner/render/failure.h"
#include "runner/render/file_watch.h"
#include "runner/render/flags.h"
#include "runner/render/inputs.h"
#include "runner/render/openapi_client.h"
#include "runner/render/output.h"

namespace fncache::runner::render {
namespace {

constexpr int kCannotRender = 1;
constexpr int kBadUsage = 80;
constexpr int kTimedOut = 255;
constexpr int kInterrupted = 130;

// After the last write of an editor or a script, before it is rendered again.
constexpr absl::Duration kQuiet = absl::Milliseconds(60);
// The interval of --all's progress lines if stderr is no terminal.
constexpr absl::Duration kProgressEvery = absl::Seconds(5);

// A failure to write is ignored: without stderr it cannot be reported.
void Say(const std::string& text) {
  if (!WriteAll(STDERR_FILENO, text)) return;
}

int Fail(int code, absl::string_view message) {
  Say(ErrorLine(message));
  return code;
}

// Ctrl-C ends the process at once: everything is printed in the end, so that no
// half of it is left behind.
void HandleSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { _exit(kInterrupted); };
  sigaction(SIGINT, &action, nullptr);
  // Without the signal, write reports that the reader has closed the pipe.
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

// Whether the trace, which goes to stderr, is colored.
bool InColor(RenderFlags::Color color) {
  if (color != RenderFlags::Color::kAuto) {
    return color == RenderFlags::Color::kAlways;
  }
  // https://no-color.org: set and not empty. A terminal that can nothing is
  // named dumb.
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 &&
         (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || absl::string_view(terminal) != "dumb");
}

// How far `--all` is: one line that is written over on a terminal, elsewhere a
// line now and then.
class Progress {
 public:
  Progress(int count, Clock* clock)
      : count_(count),
        clock_(clock),
        terminal_(isatty(STDERR_FILENO) != 0),
        started_(clock->Now()),
        reported_(started_) {}

  void Tell(int done, int failed) {
    const absl::Time now = clock_->Now();
    if (terminal_) {
      Say(absl::StrCat("\r\033[K", Line(done, failed)));
    } else if (done < count_ && now - reported_ >= kProgressEvery) {
      reported_ = now;
      Say(absl::StrCat(Line(done, failed), "\n"));
    }
  }

  void End(int failed) {
    Say(absl::StrCat(terminal_ ? "\r\033[K" : "", Line(count_, failed), " in ",
                     FormatGoDuration(absl::Trunc(clock_->Now() - started_,
                                                  absl::Milliseconds(1))),
                     "\n"));
  }

 private:
  std::string Line(int done, int failed) const {
    return absl::StrCat(
        "fncache render: ", done, " of ", count_,
        failed > 0 ? absl::StrCat(", ", failed, " failed") : "");
  }

  const int count_;
  Clock* const clock_;
  const bool terminal_;
  const absl::Time started_;
  absl::Time reported_;
};

// Renders the same files once or, for --watch, many times: connections and an
// API server's schemas stay.
class Session {
 public:
  explicit Session(RenderFlags flags) : flags_(std::move(flags)) {}

  // Renders and prints. The exit code; `printed` is false if stdout failed.
  int Render(bool* printed) {
    *printed = true;
    auto inputs = LoadRenderInputs(flags_);
    if (!inputs.ok()) return Fail(kCannotRender, inputs.status().message());
    if (const auto status = Connect(&*inputs); !status.ok()) {
      return Fail(kCannotRender, status.message());
    }
    const std::vector<Rendered> all = Run(*inputs);
    std::string documents;
    int code = 0;
    if (flags_.expect.empty()) {
      for (size_t i = 0; i < all.size(); ++i) {
        code = std::max(code, Collect(*inputs, i, all[i], &documents));
      }
    } else {
      code = Expect(*inputs, all, &documents);
    }
    if (!WriteAll(STDOUT_FILENO, documents)) {
      *printed = false;
      return Fail(kCannotRender,
                  absl::StrCat("cannot print what was rendered: ",
                               std::strerror(errno)));
    }
    return code;
  }

 private:
  bool several() const { return !flags_.all.empty(); }

  absl::Status Connect(RenderInputs* inputs) {
    if (!flags_.openapi_url.empty()) {
      if (openapi_ == nullptr) {
        OpenApiServer server;
        server.url = flags_.openapi_url;
        server.token_file = flags_.openapi_token_file;
        server.ca_file = flags_.openapi_ca;
        auto client = OpenApiClient::Create(std::move(server));
        if (!client.ok()) return client.status();
        openapi_ = engine::MakeFetchedSchemas(*std::move(client));
      }
      inputs->schemas = openapi_;
    }
    std::vector<std::string> targets;
    for (const client::FunctionTarget& one : inputs->functions) {
      targets.push_back(one.name);
      targets.push_back(one.target);
    }
    if (client_ != nullptr && targets == targets_) return absl::OkStatus();
    client::FunctionClientOptions options;
    options.functions = inputs->functions;
    options.tls_dir = flags_.tls_dir;
    if (flags_.trace) {
      options.metadata = [] {
        return std::vector<std::pair<std::string, std::string>>{
            client::AskForHint()};
      };
    }
    auto client = client::FunctionClient::Create(std::move(options));
    if (!client.ok()) return client.status();
    client_ = *std::move(client);
    targets_ = std::move(targets);
    return absl::OkStatus();
  }

  std::vector<Rendered> Run(const RenderInputs& inputs) {
    BatchOptions options;
    options.capabilities = flags_.capabilities;
    options.timeout = flags_.timeout;
    options.step_timeout = flags_.step_timeout;
    options.jobs = flags_.jobs;
    if (flags_.trace) options.trace = Say;
    options.trace_in_color = InColor(flags_.color);
    Progress progress(static_cast<int>(inputs.composites.size()), &clock_);
    int failed = 0;
    if (several()) {
      options.progress = [&](int done, int failed_so_far) {
        failed = failed_so_far;
        progress.Tell(done, failed);
      };
    }
    std::vector<Rendered> all =
        RenderAll(inputs, options, client_.get(), &clock_);
    if (several()) progress.End(failed);
    return all;
  }

  // Adds what is to be printed, or says why there is nothing; the exit code.
  int Collect(const RenderInputs& inputs, size_t index,
              const Rendered& rendered, std::string* documents) {
    const CompositeToRender& composite = inputs.composites[index];
    const std::string title = several() ? composite.where : "";
    const std::string prefix = several() ? absl::StrCat(title, ": ") : "";
    if (!composite.status.ok()) {
      return Fail(kCannotRender,
                  absl::StrCat(prefix, composite.status.message()));
    }
    if (!rendered.outcome.status.ok()) {
      Say(FailureLines(rendered, title, inputs.functions));
      return rendered.timed_out ? kTimedOut : kCannotRender;
    }
    RenderOutputOptions options;
    options.full_composite = flags_.include_full_composite;
    options.results = flags_.include_results;
    const auto made = PrintOutput(*composite.object, rendered.outcome.output,
                                  rendered.context, options);
    if (!made.ok()) {
      return Fail(kCannotRender, absl::StrCat(prefix, made.status().message()));
    }
    absl::StrAppend(documents, *made);
    return 0;
  }

  // Compares what was rendered with files; `differences` are to be printed.
  int Expect(const RenderInputs& inputs, const std::vector<Rendered>& all,
             std::string* differences) {
    Expectations expectations(flags_.expect, flags_.update);
    int code = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      std::string documents;
      const int collected = Collect(inputs, i, all[i], &documents);
      code = std::max(code, collected);
      const std::string& file = inputs.composites[i].file;
      const absl::Status added = collected == 0
                                     ? expectations.Add(file, documents)
                                     : expectations.Skip(file);
      if (!added.ok()) return Fail(kBadUsage, added.message());
    }
    const auto comparison = expectations.Compare();
    if (!comparison.ok()) {
      return Fail(std::max(code, kCannotRender), comparison.status().message());
    }
    Say(comparison->report);
    *differences = comparison->differences;
    return comparison->as_expected ? code : std::max(code, kCannotRender);
  }

  const RenderFlags flags_;
  SystemClock clock_;
  std::shared_ptr<engine::SchemaSource> openapi_;
  std::unique_ptr<client::FunctionClient> client_;
  std::vector<std::string> targets_;
};

// Renders at every change, until stdout is gone or files cannot be watched.
int Watch(const RenderFlags& flags) {
  Session session(flags);
  const std::vector<std::string> paths = InputPaths(flags);
  for (;;) {
    // Before they are read, so that no change is missed.
    const auto watch = FileWatch::Create(paths);
    if (!watch.ok()) return Fail(kCannotRender, watch.status().message());
    bool printed = false;
    const int code = session.Render(&printed);
    if (!printed) return code;
    Say(absl::StrCat("fncache render: ", code == 0 ? "rendered" : "failed",
                     "; waiting for changes, Ctrl-C ends\n"));
    const std::string changed = (*watch)->WaitForChange(kQuiet);
    Say(absl::StrCat(
        "fncache render: ", changed.empty() ? "files" : Printable(changed),
        " changed\n"));
  }
}

}  // namespace

int RenderMain(int argc, char** argv) {
  if (!HadStandardStream(STDOUT_FILENO)) {
    return Fail(kCannotRender, "cannot print what was rendered: no stdout");
  }
  HandleSignals();
  auto flags = ParseRenderFlags(argc, argv);
  if (!flags.ok()) {
    // The reference command checks files as it parses its command line.
    const bool usage = absl::IsInvalidArgument(flags.status()) ||
                       absl::IsNotFound(flags.status());
    return Fail(usage ? kBadUsage : kCannotRender, flags.status().message());
  }
  if (flags->help) {
    return PrintResult("fncache render", RenderHelp());
  }
  constexpr int kOwnThreads = 4;
  const absl::Status threads = CheckThreads(GrpcThreads() + kOwnThreads);
  if (!threads.ok()) return Fail(kCannotRender, threads.message());
  if (flags->watch) return Watch(*flags);
  bool printed = false;
  return Session(*std::move(flags)).Render(&printed);
}

}  // namespace fncache::runner::render
