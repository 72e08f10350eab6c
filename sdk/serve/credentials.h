// SPDX-License-Identifier: Apache-2.0
// The TLS credentials of a server, from a folder of certificates as Crossplane
// mounts them. Replaced files apply to connections that come later.
//
// gRPC asks for the files at each handshake; they are read again at most every
// kReadAgain. Callers' certificates are checked as common/peer_certificate.h
// says, in the contexts of these credentials only.
#ifndef FNCACHE_SDK_SERVE_CREDENTIALS_H_
#define FNCACHE_SDK_SERVE_CREDENTIALS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"

namespace fncache::sdk::serve {

inline constexpr absl::Duration kReadAgain = absl::Seconds(5);

// The credentials must outlive the server. Errors name the file.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsCredentials(
    const std::string& dir, absl::Duration read_again = kReadAgain);

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_CREDENTIALS_H_
