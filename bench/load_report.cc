// SPDX-License-Identifier: Apache-2.0
#include "bench/load_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace fncache::bench {
namespace {

std::string Micros(int64_t nanoseconds) {
  return absl::StrFormat("%.3f", static_cast<double>(nanoseconds) / 1e3);
}

std::string PerCall(int64_t nanoseconds, uint64_t calls) {
  return absl::StrFormat("%.4f", static_cast<double>(nanoseconds) / 1e3 /
                                     static_cast<double>(calls));
}

std::string Latency(const LatencyHistogram& latency) {
  std::string json = "{";
  for (const auto& [name, fraction] :
       {std::pair<const char*, double>{"p50", 0.5},
        {"p90", 0.9},
        {"p99", 0.99},
        {"p99.9", 0.999}}) {
    absl::StrAppend(&json, "\"", name,
                    "\": ", Micros(latency.Quantile(fraction)), ", ");
  }
  absl::StrAppend(&json, "\"max\": ", Micros(latency.max()),
                  ", \"mean\": ", Micros(static_cast<int64_t>(latency.mean())),
                  "}");
  return json;
}

// [[upper end, count], ...].
std::string Buckets(const LatencyHistogram& latency) {
  return absl::StrCat("[",
                      absl::StrJoin(latency.Buckets(), ", ",
                                    [](std::string* to, const auto& bucket) {
                                      absl::StrAppend(to, "[",
                                                      Micros(bucket.first),
                                                      ", ", bucket.second, "]");
                                    }),
                      "]");
}

std::string CacheStatuses(const LoadResult& result) {
  std::vector<std::string> members;
  for (size_t i = 0; i < kCacheStatuses; ++i) {
    if (result.cache_statuses[i] == 0) continue;
    members.push_back(absl::StrCat("\"",
                                   CacheStatusName(static_cast<CacheStatus>(i)),
                                   "\": ", result.cache_statuses[i]));
  }
  return absl::StrCat("{", absl::StrJoin(members, ", "), "}");
}

// Members of the object, each with a comma behind it; none without calls.
std::string Cpu(const LoadOptions& options, const LoadResult& result) {
  if (result.calls == 0) return "";
  int64_t sum = 0;
  std::vector<std::string> members;
  for (size_t i = 0; i < result.server_cpu_ns.size(); ++i) {
    sum += result.server_cpu_ns[i];
    members.push_back(
        absl::StrCat("\"", options.server_pids[i],
                     "\": ", PerCall(result.server_cpu_ns[i], result.calls)));
  }
  return absl::StrCat(
      "\"server_cpu_us_per_call\": {", absl::StrJoin(members, ", "),
      "}, \"servers_cpu_us_per_call\": ", PerCall(sum, result.calls),
      ", \"client_cpu_us_per_call\": ",
      PerCall(result.client_cpu_ns, result.calls), ", ");
}

}  // namespace

std::string LoadReport(const LoadOptions& options, const LoadResult& result) {
  const double seconds = absl::ToDoubleSeconds(result.window);
  return absl::StrCat(
      "{\"calls\": ", result.calls, ", \"errors\": ", result.errors,
      ", \"begun\": ", result.begun,
      ", \"seconds\": ", absl::StrFormat("%.6f", seconds), ", \"rate\": ",
      absl::StrFormat("%.2f", seconds > 0
                                  ? static_cast<double>(result.calls) / seconds
                                  : 0),
      ", \"bytes_received\": ", result.bytes_received,
      ", \"bytes_sent\": ", result.bytes_sent,
      ", \"latency_us\": ", Latency(result.latency),
      ", \"cache_status\": ", CacheStatuses(result),
      ", \"stored\": ", result.stored, ", \"collapsed\": ", result.collapsed,
      ", ", Cpu(options, result), "\"reconnects\": ", result.reconnects,
      ", \"most_outstanding\": ", result.most_outstanding,
      ", \"latest_begin_us\": ",
      Micros(absl::ToInt64Nanoseconds(result.latest_begin)),
      ", \"latency_buckets_us\": ", Buckets(result.latency), "}");
}

}  // namespace fncache::bench
