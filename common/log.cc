// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

#include <atomic>
#include <memory>

#include "common/log_text.h"
#include "common/utf8.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace fncache {
namespace {

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
constexpr char kJsonPattern[] =
    "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",%v}";

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

spdlog::logger* MakeLogger(const char* pattern) {
  auto* const made = new spdlog::logger(
      "fncache", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  made->set_pattern(pattern, spdlog::pattern_time_type::utc);
  return made;
}

// One for each form, so that a line which is being made keeps its own. They
// share the stream's lock.
spdlog::logger& Logger(LogFormat format) {
  static spdlog::logger* const text = MakeLogger(kTextPattern);
  static spdlog::logger* const json = MakeLogger(kJsonPattern);
  return format == LogFormat::kJson ? *json : *text;
}

}  // namespace

void InitLogging(LogLevel level, LogFormat format) {
  Logger(LogFormat::kText).set_level(ToSpdlog(level));
  Logger(LogFormat::kJson).set_level(ToSpdlog(level));
  g_format = format;
}

void Log(LogLevel level, absl::string_view message,
         std::initializer_list<LogField> fields) {
  Log(level, message, absl::MakeConstSpan(fields.begin(), fields.size()));
}

void Log(LogLevel level, absl::string_view message,
         absl::Span<const LogField> fields) {
  const auto at = ToSpdlog(level);
  const LogFormat format = g_format;
  spdlog::logger& logger = Logger(format);
  if (!logger.should_log(at)) return;
  std::string line;
  if (format == LogFormat::kJson) {
    line = "\"msg\":";
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
  logger.log(at, "{}", WithoutBidiControls(line));
}

}  // namespace fncache
