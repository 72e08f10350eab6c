#include "common/log.h"

#include <cstdio>
#include <memory>

#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace fncache {
namespace {

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
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                      spdlog::pattern_time_type::utc);
    return made;
  }();
  return *logger;
}

// A JSON string literal (RFC 8259, section 7). Bytes that are not ASCII pass as
// they are: values are UTF-8 wherever they come from us.
std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out += '"';
}

// In text a value with spaces, quotes or control characters is quoted, so that
// nothing a peer sends can start a line of its own.
std::string TextValue(absl::string_view value) {
  for (const char c : value) {
    if (c == ' ' || c == '"' || c == '=' ||
        static_cast<unsigned char>(c) < 0x20) {
      return JsonString(value);
    }
  }
  return std::string(value);
}

}  // namespace

void InitLogging(LogLevel level, LogFormat format) {
  g_format = format;
  Logger().set_level(ToSpdlog(level));
  if (format == LogFormat::kJson) {
    Logger().set_pattern(
        "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",%v}",
        spdlog::pattern_time_type::utc);
  }
}

void Log(LogLevel level, absl::string_view message,
         std::initializer_list<LogField> fields) {
  const auto at = ToSpdlog(level);
  if (!Logger().should_log(at)) return;
  std::string line;
  if (g_format == LogFormat::kJson) {
    line = absl::StrCat("\"msg\":", JsonString(message));
    for (const LogField& field : fields) {
      absl::StrAppend(&line, ",", JsonString(field.name), ":",
                      JsonString(field.value));
    }
  } else {
    line = std::string(message);
    for (const LogField& field : fields) {
      absl::StrAppend(&line, " ", field.name, "=", TextValue(field.value));
    }
  }
  Logger().log(at, "{}", line);
}

}  // namespace fncache
