// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "proxy/telemetry/catalogue.h"

namespace fncache::proxy::telemetry {
namespace {

std::string ReadFile(const char* path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The time at which the machine started; /proc/self/stat counts from there.
absl::Time BootTime() {
  for (const absl::string_view line :
       absl::StrSplit(ReadFile("/proc/stat"), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    int64_t seconds;
    if (words.size() == 2 && words[0] == "btime" &&
        absl::SimpleAtoi(words[1], &seconds)) {
      return absl::FromUnixSeconds(seconds);
    }
  }
  return absl::UnixEpoch();
}

uint64_t CountOpenFds() {
  DIR* const dir = opendir("/proc/self/fd");
  if (dir == nullptr) return 0;
  uint64_t count = 0;
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(dir);
  return count == 0 ? 0 : count - 1;  // the one of the directory itself
}

// Fields of /proc/self/stat, numbered as proc(5) does, from the third.
void ReadStat(ProcessFigures* figures) {
  const std::string stat = ReadFile("/proc/self/stat");
  // The second field is the program's name in parentheses. The name itself may
  // have parentheses.
  const size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos) return;
  const std::vector<absl::string_view> fields = absl::StrSplit(
      absl::string_view(stat).substr(end_of_name + 1), ' ', absl::SkipEmpty());
  const auto field = [&](size_t number) {
    uint64_t value = 0;
    if (number - 3 < fields.size()) {
      (void)absl::SimpleAtoi(fields[number - 3], &value);
    }
    return value;
  };
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  figures->cpu = absl::Seconds((field(14) + field(15)) / ticks);
  figures->started = BootTime() + absl::Seconds(field(22) / ticks);
  figures->virtual_bytes = field(23);
  figures->resident_bytes = field(24) * sysconf(_SC_PAGESIZE);
}

}  // namespace

ProcessFigures ReadProcess() {
  ProcessFigures figures;
  ReadStat(&figures);
  figures.open_fds = CountOpenFds();
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) figures.max_fds = limit.rlim_cur;
  return figures;
}

void RegisterProcessMetrics(metrics::Registry* registry) {
  const absl::Time started = ReadProcess().started;
  registry->AddCallback(Metric("process_start_time_seconds"), {}, [started] {
    return absl::ToDoubleSeconds(started - absl::UnixEpoch());
  });
  registry->AddCallback(Metric("process_cpu_seconds_total"), {}, [] {
    return absl::ToDoubleSeconds(ReadProcess().cpu);
  });
  registry->AddCallback(Metric("process_resident_memory_bytes"), {}, [] {
    return static_cast<double>(ReadProcess().resident_bytes);
  });
  registry->AddCallback(Metric("process_virtual_memory_bytes"), {}, [] {
    return static_cast<double>(ReadProcess().virtual_bytes);
  });
  registry->AddCallback(Metric("process_open_fds"), {}, [] {
    return static_cast<double>(ReadProcess().open_fds);
  });
  registry->AddCallback(Metric("process_max_fds"), {}, [] {
    return static_cast<double>(ReadProcess().max_fds);
  });
}

}  // namespace fncache::proxy::telemetry
