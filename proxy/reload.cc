// SPDX-License-Identifier: Apache-2.0
#include "proxy/reload.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/tls_files.h"
#include "proxy/settings/check.h"
#include "proxy/settings/settings.h"

namespace fncache::proxy {
namespace {

// A file whose content changes is read again after kSettling, until two
// readings agree: its writer may write in place and not be done. It is read
// again at most kMostSettling times.
constexpr absl::Duration kSettling = absl::Milliseconds(100);
constexpr int kMostSettling = 10;
// A requested reload pauses this time before the second reading. Its caller has
// mostly written the file already, and waits.
constexpr absl::Duration kSecondLook = absl::Milliseconds(25);

using settings::SettingChange;

std::string ChangeText(const SettingChange& change) {
  return absl::StrCat(change.before, " -> ", change.after);
}

void LogChanges(LogLevel level, absl::string_view message,
                const std::string& file,
                const std::vector<SettingChange>& changes) {
  std::vector<std::string> names;
  names.reserve(changes.size());  // fields refer to them
  std::vector<LogField> fields = {{"file", file}};
  for (const SettingChange& change : changes) {
    names.push_back(NameOf(change));
    fields.emplace_back(names.back(), ChangeText(change));
  }
  Log(level, message, fields);
}

bool SameContent(const absl::StatusOr<std::string>& a,
                 const absl::StatusOr<std::string>& b) {
  if (a.ok() != b.ok()) return false;
  return a.ok() ? *a == *b : a.status() == b.status();
}

}  // namespace

Reloader::Reloader(StartSettings start, Apply apply, Alarms* alarms)
    : source_(std::move(start.source)),
      apply_(std::move(apply)),
      alarms_(alarms),
      tried_(std::move(start.text)),
      warned_(std::move(start.warnings)),
      running_(std::move(start.resolved)) {
  figures_.file = source_.file();
  figures_.last_success = absl::Now();
}

void Reloader::Poll(absl::Duration interval) {
  if (source_.file().empty()) return;
  alarms_->Set("settings file", interval,
               [this, interval] { LookAtFile(interval); });
}

void Reloader::RequestReload() {
  alarms_->Set("reload", absl::ZeroDuration(),
               [this] { Reload().IgnoreError(); });
}

Reloader::Content Reloader::ReadSettled(absl::Duration second_look) const {
  Content content = source_.ReadFile();
  if (SameContent(content, tried_)) return content;
  absl::Duration pause = second_look;
  for (int i = 0; i < kMostSettling; ++i) {
    absl::SleepFor(pause);
    Content again = source_.ReadFile();
    const bool still = SameContent(content, again);
    content = std::move(again);
    if (still) break;
    pause = kSettling;
  }
  return content;
}

void Reloader::LookAtFile(absl::Duration interval) {
  {
    MutexLock lock(&reloading_);
    const Content content = ReadSettled(kSettling);
    if (!SameContent(content, tried_)) ReloadFrom(content).IgnoreError();
  }
  Poll(interval);
}

absl::StatusOr<ReloadResult> Reloader::Reload() {
  if (source_.file().empty()) {
    const auto none = absl::FailedPreconditionError(
        "there is no settings file (--config FILE) to reload: flags and "
        "environment stay as they were at the start");
    Log(LogLevel::kWarning, "nothing was reloaded", {{"why", none.message()}});
    return none;
  }
  MutexLock lock(&reloading_);
  return ReloadFrom(ReadSettled(kSecondLook));
}

absl::StatusOr<ReloadResult> Reloader::ReloadFrom(const Content& content) {
  absl::StatusOr<ReloadResult> result = Try(content);
  tried_ = content;
  if (!result.ok()) {
    Log(LogLevel::kError, "settings were not reloaded: they stay as they were",
        {{"file", source_.file()}, {"why", result.status().message()}});
    MutexLock lock(&mutex_);
    if (figures_.last_successful) figures_.failing_since = absl::Now();
    figures_.last_successful = false;
    figures_.error = std::string(result.status().message());
    ++figures_.failures;
    return result;
  }
  if (!result->changed.empty()) {
    LogChanges(LogLevel::kInfo, "settings were reloaded", source_.file(),
               result->changed);
  } else {
    Log(LogLevel::kInfo, "settings were reloaded: none has changed",
        {{"file", source_.file()}});
  }
  if (!result->restart.empty()) {
    LogChanges(LogLevel::kWarning,
               "settings that take a restart keep their values", source_.file(),
               result->restart);
  }
  MutexLock lock(&mutex_);
  figures_.last_successful = true;
  figures_.last_success = absl::Now();
  figures_.error.clear();
  ++figures_.successes;
  figures_.restart.clear();
  for (const SettingChange& change : result->restart) {
    figures_.restart.push_back(
        absl::StrCat(NameOf(change), ": ", ChangeText(change)));
  }
  return result;
}

absl::StatusOr<ReloadResult> Reloader::Try(const Content& content) {
  if (!content.ok()) return content.status();
  if (absl::StripAsciiWhitespace(*content).empty()) {
    // A writer may have truncated the file to write it again. An empty file
    // would reset all settings.
    return absl::InvalidArgumentError(
        "the file is empty, as one that is being written; a comment will do "
        "where nothing is to be set");
  }
  absl::StatusOr<settings::EffectiveSettings> read = source_.Resolve(*content);
  if (!read.ok()) return read.status();
  ResolvedSettings running;
  {
    MutexLock lock(&mutex_);
    running = running_;
  }
  settings::ReloadedSettings merged =
      settings::Reloaded(running, read->resolved);
  // Old values that are kept may contradict new ones.
  absl::StatusOr<settings::ServeOptions> options =
      settings::MakeServeOptions(&merged.settings);
  if (!options.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.status().message(),
                     " (with the values of the start where those take a "
                     "restart)"));
  }
  if (options->daemon.tls_dir.has_value()) {
    // The watcher of the certificates checks whether they are valid.
    const absl::StatusOr<TlsFiles> files =
        ReadTlsFiles(*options->daemon.tls_dir, TlsSide::kServer, absl::Now());
    if (files.ok() && files->ca.empty()) {
      settings::WarnOfTags("without ca.crt", &*options);
    }
  }
  const std::vector<telemetry::ListedSetting> list = telemetry::ListSettings(
      settings::ServeSettings(), merged.settings, "function");
  if (!merged.changed.empty()) {
    absl::Status applied = apply_(options->daemon, merged.functions, list);
    if (!applied.ok()) return applied;
  }
  for (const std::string& warning : options->warnings) {
    if (std::find(warned_.begin(), warned_.end(), warning) != warned_.end()) {
      continue;
    }
    Log(LogLevel::kWarning, warning);
    warned_.push_back(warning);
  }
  {
    MutexLock lock(&mutex_);
    running_ = std::move(merged.settings);
  }
  return ReloadResult{std::move(merged.changed), std::move(merged.restart)};
}

telemetry::ReloadFigures Reloader::figures() const {
  MutexLock lock(&mutex_);
  return figures_;
}

std::vector<telemetry::ListedSetting> Reloader::settings() const {
  ResolvedSettings running;
  {
    MutexLock lock(&mutex_);
    running = running_;
  }
  return telemetry::ListSettings(settings::ServeSettings(), running,
                                 "function");
}

std::string Reloader::yaml() const {
  ResolvedSettings running;
  {
    MutexLock lock(&mutex_);
    running = running_;
  }
  return SettingsAsYaml(settings::ServeSettings(), running);
}

}  // namespace fncache::proxy
