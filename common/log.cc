// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/background_writer.h"
#include "common/log_text.h"
#include "common/utf8.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"

namespace fncache {
namespace {

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
constexpr char kJsonPattern[] =
    "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",%v}";
// FieldsOf has the level and the time, because zap's level names differ.
constexpr char kZapPattern[] = "{%v}";

const char* PatternOf(LogFormat format) {
  switch (format) {
    case LogFormat::kText:
      return kTextPattern;
    case LogFormat::kJson:
      return kJsonPattern;
    case LogFormat::kZap:
      break;
  }
  return kZapPattern;
}

std::atomic<LogFormat> g_format{LogFormat::kText};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Null until LogInBackground.
std::atomic<BackgroundWriter*> g_background{nullptr};

// The line of LogBeforeTheNext, or null. It belongs to the caller that takes
// it.
std::atomic<const std::string*> g_before_the_next{nullptr};

void WriteLine(absl::string_view line) {
  if (BackgroundWriter* const background =
          g_background.load(std::memory_order_acquire)) {
    background->Write(line);
  } else {
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
  }
}

class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::unique_ptr<const std::string> before(
        g_before_the_next.exchange(nullptr));
    if (before != nullptr) WriteLine(*before);
    WriteLine({line.data(), line.size()});
  }
  void flush_() override {}
};

spdlog::logger* MakeLogger(LogFormat format) {
  auto* const made =
      new spdlog::logger("fncache", std::make_shared<StderrSink>());
  made->set_pattern(PatternOf(format), spdlog::pattern_time_type::utc);
  return made;
}

// One for each form, so that a line which is being made keeps its own.
spdlog::logger& Logger(LogFormat format) {
  static const std::array<spdlog::logger*, 3> all = {
      MakeLogger(LogFormat::kText), MakeLogger(LogFormat::kJson),
      MakeLogger(LogFormat::kZap)};
  return *all[static_cast<size_t>(format)];
}

std::string FieldsOf(LogFormat format, LogLevel level,
                     absl::string_view message,
                     absl::Span<const LogField> fields) {
  std::string line;
  if (format != LogFormat::kText) {
    if (format == LogFormat::kZap) {
      static constexpr const char* kNames[] = {"debug", "info", "warn",
                                               "error"};
      line = absl::StrFormat(
          "\"level\":\"%s\",\"ts\":%.6f,", kNames[static_cast<int>(level)],
          absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
    }
    line += "\"msg\":";
    AppendJsonString(message, &line);
    for (const LogField& field : fields) {
      line += ',';
      AppendJsonString(field.name, &line);
      line += ':';
      AppendJsonString(field.value, &line);
    }
  } else {
    AppendLogText(message, &line);
    for (const LogField& field : fields) {
      absl::StrAppend(&line, " ", field.name, "=");
      AppendTextValue(field.value, &line);
    }
  }
  // Every character of JSON beyond ASCII is within a string, where this is how
  // it may be written as well.
  return WithoutBidiControls(line);
}

std::string LineOf(LogLevel level, absl::string_view message,
                   absl::Span<const LogField> fields) {
  const LogFormat format = g_format;
  spdlog::memory_buf_t line;
  spdlog::pattern_formatter(PatternOf(format), spdlog::pattern_time_type::utc)
      .format(
          spdlog::details::log_msg("fncache", ToSpdlog(level),
                                   FieldsOf(format, level, message, fields)),
          line);
  return std::string(line.data(), line.size());
}

// The line that says how many others there are none of.
std::string DroppedLine(uint64_t count) {
  const LogField lines("lines", count);
  return LineOf(LogLevel::kWarning, "stderr took no lines: some were dropped",
                absl::MakeConstSpan(&lines, 1));
}

}  // namespace

void LogInBackground() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_background.store(new BackgroundWriter(STDERR_FILENO, &DroppedLine),
                       std::memory_order_release);
  });
}

void FlushLog(absl::Duration patience) {
  if (BackgroundWriter* const background =
          g_background.load(std::memory_order_acquire)) {
    background->Flush(patience);
  }
}

void InitLogging(LogLevel level, LogFormat format) {
  for (const LogFormat each :
       {LogFormat::kText, LogFormat::kJson, LogFormat::kZap}) {
    Logger(each).set_level(ToSpdlog(level));
  }
  g_format = format;
}

void LogBeforeTheNext(absl::string_view message,
                      absl::Span<const LogField> fields) {
  std::unique_ptr<const std::string> line;
  if (Logger(g_format).should_log(ToSpdlog(LogLevel::kInfo))) {
    line = std::make_unique<const std::string>(
        LineOf(LogLevel::kInfo, message, fields));
  }
  delete g_before_the_next.exchange(line.release());
}

void Log(LogLevel level, absl::string_view message,
         std::initializer_list<LogField> fields) {
  Log(level, message, absl::MakeConstSpan(fields.begin(), fields.size()));
}

std::string LogLine(LogLevel level, absl::string_view message,
                    std::initializer_list<LogField> fields) {
  if (!Logger(g_format).should_log(ToSpdlog(level))) return "";
  return LineOf(level, message,
                absl::MakeConstSpan(fields.begin(), fields.size()));
}

void Log(LogLevel level, absl::string_view message,
         absl::Span<const LogField> fields) {
  const auto at = ToSpdlog(level);
  const LogFormat format = g_format;
  spdlog::logger& logger = Logger(format);
  if (!logger.should_log(at)) return;
  logger.log(at, "{}", FieldsOf(format, level, message, fields));
}

}  // namespace fncache
