// SPDX-License-Identifier: Apache-2.0
// The JSON form of LoadResults: docs/load-results.schema.json. One list of each
// object's members serves writing and reading, so that they cannot differ.
// Members that came after the first form are Later: earlier files lack them.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/utf8.h"
#include "nlohmann/json.hpp"
#include "runner/load/results.h"

namespace fncache::runner::load {
namespace {

using Json = nlohmann::ordered_json;

template <typename Archive>
void Members(LatencySummary& latency, Archive& a) {
  a("mean", latency.mean);
  a("min", latency.min);
  a("p50", latency.p50);
  a("p90", latency.p90);
  a("p95", latency.p95);
  a("p99", latency.p99);
  a("p999", latency.p999);
  a("max", latency.max);
  a("buckets", latency.buckets);
}

template <typename Archive>
void Members(CallResults& calls, Archive& a) {
  a("step", calls.step);
  a("function", calls.function);
  a("outcome", calls.outcome);
  a("count", calls.count);
  a("errors", calls.errors);
  a.Later("unreached", calls.unreached);
  a("rate", calls.rate);
  a("latency", calls.latency);
}

template <typename Archive>
void Members(ErrorResults& error, Archive& a) {
  a("message", error.message);
  a("count", error.count);
  a("example", error.example);
}

template <typename Archive>
void Members(ThresholdResults& threshold, Archive& a) {
  a("expression", threshold.expression);
  a("value", threshold.value);
  a("ok", threshold.ok);
}

template <typename Archive>
void Members(DaemonCounts& daemon, Archive& a) {
  a("outcomes", daemon.outcomes);
  a("agrees", daemon.agrees);
  a("disagreement", daemon.disagreement);
}

template <typename Archive>
void Members(UnreachedResults& unreached, Archive& a) {
  a("function", unreached.function);
  a("target", unreached.target);
  a("why", unreached.why);
}

template <typename Archive>
void Members(VerdictResults& verdict, Archive& a) {
  a("shortest", verdict.shortest);
  a("longest", verdict.longest);
  a("needed", verdict.needed);
  a.Later("measured", verdict.measured);
  a("churn", verdict.churn);
  a("workers", verdict.workers);
  a("busy", verdict.busy);
  a.Later("created", verdict.created);
  a("created_ready", verdict.created_ready);
  a("ready_p50", verdict.ready_p50);
  a("ready_p95", verdict.ready_p95);
}

template <typename Archive>
void Members(TimelinePoint& point, Archive& a) {
  a("at", point.at);
  a("seconds", point.seconds);
  a("pipelines", point.pipelines);
  a("errors", point.errors);
  a("late", point.late);
  a("dropped", point.dropped);
  a("calls", point.calls);
  a("hits", point.hits);
  a("misses", point.misses);
  a("stale", point.stale);
  a("collapsed", point.collapsed);
  a("p50", point.p50);
  a("p90", point.p90);
  a("p99", point.p99);
  a("max", point.max);
  a("hit_p99", point.hit_p99);
  a("miss_p99", point.miss_p99);
  a("ready", point.ready);
  a("in_flight", point.in_flight);
}

template <typename Archive>
void Members(decltype(LoadResults::settle)& settle, Archive& a) {
  a("pipelines", settle.pipelines);
  a("calls", settle.calls);
  a("seconds", settle.seconds);
  a.Later("ready", settle.ready);
  a.Later("failure", settle.failure);
  a.Later("never", settle.never);
  a.Later("changing", settle.changing);
}

template <typename Archive>
void Members(decltype(LoadResults::pipelines)& pipelines, Archive& a) {
  a("count", pipelines.count);
  a("rate", pipelines.rate);
  a("errors", pipelines.errors);
  a("late", pipelines.late);
  a("dropped", pipelines.dropped);
  a("latency", pipelines.latency);
  a("service_time", pipelines.service_time);
}

template <typename Archive>
void Members(decltype(LoadResults::composites)& composites, Archive& a) {
  a("count", composites.count);
  a("ready", composites.ready);
  a("requeues", composites.requeues);
  a("breaker_openings", composites.breaker_openings);
  a("events_dropped", composites.events_dropped);
  a.Later("lost_ready", composites.lost_ready);
  a.Later("unmarked", composites.unmarked);
  a.Later("deleted", composites.deleted);
}

template <typename Archive>
void Members(decltype(LoadResults::generator)& generator, Archive& a) {
  a("lag_p99", generator.lag_p99);
  a.Later("wait_p99", generator.wait_p99);
  a.Later("wait_fraction", generator.wait_fraction);
  a("cpu", generator.cpu);
  a("saturated", generator.saturated);
  a("why", generator.why);
}

// But for the version.
template <typename Archive>
void Members(LoadResults& results, Archive& a) {
  a("tool_version", results.tool_version);
  a("started", results.started);
  a("settings", results.settings);
  a("machine", results.machine);
  a("duration", results.duration);
  a("interrupted", results.interrupted);
  a("settle", results.settle);
  a("pipelines", results.pipelines);
  a("calls", results.calls);
  a("hit_rate", results.hit_rate);
  a("function_runs", results.function_runs);
  a("function_seconds", results.function_seconds);
  a("composites", results.composites);
  a("errors", results.errors);
  a("thresholds", results.thresholds);
  a("generator", results.generator);
  a.Later("unreached", results.unreached);
  a.Later("verdict", results.verdict);
  a("daemon", results.daemon);
  a("timeline", results.timeline);
}

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, T& value) {
    json[name] = Of(value);
  }
  template <typename T>
  void Later(const char* name, T& value) {
    (*this)(name, value);
  }
  Json json = Json::object();

