// SPDX-License-Identifier: Apache-2.0
// FlightKey: what makes two requests of a function equal.
#ifndef FNCACHE_PROXY_SERVING_FLIGHT_KEY_H_
#define FNCACHE_PROXY_SERVING_FLIGHT_KEY_H_

#include <utility>

#include "cache/key/key.h"

namespace fncache::proxy::serving {

// Callers join a flight if their requests are equal: the key is, and the drift.
struct FlightKey {
  FlightKey(const cache::key::Key& key,  // NOLINT(google-explicit-constructor)
            const cache::key::Key& drift = {})
      : key(key), drift(drift) {}

  cache::key::Key key;
  cache::key::Key drift;  // the drift digest; zero without tuning

  friend bool operator==(const FlightKey& a, const FlightKey& b) {
    return a.key == b.key && a.drift == b.drift;
  }
  template <typename H>
  friend H AbslHashValue(H state, const FlightKey& key) {
    return H::combine(std::move(state), key.key, key.drift);
  }
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_FLIGHT_KEY_H_
