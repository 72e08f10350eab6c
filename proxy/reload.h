// SPDX-License-Identifier: Apache-2.0
// Reloader: reads the daemon's settings again while it runs, because somebody
// asks for it or because the content of the file has changed, and says what
// became of it: in the log, to whoever asked, and to the status page and the
// metrics.
//
// All of the settings are resolved and checked as at the start, then handed to
// whoever puts them in force; an error on the way leaves everything as it was.
// What takes a restart is named and keeps its value, while the others change.
//
// The file is looked at by content, at every poll, so that links which are
// swapped are followed. A file that was caught while it is written is read
// again a moment later, by who asks for a reload as well. What one content led
// to is said once.
//
// Thread-safe; reloads are made one after the other.
#ifndef FNCACHE_PROXY_RELOAD_H_
#define FNCACHE_PROXY_RELOAD_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/mutex.h"
#include "proxy/alarms.h"
#include "proxy/settings/compare.h"
#include "proxy/settings/source.h"
#include "proxy/telemetry/reload_figures.h"
#include "proxy/telemetry/settings_list.h"

namespace fncache::proxy {

// What a reload did.
struct ReloadResult {
  // These took effect.
  std::vector<settings::SettingChange> changed;
  // These have another value now than the daemon runs with, and take a restart.
  std::vector<settings::SettingChange> restart;
  // Nothing is different from what is in force.
  bool unchanged() const { return changed.empty() && restart.empty(); }
};

// Where the daemon's settings are from, and what came of them at the start.
struct StartSettings {
  settings::SettingsSource source;
  ResolvedSettings resolved;
  // What the file held.
  std::string text;
  // What the log has been told of them.
  std::vector<std::string> warnings;
};

class Reloader {
 public:
  // Puts settings in force: all, or an error and none. `functions` says of
  // which functions settings changed.
  using Apply = std::function<absl::Status(
      const settings::DaemonOptions& options,
      const std::vector<bool>& functions,
      const std::vector<telemetry::ListedSetting>& list)>;

  // `alarms` outlives it, but is stopped before.
  Reloader(StartSettings start, Apply apply, Alarms* alarms);

  // Looks at the file every `interval`, from now on. Once.
  void Poll(absl::Duration interval);
  // Reloads on the alarms' thread, soon.
  void RequestReload();

  // FailedPrecondition where there is no file; else why the settings cannot be
  // put in force, in one line.
  absl::StatusOr<ReloadResult> Reload();

  telemetry::ReloadFigures figures() const;
  // The settings in force.
  std::vector<telemetry::ListedSetting> settings() const;
  // The same as a file that reads back as them.
  std::string yaml() const;

 private:
  // What the file held, or why it could not be read.
  using Content = absl::StatusOr<std::string>;
  void LookAtFile(absl::Duration interval);
  // The content once it stands still: at once where it is what was tried last,
  // else when two looks agree, the second one after `second_look`.
  Content ReadSettled(absl::Duration second_look) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reloading_);
  absl::StatusOr<ReloadResult> ReloadFrom(const Content& content)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reloading_);
  absl::StatusOr<ReloadResult> Try(const Content& content)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reloading_);

  const settings::SettingsSource source_;
  const Apply apply_;
  Alarms* const alarms_;

  Mutex reloading_;
  // What was tried last.
  Content tried_ ABSL_GUARDED_BY(reloading_);
  // Warnings that the log has had.
  std::vector<std::string> warned_ ABSL_GUARDED_BY(reloading_);

  mutable Mutex mutex_ ABSL_ACQUIRED_AFTER(reloading_);
  ResolvedSettings running_ ABSL_GUARDED_BY(mutex_);
  telemetry::ReloadFigures figures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_RELOAD_H_