 private:
  // JSON knows no infinities; a number that is none is said as zero.
  static Json Of(double value) { return std::isfinite(value) ? value : 0.0; }
  static Json Of(uint64_t value) { return value; }
  static Json Of(bool value) { return value; }
  static Json Of(const std::string& value) { return WellFormedUtf8(value); }
  template <typename T>
  static Json Of(absl::optional<T>& value) {
    return value.has_value() ? Of(*value) : Json(nullptr);
  }
  template <typename T>
  static Json Of(std::map<std::string, T>& value) {
    Json json = Json::object();
    for (auto& [key, one] : value) json[WellFormedUtf8(key)] = Of(one);
    return json;
  }
  template <typename T>
  static Json Of(std::vector<T>& value) {
    Json json = Json::array();
    for (T& one : value) json.push_back(Of(one));
    return json;
  }
  static Json Of(std::pair<double, uint64_t>& bucket) {
    return Json::array({Of(bucket.first), bucket.second});
  }
  template <typename T, typename = decltype(Members(std::declval<T&>(),
                                                    std::declval<Writer&>()))>
  static Json Of(T& value) {
    Writer writer;
    Members(value, writer);
    return std::move(writer.json);
  }
};

// Remembers the first member that is not as it should be. Members that it does
// not know are not looked at.
class Reader {
 public:
  Reader(const Json& json, std::string where, absl::Status* status)
      : json_(json), where_(std::move(where)), status_(status) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    const std::string at =
        where_.empty() ? name : absl::StrCat(where_, ".", name);
    const auto found = json_.find(name);
    if (found == json_.end()) return Wrong(at, "that it is there");
    Get(*found, at, &value);
  }
  template <typename T>
  void Later(const char* name, T& value) {
    if (json_.contains(name)) (*this)(name, value);
  }

 private:
  void Wrong(const std::string& at, const char* accepted) {
    if (!status_->ok()) return;
    *status_ = absl::InvalidArgumentError(
        absl::StrCat("not results of fncache load: ", at,
                     " is not accepted; accepted: ", accepted));
  }
  void Get(const Json& json, const std::string& at, double* value) {
    if (!json.is_number()) return Wrong(at, "a number");
    *value = json.get<double>();
  }
  void Get(const Json& json, const std::string& at, uint64_t* value) {
    if (!json.is_number_unsigned()) return Wrong(at, "a count");
    *value = json.get<uint64_t>();
  }
  void Get(const Json& json, const std::string& at, bool* value) {
    if (!json.is_boolean()) return Wrong(at, "true or false");
    *value = json.get<bool>();
  }
  void Get(const Json& json, const std::string& at, std::string* value) {
    if (!json.is_string()) return Wrong(at, "a text");
    *value = json.get<std::string>();
  }
  template <typename T>
  void Get(const Json& json, const std::string& at, absl::optional<T>* value) {
    if (json.is_null()) return;
    value->emplace();
    Get(json, at, &**value);
  }
  template <typename T>
  void Get(const Json& json, const std::string& at,
           std::map<std::string, T>* value) {
    if (!json.is_object()) return Wrong(at, "an object");
    for (const auto& [key, one] : json.items()) {
      Get(one, absl::StrCat(at, ".", key), &(*value)[key]);
    }
  }
  template <typename T>
  void Get(const Json& json, const std::string& at, std::vector<T>* value) {
    if (!json.is_array()) return Wrong(at, "a list");
    for (const Json& one : json) {
      value->emplace_back();
      Get(one, absl::StrCat(at, "[", value->size() - 1, "]"), &value->back());
    }
  }
  void Get(const Json& json, const std::string& at,
           std::pair<double, uint64_t>* bucket) {
    if (!json.is_array() || json.size() != 2) {
      return Wrong(at, "[seconds, count]");
    }
    Get(json[0], at, &bucket->first);
    Get(json[1], at, &bucket->second);
  }
  template <typename T, typename = decltype(Members(std::declval<T&>(),
                                                    std::declval<Reader&>()))>
  void Get(const Json& json, const std::string& at, T* value) {
    if (!json.is_object()) return Wrong(at, "an object");
    Reader reader(json, at, status_);
    Members(*value, reader);
  }

  const Json& json_;
  const std::string where_;
  absl::Status* const status_;
};

}  // namespace

std::string ResultsToJson(const LoadResults& results) {
  LoadResults copy = results;  // Members are written from what may be read too
  Writer writer;
  writer.json["version"] = results.version;
  Members(copy, writer);
  return writer.json.dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<LoadResults> ResultsFromJson(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        "not results of fncache load: it is no JSON object");
  }
  absl::Status status;
  LoadResults results;
  Reader reader(json, "", &status);
  uint64_t version = 0;
  reader("version", version);
  if (!status.ok()) return status;
  if (version != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("version: ", version,
                     " is not accepted; accepted: 1 (a later fncache wrote "
                     "it?)"));
  }
  Members(results, reader);
  if (!status.ok()) return status;
  return results;
}

}  // namespace fncache::runner::load
