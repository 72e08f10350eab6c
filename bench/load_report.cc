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
  if (calls == 0) return "null";
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

std::string ServerCpu(const LoadOptions& options, const LoadResult& result,
                      int64_t* sum) {
  std::vector<std::string> members;
  for (size_t i = 0; i < result.server_cpu_ns.size(); ++i) {
    *sum += result.server_cpu_ns[i];
    members.push_back(
        absl::StrCat("\"", options.server_pids[i],
                     "\": ", PerCall(result.server_cpu_ns[i], result.calls)));
  }
  return absl::StrCat("{", absl::StrJoin(members, ", "), "}");
}

}  // namespace

std::string LoadReport(const LoadOptions& options, const LoadResult& result) {
  const double seconds = absl::ToDoubleSeconds(result.window);
  int64_t server_cpu = 0;
  const std::string servers = ServerCpu(options, result, &server_cpu);
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
      ", \"server_cpu_us_per_call\": ", servers,
      ", \"servers_cpu_us_per_call\": ", PerCall(server_cpu, result.calls),
      ", \"client_cpu_us_per_call\": ",
      PerCall(result.client_cpu_ns, result.calls),
      ", \"reconnects\": ", result.reconnects,
      ", \"most_outstanding\": ", result.most_outstanding,
      ", \"latest_begin_us\": ",
      Micros(absl::ToInt64Nanoseconds(result.latest_begin)),
      ", \"latency_buckets_us\": ", Buckets(result.latency), "}");
}

}  // namespace fncache::bench
