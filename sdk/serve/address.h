// SPDX-License-Identifier: Apache-2.0
// Addresses that a function listens on: HOST:PORT or unix:PATH.
//
// Thread-safe.
#ifndef FNCACHE_SDK_SERVE_ADDRESS_H_
#define FNCACHE_SDK_SERVE_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fncache::sdk::serve {

// Why the text is no address; empty if it is one.
std::string WhyNoAddress(const std::string& address);
// The same for metrics. The empty one is none.
std::string WhyNoMetricsAddress(const std::string& address);

// Unavailable if another process listens on this unix:PATH. gRPC would remove
// the socket and listen there itself.
absl::Status CheckFree(const std::string& address);

// The status for an address that gRPC could not listen on.
absl::Status CannotListen(const std::string& address);

// The address with the port that was taken; unix:PATH as it is.
std::string WithPort(const std::string& address, int port);

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_ADDRESS_H_
