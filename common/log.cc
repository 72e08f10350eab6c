// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>

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

// Tells the characters that must not reach a terminal or a log as they are:
// control characters of ASCII and, as UTF-8, of Latin-1 (U+0080 to U+009F),
// which terminals obey too.
bool IsControl(absl::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead < 0x20 || lead == 0x7f;
  return lead == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

// Appends `text` with control characters as \u00XX, and U+FFFD for each byte
// that is not UTF-8; `quoting` escapes what RFC 8259, section 7, says too.
void AppendEscaped(absl::string_view text, bool quoting, std::string* out) {
  while (!text.empty()) {
    const size_t bytes = Utf8CharacterBytes(text);
    const absl::string_view character =
        text.substr(0, std::max<size_t>(bytes, 1));
    if (bytes == 0) {
      *out += "\xef\xbf\xbd";
    } else if (IsControl(character)) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x",
                    Utf8CodePoint(character));
      *out += escaped;
    } else {
      if (quoting && (character == "\"" || character == "\\")) *out += '\\';
      absl::StrAppend(out, character);
    }
    text.remove_prefix(character.size());
  }
}

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  AppendEscaped(text, /*quoting=*/true, &out);
  return out += '"';
}

// In text a value with spaces, quotes or control characters is quoted, so that
// nothing a peer sends can start a line or a field of its own.
std::string TextValue(absl::string_view value) {
  bool plain = !value.empty() && IsUtf8(value);
  for (absl::string_view rest = value; plain && !rest.empty();) {
    const size_t bytes = Utf8CharacterBytes(rest);
    plain = !IsControl(rest.substr(0, bytes)) && rest[0] != ' ' &&
            rest[0] != '"' && rest[0] != '=' && rest[0] != '\\';
    rest.remove_prefix(bytes);
  }
  std::string same(value);
  return plain ? same : JsonString(value);
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
    line = absl::StrCat("\"msg\":", JsonString(message));
    for (const LogField& field : fields) {
      absl::StrAppend(&line, ",", JsonString(field.name), ":",
                      JsonString(field.value));
    }
  } else {
    AppendEscaped(message, /*quoting=*/false, &line);
    for (const LogField& field : fields) {
      absl::StrAppend(&line, " ", field.name, "=", TextValue(field.value));
    }
  }
  // Every character of JSON beyond ASCII is within a string, where this is how
  // it may be written as well.
  logger.log(at, "{}", WithoutBidiControls(line));
}

}  // namespace fncache
