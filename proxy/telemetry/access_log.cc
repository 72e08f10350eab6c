// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/access_log.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/log_text.h"
#include "common/utf8.h"

namespace fncache::proxy::telemetry {
namespace {

// Lines wait this long to be written with others, unless kManyBytes wait.
constexpr absl::Duration kLinger = absl::Milliseconds(50);
constexpr size_t kManyBytes = AccessLog::kQueueBytes / 4;
// Above this size an empty buffer's memory is freed after a burst of calls.
constexpr size_t kKeptBytes = 64 << 10;
// Lines are made and written in pieces of this size.
constexpr size_t kPieceBytes = 64 << 10;
// The time for writing the waiting lines at the end. Beyond it they are
// dropped.
constexpr absl::Duration kFarewell = absl::Seconds(1);
// A writer that waits for its output checks at this interval if it must stop.
constexpr int kLookMilliseconds = 100;

// A record in the queue. Its texts follow it.
struct Queued {
  int64_t ended_ns;
  int64_t latency_ns;
  int64_t upstream_ns;
  cache::key::Key key;
  int32_t code;
  Outcome outcome;
  insight::trace::Reason reason;
  std::array<uint16_t, 6> lengths;
};
static_assert(AccessRecord::kMostText <= UINT16_MAX);

// Cuts the text at the end of a character.
absl::string_view Cut(absl::string_view text) {
  if (text.size() <= AccessRecord::kMostText) return text;
  size_t size = AccessRecord::kMostText;
  // A character has at most three continuation bytes.
  for (int i = 0; i < 3 && (text[size] & 0xc0) == 0x80; ++i) --size;
  return text.substr(0, size);
}

void Enqueue(const AccessRecord& record, std::string* queue) {
  const std::array<absl::string_view, 6> texts = {
      Cut(record.function),         Cut(record.api_version), Cut(record.kind),
      Cut(record.object_namespace), Cut(record.name),        Cut(record.detail),
  };
  Queued queued = {};
  queued.ended_ns = absl::ToUnixNanos(record.ended);
  queued.latency_ns = absl::ToInt64Nanoseconds(record.latency);
  queued.upstream_ns = absl::ToInt64Nanoseconds(record.upstream_latency);
  queued.key = record.key;
  queued.code = record.code;
  queued.outcome = record.outcome;
  queued.reason = record.reason;
  for (size_t i = 0; i < texts.size(); ++i) {
    queued.lengths[i] = static_cast<uint16_t>(texts[i].size());
  }
  queue->append(reinterpret_cast<const char*>(&queued), sizeof queued);
  for (const absl::string_view text : texts) {
    queue->append(text.data(), text.size());
  }
}

// Removes the first record.
AccessRecord Dequeue(absl::string_view* queue) {
  Queued queued;
  std::memcpy(&queued, queue->data(), sizeof queued);
  queue->remove_prefix(sizeof queued);
  AccessRecord record;
  record.ended = absl::FromUnixNanos(queued.ended_ns);
  record.latency = absl::Nanoseconds(queued.latency_ns);
  record.upstream_latency = absl::Nanoseconds(queued.upstream_ns);
  record.key = queued.key;
  record.code = queued.code;
  record.outcome = queued.outcome;
  record.reason = queued.reason;
  absl::string_view* const texts[] = {
      &record.function,         &record.api_version, &record.kind,
      &record.object_namespace, &record.name,        &record.detail};
  for (size_t i = 0; i < queued.lengths.size(); ++i) {
    *texts[i] = queue->substr(0, queued.lengths[i]);
    queue->remove_prefix(queued.lengths[i]);
  }
  return record;
}

// Writes times as the log does, and formats the date once a second.
class TimeWriter {
 public:
  void Append(absl::Time time, std::string* out) {
    const int64_t ms = absl::ToUnixMillis(time);
    if (ms / 1000 != second_) {
      second_ = ms / 1000;
      text_ =
          absl::FormatTime("%Y-%m-%dT%H:%M:%S", absl::FromUnixSeconds(second_),
                           absl::UTCTimeZone());
    }
    absl::StrAppend(out, text_, ".", absl::Dec(ms % 1000, absl::kZeroPad3),
                    "Z");
  }

