// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

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

LogFormat g_format = LogFormat::kText;

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

spdlog::logger& Logger() {
  static spdlog::logger* logger = [] {
    auto* made = new spdlog::logger(
        "fncache", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern(kTextPattern, spdlog::pattern_time_type::utc);
    return made;
  }();
  return *logger;
}

}  // namespace

void InitLogging(LogLevel level, LogFormat format) {
  g_format = format;
  Logger().set_level(ToSpdlog(level));
  Logger().set_pattern(format == LogFormat::kJson ? kJsonPattern : kTextPattern,
                       spdlog::pattern_time_type::utc);
}

void Log(LogLevel level, absl::string_view message,
         std::initializer_list<LogField> fields) {
  Log(level, message, absl::MakeConstSpan(fields.begin(), fields.size()));
}

void Log(LogLevel level, absl::string_view message,
         absl::Span<const LogField> fields) {
  const auto at = ToSpdlog(level);
  if (!Logger().should_log(at)) return;
  std::string line;
  if (g_format == LogFormat::kJson) {
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
  Logger().log(at, "{}", WithoutBidiControls(line));
}

}  // namespace fncache
