// SPDX-License-Identifier: Apache-2.0
#include "metrics/registry.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/log.h"
#include "common/mutex.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace fncache::metrics {
namespace {

// One combination of label values.
struct Series {
  std::vector<prometheus::ClientMetric::Label> labels;
  // A scrape reads the first of these two that is set, else the cells.
  std::function<double()> callback;
  Histogram histogram;
  // Cells behind it, to be given back: none for a callback.
  uint32_t first = 0;
  uint32_t cells = 0;
  double unit = 1;
  bool is_signed = false;
  Exposed exposed = Exposed::kFromTheStart;
};

struct FamilySeries {
  const Family* family;
  std::vector<Series> series;
};

prometheus::MetricType ToPrometheus(Type type) {
  switch (type) {
    case Type::kCounter:
      return prometheus::MetricType::Counter;
    case Type::kGauge:
      return prometheus::MetricType::Gauge;
    case Type::kHistogram:
      break;
  }
  return prometheus::MetricType::Histogram;
}

double ReadValue(const Series& series) {
  if (series.callback) return series.callback();
  const uint64_t sum = internal::CellSum(series.first);
  if (series.is_signed) return static_cast<double>(static_cast<int64_t>(sum));
  return static_cast<double>(sum) * series.unit;
}

prometheus::ClientMetric::Histogram ReadHistogram(const Histogram& histogram) {
  const Distribution read = histogram.Read();
  const absl::Span<const uint64_t> bounds = read.buckets->bounds();
  const std::vector<uint64_t> counts = read.BucketCounts();
  prometheus::ClientMetric::Histogram out;
  out.sample_sum = absl::ToDoubleSeconds(read.Sum());
  out.sample_count = read.Count();
  uint64_t cumulative = 0;
  size_t next = 0;
  // The serializer adds the bucket of +Inf.
  for (const size_t i : read.buckets->exposed()) {
    while (next <= i) cumulative += counts[next++];
    prometheus::ClientMetric::Bucket bucket;
    bucket.cumulative_count = cumulative;
    bucket.upper_bound = static_cast<double>(bounds[i]) / 1e9;
    out.bucket.push_back(bucket);
  }
  return out;
}

// Nothing where the series is not exposed yet.
absl::optional<prometheus::ClientMetric> ReadSeries(Type type,
                                                    const Series& series) {
  prometheus::ClientMetric metric;
  metric.label = series.labels;
  switch (type) {
    case Type::kCounter:
      metric.counter.value = ReadValue(series);
      if (std::isnan(metric.counter.value)) return absl::nullopt;
      if (series.exposed == Exposed::kOnceCounted &&
          metric.counter.value == 0) {
        return absl::nullopt;
      }
      break;
    case Type::kGauge:
      metric.gauge.value = ReadValue(series);
      if (std::isnan(metric.gauge.value)) return absl::nullopt;
      break;
    case Type::kHistogram:
      metric.histogram = ReadHistogram(series.histogram);
      if (metric.histogram.sample_count == 0) return absl::nullopt;
      break;
  }
  return metric;
}

}  // namespace

const char* TypeName(Type type) {
  switch (type) {
    case Type::kCounter:
      return "counter";
    case Type::kGauge:
      return "gauge";
    case Type::kHistogram:
      break;
  }
  return "histogram";
}

class Registry::Impl {
 public:
  ~Impl() {
    MutexLock lock(&mutex_);
    for (const FamilySeries& family : families_) {
      for (const Series& series : family.series) {
        if (series.cells != 0) {
          internal::FreeCells(series.first, series.cells);
        }
      }
    }
  }

  void Add(const Family& family, const Values& values, Series series) {
    if (values.size() != family.labels.size()) {
      Log(LogLevel::kError, "a metric was given the wrong number of labels",
          {{"metric", family.name}});
      std::abort();
    }
    for (size_t i = 0; i < values.size(); ++i) {
      series.labels.push_back({family.labels[i], values[i]});
    }
    MutexLock lock(&mutex_);
    const auto [index, is_new] =
        indices_.try_emplace(family.name, families_.size());
    if (is_new) families_.push_back({&family, {}});
    families_[index->second].series.push_back(std::move(series));
  }

  std::vector<prometheus::MetricFamily> Collect() const {
    MutexLock lock(&mutex_);
    std::vector<prometheus::MetricFamily> out;
    out.reserve(families_.size());
    for (const FamilySeries& family : families_) {
      prometheus::MetricFamily collected;
      collected.name = family.family->name;
      collected.help = family.family->help;
      collected.type = ToPrometheus(family.family->type);
      collected.metric.reserve(family.series.size());
      for (const Series& series : family.series) {
        auto metric = ReadSeries(family.family->type, series);
        if (metric.has_value()) collected.metric.push_back(*std::move(metric));
      }
      out.push_back(std::move(collected));
    }
    return out;
  }

 private:
  mutable Mutex mutex_;
  std::vector<FamilySeries> families_ ABSL_GUARDED_BY(mutex_);
  // Where in families_ a name is.
  absl::flat_hash_map<std::string, size_t> indices_ ABSL_GUARDED_BY(mutex_);
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter Registry::AddCounter(const Family& family, const Values& values,
                             double unit, Exposed exposed) {
  Series series;
  series.cells = 1;
  series.first = internal::ReserveCells(series.cells);
  series.unit = unit;
  series.exposed = exposed;
  const Counter handle(series.first);
  impl_->Add(family, values, std::move(series));
  return handle;
}

UpDown Registry::AddUpDown(const Family& family, const Values& values) {
  Series series;
  series.cells = 1;
  series.first = internal::ReserveCells(series.cells);
  series.is_signed = true;
  const UpDown handle(series.first);
  impl_->Add(family, values, std::move(series));
  return handle;
}

Histogram Registry::AddHistogram(const Family& family, const Values& values,
                                 const Buckets& buckets) {
  Series series;
  series.cells = Histogram::CellsFor(buckets);
  series.first = internal::ReserveCells(series.cells);
  series.histogram = Histogram(series.first, &buckets);
  const Histogram handle = series.histogram;
  impl_->Add(family, values, std::move(series));
  return handle;
}

void Registry::AddCallback(const Family& family, const Values& values,
                           std::function<double()> read) {
  Series series;
  series.callback = std::move(read);
  impl_->Add(family, values, std::move(series));
}

std::string Registry::Expose() const {
  return prometheus::TextSerializer().Serialize(impl_->Collect());
}

}  // namespace fncache::metrics