 private:
  int64_t second_ = -1;
  std::string text_;
};

// Writes the fields of a line, in one of the two formats.
class LineWriter {
 public:
  LineWriter(LogFormat format, std::string* out) : format_(format), out_(out) {}

  void Text(absl::string_view name, absl::string_view value) {
    if (value.empty()) return;
    Name(name);
    if (format_ == LogFormat::kJson) {
      AppendJsonString(value, out_);
    } else {
      AppendTextValue(value, out_);
    }
  }
  void Seconds(absl::string_view name, absl::Duration duration) {
    const int64_t us =
        std::max<int64_t>(absl::ToInt64Microseconds(duration), 0);
    Name(name);
    absl::StrAppend(out_, us / 1'000'000, ".",
                    absl::Dec(us % 1'000'000, absl::kZeroPad6));
  }

 private:
  void Name(absl::string_view name) {
    if (format_ == LogFormat::kJson) {
      absl::StrAppend(out_, ",\"", name, "\":");
    } else {
      absl::StrAppend(out_, " ", name, "=");
    }
  }

  const LogFormat format_;
  std::string* const out_;
};

void AppendLine(const AccessRecord& record, LogFormat format, TimeWriter* times,
                std::string* out) {
  const size_t begin = out->size();
  const bool json = format == LogFormat::kJson;
  if (json) *out += "{\"time\":\"";
  times->Append(record.ended, out);
  *out += json ? "\",\"level\":\"info\",\"msg\":\"call\"" : " info call";
  LineWriter line(format, out);
  line.Text("function", record.function);
  line.Text("api_version", record.api_version);
  line.Text("kind", record.kind);
  line.Text("namespace", record.object_namespace);
  line.Text("name", record.name);
  line.Text("outcome", OutcomeName(record.outcome));
  line.Text("reason", insight::trace::ReasonName(record.reason));
  line.Text("detail", record.detail);
  if (record.key != cache::key::Key()) line.Text("key", record.key.Hex());
  line.Seconds("latency_seconds", record.latency);
  if (record.upstream_latency > absl::ZeroDuration()) {
    line.Seconds("upstream_seconds", record.upstream_latency);
  }
  line.Text("status", StatusCodeName(record.code));
  *out += json ? "}\n" : "\n";
  const absl::string_view whole = absl::string_view(*out).substr(begin);
  // As in the log. The replacement is valid in JSON's strings, too.
  if (HasBidiControl(whole)) {
    const std::string tame = WithoutBidiControls(whole);
    out->replace(begin, std::string::npos, tame);
  }
}

uint64_t Lines(absl::string_view text) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

// The output of the lines. Only the writer's thread uses it, except `file`,
// which is constant.
class AccessLog::Output {
 public:
  // Takes ownership of the descriptor, unless it is stderr's.
  Output(int fd, std::string name) : file(std::move(name)), fd_(fd) {
    struct stat is;
    regular_ = fstat(fd, &is) == 0 && S_ISREG(is.st_mode);
  }
  ~Output() {
    if (!file.empty()) close(fd_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  static absl::StatusOr<std::shared_ptr<Output>> Open(const std::string& name) {
    if (name.empty()) return std::make_shared<Output>(STDERR_FILENO, name);
    // With O_NONBLOCK a named pipe without a reader does not block the open.
    const int fd =
        open(name.c_str(),
             O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
             0640);
    if (fd < 0) {
      return absl::ErrnoToStatus(errno,
                                 absl::StrCat("cannot open ", Printable(name)));
    }
    return std::make_shared<Output>(fd, name);
  }

  // A pipe or terminal takes PIPE_BUF bytes without blocking once poll says so.
  // No line of another writer comes between them.
  size_t most_at_once() const { return regular_ ? kPieceBytes : PIPE_BUF; }
  bool regular() const { return regular_; }
  int fd() const { return fd_; }

  // Logs one line when writing begins to fail, and one when it works again. If
  // the output is the log's own, nothing can be logged.
  void Failed(int error) {
    if (file.empty() || std::exchange(failing_, true)) return;
    Log(LogLevel::kWarning,
        "the access log cannot be written: lines are dropped",
        {{"file", file}, {"why", std::strerror(error)}});
  }
  void Succeeded() {
    if (!std::exchange(failing_, false)) return;
    Log(LogLevel::kInfo, "the access log can be written", {{"file", file}});
  }

  const std::string file;
  // The last line was not written completely.
  bool torn = false;

 private:
  const int fd_;
  bool regular_ = false;
  bool failing_ = false;
};

AccessLog::~AccessLog() {
  std::thread writer;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    patience_ = absl::Now() + kFarewell;
    changed_.SignalAll();
    writer.swap(writer_);
  }
  if (writer.joinable()) writer.join();
}

absl::Status AccessLog::Configure(const AccessLogOptions& options) {
  std::shared_ptr<Output> opened;
  if (options.calls != LoggedCalls::kNone) {
    absl::StatusOr<std::shared_ptr<Output>> output = Output::Open(options.file);
    if (!output.ok()) return output.status();
    opened = *std::move(output);
  }
  MutexLock lock(&mutex_);
  if (opened != nullptr) {
    output_ = std::move(opened);
    reopen_ = false;
    format_ = options.format;
    if (!writer_.joinable()) writer_ = std::thread([this] { Run(); });
  }
  slow_ns_.store(absl::ToInt64Nanoseconds(options.slow),
                 std::memory_order_relaxed);
  sample_.store(options.sample, std::memory_order_relaxed);
  calls_.store(options.calls, std::memory_order_relaxed);
  return absl::OkStatus();
}

void AccessLog::Reopen() {
  {
    MutexLock lock(&mutex_);
    if (output_ != nullptr && !output_->file.empty()) {
      reopen_ = true;
      return changed_.SignalAll();
    }
  }
  Log(LogLevel::kInfo, "ignored a signal: no file of an access log is open",
      {{"signal", strsignal(SIGUSR1)}});
}

bool AccessLog::Chooses(const CallRecord& call) const {
  switch (calls_.load(std::memory_order_relaxed)) {
    case LoggedCalls::kNone:
      return false;
    case LoggedCalls::kMisses:
      // A joined caller with an error got no answer of the cache.
      if (call.outcome == Outcome::kHit || call.outcome == Outcome::kStaleHit ||
          (call.outcome == Outcome::kCollapsed && call.code == 0)) {
        return false;
      }
      break;
    case LoggedCalls::kSlow:
      if (absl::ToInt64Nanoseconds(call.latency) <
          slow_ns_.load(std::memory_order_relaxed)) {
        return false;
      }
      break;
    case LoggedCalls::kAll:
      break;
  }
  const double sample = sample_.load(std::memory_order_relaxed);
  if (sample >= 1) return true;
  thread_local absl::InsecureBitGen random;
  return absl::Uniform(random, 0.0, 1.0) < sample;
}

void AccessLog::Write(const AccessRecord& record) {
  MutexLock lock(&mutex_);
  if (queue_.size() >= kQueueBytes || output_ == nullptr) {
    counters_.dropped.Add(1);
    if (output_ != nullptr) ++overflowed_;
    return;
  }
  const size_t before = queue_.size();
  Enqueue(record, &queue_);
  // Waking the writer costs more than all other steps. So it is woken once for
  // all lines of its wait, and when kManyBytes wait.
  if (idle_ || (before < kManyBytes && queue_.size() >= kManyBytes)) {
    idle_ = false;
    changed_.SignalAll();
  }
}

void AccessLog::Run() {
  std::string batch;
  for (;;) {
    std::shared_ptr<Output> output;
    LogFormat format = LogFormat::kText;
    bool reopen = false;
    {
      MutexLock lock(&mutex_);
      if (queue_.empty()) {
        if (batch.capacity() > kKeptBytes) std::string().swap(batch);
        if (queue_.capacity() > kKeptBytes) std::string().swap(queue_);
      }
      while (queue_.empty() && !stop_ && !reopen_) {
        idle_ = true;
        changed_.Wait(&mutex_);
      }
      idle_ = false;
      const absl::Time until = absl::Now() + kLinger;
      while (queue_.size() < kManyBytes && !stop_ && !reopen_) {
        const absl::Duration left = until - absl::Now();
        if (left <= absl::ZeroDuration() ||
            changed_.WaitWithTimeout(&mutex_, left)) {
          break;
        }
      }
      if (queue_.empty() && stop_) return;
      batch.clear();
      batch.swap(queue_);
      output = output_;
      format = format_;
      reopen = std::exchange(reopen_, false);
    }
    if (output == nullptr) continue;
    // If a batch was not written, the output has logged why, if it can.
    if (WriteBatch(batch, format, output.get())) TellOverflow(output.get());
    if (reopen) ReopenNow(output);
  }
}

bool AccessLog::WriteBatch(absl::string_view records, LogFormat format,
                           Output* output) {
  TimeWriter times;
  std::string lines;
  bool taken = true;
  while (!records.empty()) {
    lines.clear();
    while (!records.empty() && lines.size() < kPieceBytes) {
      AppendLine(Dequeue(&records), format, &times, &lines);
    }
    if (taken) {
      taken = WriteLines(lines, output);
    } else {
      Lose(Lines(lines), *output);
    }
  }
  return taken;
}

bool AccessLog::WriteLines(absl::string_view lines, Output* output) {
  while (!lines.empty()) {
    if (output->torn) WriteSome("\n", output);
    // A piece has whole lines. It is longer only if one line is.
    absl::string_view piece = lines.substr(0, output->most_at_once());
    size_t end = piece.rfind('\n');
    if (end == absl::string_view::npos) end = lines.find('\n');
    piece = lines.substr(0, end + 1);
    const size_t done = WriteSome(piece, output);
    counters_.written.Add(Lines(piece.substr(0, done)));
    if (done < piece.size()) {
      Lose(Lines(lines.substr(done)), *output);
      return false;
    }
    lines.remove_prefix(piece.size());
  }
  return true;
}

size_t AccessLog::WriteSome(absl::string_view text, Output* output) {
  size_t done = 0;
  while (done < text.size()) {
    if (!output->regular() && !AwaitOutput(output)) break;
    const ssize_t n =
        write(output->fd(), text.data() + done,
              std::min(text.size() - done, output->most_at_once()));
    if (n > 0) {
      done += static_cast<size_t>(n);
      output->torn = text[done - 1] != '\n';
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
      output->Failed(n == 0 ? EIO : errno);
      return done;
    }
  }
  if (done > 0) output->Succeeded();
  return done;
}

bool AccessLog::AwaitOutput(Output* output) {
  for (;;) {
    pollfd waiting = {output->fd(), POLLOUT, 0};
    const int ready = poll(&waiting, 1, kLookMilliseconds);
    // On an error, write returns it.
    if (ready > 0) return true;
    // If the output is the log's own, TellOverflow would wait, too.
    if (!output->file.empty()) TellOverflow(output);
    MutexLock lock(&mutex_);
    if (output_.get() != output || absl::Now() >= patience_) return false;
  }
}

void AccessLog::Lose(uint64_t lines, const Output& output) {
  counters_.dropped.Add(lines);
  // The output itself logs the failure of a file.
  if (!output.file.empty()) return;
  MutexLock lock(&mutex_);
  overflowed_ += lines;
}

void AccessLog::TellOverflow(Output* output) {
  uint64_t lines = 0;
  {
    MutexLock lock(&mutex_);
    uint64_t silent = 0;
    if (overflowed_ == 0 || !overflow_log_limit_.Allows(absl::Now(), &silent)) {
      return;
    }
    lines = std::exchange(overflowed_, 0);
  }
  if (!output->file.empty()) {
    Log(LogLevel::kWarning,
        "the access log cannot be written as fast as calls end: lines are "
        "dropped",
        {{"lines", lines}, {"file", output->file}});
    return;
  }
  // The log's own lines may wait for stderr, and its queue may be full. So this
  // line is written directly.
  const std::string told =
      LogLine(LogLevel::kWarning,
              "stderr took no lines of the access log: some were dropped",
              {{"lines", lines}});
  if (WriteSome(told, output) == told.size()) return;
  MutexLock lock(&mutex_);
  overflowed_ += lines;
}

void AccessLog::ReopenNow(const std::shared_ptr<Output>& output) {
  if (output->file.empty()) return;
  absl::StatusOr<std::shared_ptr<Output>> opened = Output::Open(output->file);
  if (!opened.ok()) {
    Log(LogLevel::kWarning, "cannot reopen the access log",
        {{"why", opened.status().message()}});
    return;
  }
  Log(LogLevel::kInfo, "reopened the access log", {{"file", output->file}});
  MutexLock lock(&mutex_);
  // Not if Configure has set another output meanwhile.
  if (output_ == output) output_ = *std::move(opened);
}

}  // namespace fncache::proxy::telemetry
