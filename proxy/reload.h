// SPDX-License-Identifier: Apache-2.0
// Reloader: reads the daemon's settings again while it runs, on request or when
// the file's content has changed. It reports the result in the log, to the
// requester, on the status page and in metrics.
//
// All settings are resolved and checked as at the start. Then `Apply` puts them
// in force. An error before that changes nothing. Settings that take a restart
// are named and keep their values, while the others change.
//
// Every poll compares the file's content, so links that are swapped are
// followed. A file that is being written is read again a moment later, also on
// a requested reload. The result of one content is reported once.
//
// Thread-safe; reloads run one after the other.
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

// The result of a reload.
struct ReloadResult {
  // These took effect.
  std::vector<settings::SettingChange> changed;
  // These have another value in the file than in the daemon, and take a
  // restart.
  std::vector<settings::SettingChange> restart;
  // No setting differs from those in force.
  bool unchanged() const { return changed.empty() && restart.empty(); }
};

// The source of the daemon's settings, and the settings of the start.
struct StartSettings {
  settings::SettingsSource source;
  ResolvedSettings resolved;
  // The file's text.
  std::string text;
  // Warnings about the settings that have been logged.
  std::vector<std::string> warnings;
};

class Reloader {
 public:
  // Puts all settings in force, or returns an error and changes none.
  // `functions` says which functions have changed settings.
  using Apply = std::function<absl::Status(
      const settings::DaemonOptions& options,
      const std::vector<bool>& functions,
      const std::vector<telemetry::ListedSetting>& list)>;

  // `alarms` outlives this object, but is stopped before its end.
  Reloader(StartSettings start, Apply apply, Alarms* alarms);

  // From now on checks the file every `interval`. Call it once.
  void Poll(absl::Duration interval);
  // Reloads on the alarms' thread, soon.
  void RequestReload();

  // FailedPrecondition: there is no file. Other errors say in one line why the
  // settings cannot be put in force.
  absl::StatusOr<ReloadResult> Reload();

  telemetry::ReloadFigures figures() const;
  // The settings in force.
  std::vector<telemetry::ListedSetting> settings() const;
  // The same as a file that can be read again.
  std::string yaml() const;

 private:
  // The file's text, or why it could not be read.
  using Content = absl::StatusOr<std::string>;
  void LookAtFile(absl::Duration interval);
  // The content once it does not change: at once if it was tried last, else
  // when two readings agree. The second one comes after `second_look`.
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
  // The content that was tried last.
  Content tried_ ABSL_GUARDED_BY(reloading_);
  // Warnings that have been logged.
  std::vector<std::string> warned_ ABSL_GUARDED_BY(reloading_);

  mutable Mutex mutex_ ABSL_ACQUIRED_AFTER(reloading_);
  ResolvedSettings running_ ABSL_GUARDED_BY(mutex_);
  telemetry::ReloadFigures figures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_RELOAD_H_
