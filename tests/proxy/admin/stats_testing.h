// SPDX-License-Identifier: Apache-2.0
// Example statistics of a daemon, for the tests that process them.
#ifndef FNCACHE_TESTS_PROXY_ADMIN_STATS_TESTING_H_
#define FNCACHE_TESTS_PROXY_ADMIN_STATS_TESTING_H_

#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proxy/admin/actions.h"

namespace fncache::proxy::admin {

template <typename Message>
Message Parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// Statistics of one function, a minute after the start.
inline v1::StatsResponse StatsOfAMinute() {
  return Parsed<v1::StatsResponse>(R"pb(
    version: "1.2.3"
    state: "ready"
    now { seconds: 1800000060 }
    uptime { seconds: 60 }
    process {
      cpu { seconds: 6 }
      resident_bytes: 104857600
      open_files: 21
      max_open_files: 1024
    }
    functions {
      name: "function-a"
      upstream: "dns:///a:9443"
      reachable: true
      calls_in_flight: 3
      flights: 2
      calls_by_outcome { name: "hit" count: 90 }
      calls_by_outcome { name: "miss" count: 10 }
      misses_by_reason { name: "new" count: 4 }
      misses_by_reason { name: "changed" count: 6 }
      bypasses_by_reason { name: "operation" count: 2 }
      bypasses_by_reason { name: "method" }
      hits: 90
      misses: 10
      fills: 9
      fills_dropped: 1
      function_time_saved { seconds: 45 }
      upstream_calls_by_code { name: "OK" count: 9 }
      upstream_calls_by_code { name: "UNAVAILABLE" count: 1 }
      upstream_errors: 1
      latency_by_outcome {
        outcome: "hit"
        latency {
          parts { number: 3 count: 89 nanoseconds: 1780000 }
          parts { number: 9 count: 1 nanoseconds: 900000 }
        }
      }
      upstream_latency {
        parts { number: 40 count: 8 nanoseconds: 80000000 }
        parts { number: 50 count: 2 nanoseconds: 1000000000 }
      }
    }
    tiers {
      tier: "memory"
      up: true
      entries: 1234
      bytes: 67108864
      capacity_bytes: 268435456
      removed { name: "expired" count: 30 }
      removed { name: "evicted" count: 60 }
      errors { name: "read" }
    }
    fills_dropped { name: "queue_full" count: 1 }
    inflight {
      reading_bytes: 1024
      running_bytes: 1024
      limit_bytes: 268435456
      refused: 5
    }
  )pb");
}

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_TESTS_PROXY_ADMIN_STATS_TESTING_H_
