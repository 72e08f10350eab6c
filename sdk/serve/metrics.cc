// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/metrics.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/grpc_status.h"

namespace fncache::sdk::serve {
namespace {

std::string Labels(size_t method) {
  return absl::StrCat(
      "grpc_method=\"RunFunction\",grpc_service=\"apiextensions.fn.proto.",
      MethodName(static_cast<Method>(method)),
      ".FunctionRunnerService\",grpc_type=\"unary\"");
}

void AppendHead(absl::string_view name, absl::string_view type,
                absl::string_view help, std::string* out) {
  absl::StrAppend(out, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type,
                  "\n");
}

}  // namespace

void Metrics::Started(Method method) {
  methods_[static_cast<size_t>(method)].started.fetch_add(
      1, std::memory_order_relaxed);
}

void Metrics::Handled(Method method, absl::StatusCode code,
                      absl::Duration duration) {
  OfMethod& one = methods_[static_cast<size_t>(method)];
  const auto number = static_cast<size_t>(code);
  one.handled[number < kCodes ? number : 2].fetch_add(
      1, std::memory_order_relaxed);
  size_t bound = 0;
  const double seconds = absl::ToDoubleSeconds(duration);
  while (bound < kBounds.size() && seconds > kBounds[bound]) ++bound;
  one.durations[bound].fetch_add(1, std::memory_order_relaxed);
  one.nanoseconds.fetch_add(absl::ToInt64Nanoseconds(duration),
                            std::memory_order_relaxed);
}

void Metrics::Composed(int held, int kept) {
  held_.store(held, std::memory_order_relaxed);
  kept_.fetch_add(static_cast<uint64_t>(kept), std::memory_order_relaxed);
}

std::string Metrics::Expose() const {
  std::string out;
  AppendHead("grpc_server_started_total", "counter",
             "Total number of RPCs started on the server.", &out);
  for (size_t i = 0; i < methods_.size(); ++i) {
    absl::StrAppend(&out, "grpc_server_started_total{", Labels(i), "} ",
                    methods_[i].started.load(), "\n");
  }
  AppendHead("grpc_server_handled_total", "counter",
             "Total number of RPCs completed on the server, regardless of "
             "success or failure.",
             &out);
  for (size_t i = 0; i < methods_.size(); ++i) {
    for (size_t code = 0; code < kCodes; ++code) {
      absl::StrAppend(&out, "grpc_server_handled_total{grpc_code=\"",
                      GoCodeName(static_cast<int>(code)), "\",", Labels(i),
                      "} ", methods_[i].handled[code].load(), "\n");
    }
  }
  constexpr char kSeconds[] = "grpc_server_handling_seconds";
  AppendHead(kSeconds, "histogram",
             "Histogram of response latency (seconds) of gRPC that had been "
             "application-level handled by the server.",
             &out);
  for (size_t i = 0; i < methods_.size(); ++i) {
    uint64_t count = 0;
    for (size_t bound = 0; bound <= kBounds.size(); ++bound) {
      count += methods_[i].durations[bound].load();
      absl::StrAppend(&out, kSeconds, "_bucket{", Labels(i), ",le=\"");
      if (bound < kBounds.size()) {
        absl::StrAppend(&out, kBounds[bound]);
      } else {
        absl::StrAppend(&out, "+Inf");
      }
      absl::StrAppend(&out, "\"} ", count, "\n");
    }
    absl::StrAppend(&out, kSeconds, "_sum{", Labels(i), "} ",
                    static_cast<double>(methods_[i].nanoseconds.load()) / 1e9,
                    "\n", kSeconds, "_count{", Labels(i), "} ", count, "\n");
  }
  AppendHead("fncache_function_held", "gauge",
             "Resources that the latest response left out, because they wait "
             "for values.",
             &out);
  absl::StrAppend(&out, "fncache_function_held ", held_.load(), "\n");
  AppendHead("fncache_function_kept_total", "counter",
             "Fields that got the value that their resource has already.",
             &out);
  absl::StrAppend(&out, "fncache_function_kept_total ", kept_.load(), "\n");
  return out;
}

}  // namespace fncache::sdk::serve
