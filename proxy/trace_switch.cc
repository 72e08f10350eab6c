// SPDX-License-Identifier: Apache-2.0
#include "proxy/trace_switch.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log.h"
#include "insight/trace/ring.h"
#include "proxy/settings/trace_directory.h"

namespace fncache::proxy {
namespace {

using insight::trace::Level;
using insight::trace::TraceStats;

insight::trace::TraceOptions OptionsOf(
    const TraceSettings& wanted,
    const std::vector<telemetry::ListedSetting>& settings) {
  insight::trace::TraceOptions options;
  options.dir = wanted.dir;
  options.level = wanted.level;
  options.file_size = wanted.file_size;
  options.files = wanted.files;
  options.sample = wanted.sample;
  options.writer = "serve";
  // With this limit and the trace's other costs, a trace adds at most a quarter
  // to a miss. A trace with messages has no limit: its reader wants all of
  // them.
  if (options.level == Level::kPaths) {
    options.read_limits = {/*of_process=*/0.1, /*of_core=*/0.05};
  }
  options.on_unread = [] {
    Log(LogLevel::kWarning,
        "the trace leaves the paths of some composites out: reading all "
        "requests takes more CPU than it may",
        {{"metric", "fncache_trace_read_share"}});
  };
  // Logs one line for each failure and one for its end, for any number of
  // records.
  options.on_failure = [](absl::string_view why) {
    if (why.empty()) {
      Log(LogLevel::kInfo, "the trace can be written");
    } else {
      Log(LogLevel::kWarning, "the trace cannot be written: calls go untraced",
          {{"why", why}});
    }
  };
  for (const telemetry::ListedSetting& setting : settings) {
    if (!setting.set) continue;
    const std::string where =
        setting.function.empty()
            ? ""
            : absl::StrCat("functions.", setting.function, ".");
    options.settings[where + setting.key] = absl::StrJoin(setting.values, ",");
  }
  return options;
}

bool SameDirectory(const std::string& a, const std::string& b) {
  if (a == b) return true;
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

void AddTo(const TraceStats& stats, TraceStats* sum) {
  sum->written += stats.written;
  sum->dropped_queue += stats.dropped_queue;
  sum->dropped_disk += stats.dropped_disk;
  sum->sampled_out += stats.sampled_out;
  sum->bytes += stats.bytes;
}

}  // namespace

bool TraceSettings::operator==(const TraceSettings& other) const {
  return dir == other.dir && level == other.level &&
         file_size == other.file_size && files == other.files &&
         sample == other.sample;
}

TraceSettings TraceSettingsOf(const settings::DaemonOptions& options) {
  return {options.trace_dir, options.trace_level, options.trace_file_size,
          options.trace_files, options.trace_sample};
}

TraceSwitch::~TraceSwitch() { End(shared_.Replace(nullptr)); }

void TraceSwitch::End(const std::shared_ptr<Writer>& writer) {
  if (writer == nullptr) return;
  writer->Close();
  MutexLock lock(&mutex_);
  last_ = writer->Stats();
  AddTo(last_, &ended_);
}

absl::Status TraceSwitch::CheckDirectory(const std::string& dir) const {
  if (!cache_dir_.has_value() || !settings::IsOfTheCache(dir, *cache_dir_)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("trace.dir: ", settings::OfTheCacheText(dir, *cache_dir_)));
}

absl::Status TraceSwitch::Begin(
    const TraceSettings& wanted,
    const std::vector<telemetry::ListedSetting>& settings) {
  absl::Status checked = CheckDirectory(wanted.dir);
  if (!checked.ok()) return checked;
  auto writer = Writer::Create(OptionsOf(wanted, settings));
  if (!writer.ok()) {
    return absl::Status(writer.status().code(),
                        absl::StrCat("trace.dir: ", writer.status().message()));
  }
  End(shared_.Replace(*std::move(writer)));
  current_ = wanted;
  if (!std::exchange(watched_, true)) {
    instruments_.WatchTrace([this] { return Stats(); });
  }
  if (wanted.level == Level::kFull) {
    Log(LogLevel::kWarning,
        "trace.level: full writes requests and answers down, without secrets",
        {{"dir", wanted.dir}});
  }
  return absl::OkStatus();
}

absl::Status TraceSwitch::Check(const TraceSettings& wanted) const {
  // The directory of the trace in progress has been checked.
  if (wanted.dir.empty() ||
      (!current_.dir.empty() && SameDirectory(wanted.dir, current_.dir))) {
    return absl::OkStatus();
  }
  absl::Status checked = CheckDirectory(wanted.dir);
  if (!checked.ok()) return checked;
  const auto ring = insight::trace::TraceRing::Open(wanted.dir, wanted.files);
  if (!ring.ok()) {
    return absl::Status(ring.status().code(),
                        absl::StrCat("trace.dir: ", ring.status().message()));
  }
  if (access(wanted.dir.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("trace.dir: ", wanted.dir, ": ", std::strerror(errno)));
}

absl::Status TraceSwitch::Change(
    const TraceSettings& wanted,
    const std::vector<telemetry::ListedSetting>& settings) {
  // Without a trace, its other settings do not matter.
  if (wanted == current_ || (wanted.dir.empty() && current_.dir.empty())) {
    current_ = wanted;
    return absl::OkStatus();
  }
  if (wanted.dir.empty()) {
    End(shared_.Replace(nullptr));
    current_ = wanted;
    return absl::OkStatus();
  }
  if (current_.dir.empty() || !SameDirectory(wanted.dir, current_.dir)) {
    return Begin(wanted, settings);
  }
  // A directory has one writer at a time.
  End(shared_.Replace(nullptr));
  const absl::Status begun = Begin(wanted, settings);
  if (begun.ok()) return begun;
  const absl::Status again = Begin(current_, settings);
  if (!again.ok()) {
    current_ = {};
    Log(LogLevel::kError, "the trace has ended", {{"why", again.message()}});
  }
  return begun;
}

TraceStats TraceSwitch::LastStats() const {
  MutexLock lock(&mutex_);
  return last_;
}

TraceStats TraceSwitch::Stats() const {
  TraceStats sum;
  {
    MutexLock lock(&mutex_);
    sum = ended_;
  }
  // The next reading counts a writer that ends meanwhile.
  const std::shared_ptr<Writer> writer = shared_.Newest();
  if (writer == nullptr) return sum;
  const TraceStats now = writer->Stats();
  AddTo(now, &sum);
  sum.read_share = now.read_share;
  sum.up = now.up;
  sum.error = now.error;
  return sum;
}

}  // namespace fncache::proxy
