// SPDX-License-Identifier: Apache-2.0
// Structured logging to stderr, as text or as one JSON object a line.
//
//   Log(LogLevel::kInfo, "listening", {{"address", address}});
//
// prints `... info listening address=127.0.0.1:9443`, or with --log-format json
// the same fields as JSON. Never log message bodies, seeds or passwords.
// Thread-safe. Works before InitLogging, at level info, as text.
#ifndef FNCACHE_COMMON_LOG_H_
#define FNCACHE_COMMON_LOG_H_

#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace fncache {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat {
  kText,
  kJson,
  // As composition functions in Go log, which use zap's production form:
  // {"level":"info","ts":1700000000.25,"msg":"...",...}.
  kZap,
};

struct LogField {
  LogField(absl::string_view name, const absl::AlphaNum& value)
      : name(name), value(value.Piece()) {}
  absl::string_view name;
  std::string value;
};

// Sets the level below which nothing is printed, and the form: from the next
// line on, at any time.
void InitLogging(LogLevel level, LogFormat format);

// Logs at level info, but only when the next line is logged, and before it. So
// that line is the first of a daemon, while a start that fails has its one line
// of reason. A second call replaces the line of the first.
void LogBeforeTheNext(absl::string_view message,
                      absl::Span<const LogField> fields);

// From now on no thread that logs waits for stderr, which may be a pipe that is
// not read. Another thread writes, and up to 1 MiB of lines wait for it. Beyond
// that, lines are dropped; one line reports them when writing continues. This
// cannot be undone.
void LogInBackground();
// Waits until another thread has written all logged lines, at most `patience`.
void FlushLog(absl::Duration patience);

void Log(LogLevel level, absl::string_view message,
         std::initializer_list<LogField> fields = {});
// The line that Log would print, its end included; "" if it would print none.
// For a caller that writes to stderr directly, between its own lines.
std::string LogLine(LogLevel level, absl::string_view message,
                    std::initializer_list<LogField> fields = {});
// The same, where which fields there are is known late.
void Log(LogLevel level, absl::string_view message,
         absl::Span<const LogField> fields);

}  // namespace fncache

#endif  // FNCACHE_COMMON_LOG_H_
