// SPDX-License-Identifier: Apache-2.0
// Registry: the metrics of a process, by name and labels, and their text.
//
// Set up at start: each Add gives a handle that hot paths keep and count with
// (counter.h, histogram.h), or takes a function that is asked at each scrape.
// Scraping sums what the threads counted; it never stops them.
//
//   Registry registry;
//   Counter hits = registry.AddCounter(kHits, {"function-x"});
//   hits.Add();
//   std::string text = registry.Expose();
//
// Thread-safe. Handles must not be used after the registry is gone.
#ifndef FNCACHE_METRICS_REGISTRY_H_
#define FNCACHE_METRICS_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "metrics/counter.h"
#include "metrics/histogram.h"

namespace fncache::metrics {

enum class Type { kCounter, kGauge, kHistogram };

// "counter", "gauge", "histogram".
const char* TypeName(Type type);

// When a scrape gets a counter's series. Prometheus' rate and increase do not
// see the first step of a series that appears with a value, so a counter that
// an alert reads is there from the start.
enum class Exposed { kFromTheStart, kOnceCounted };

// A Family is what all series of one name have in common. It must outlive the
// registry.
struct Family {
  std::string name;
  Type type;
  std::vector<std::string> labels;
  std::string help;
};

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // `values` are those of the family's labels, in its order. Each combination
  // is added once. A family's series come out in the order in which they were
  // added, families in the order of their first series.
  using Values = std::vector<std::string>;

  // A scrape gets the count times `unit`: 1e-9 for nanoseconds of a metric
  // in seconds.
  Counter AddCounter(const Family& family, const Values& values,
                     double unit = 1, Exposed exposed = Exposed::kFromTheStart);
  UpDown AddUpDown(const Family& family, const Values& values);
  // A scrape gets its series once something was observed.
  Histogram AddHistogram(const Family& family, const Values& values,
                         const Buckets& buckets);
  // A gauge or counter read by calling `read`, on the scraping thread. A scrape
  // gets no series while the value is NaN.
  // Precondition: `read` can be called until the registry is gone.
  void AddCallback(const Family& family, const Values& values,
                   std::function<double()> read);

  // The text exposition format, version 0.0.4.
  std::string Expose() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::metrics

#endif  // FNCACHE_METRICS_REGISTRY_H_
