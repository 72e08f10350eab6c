// SPDX-License-Identifier: Apache-2.0
// The credentials with which functions are called over TLS.
//
// The handshake checks the function's certificate (common/tls_contexts.h). This
// class checks its name, as gRPC does, and failures are reported
// (common/handshake_failure.h).
//
// Thread-safe.
#ifndef FNCACHE_RUNNER_CLIENT_FUNCTION_CREDENTIALS_H_
#define FNCACHE_RUNNER_CLIENT_FUNCTION_CREDENTIALS_H_

#include <memory>
#include <string>

#include "common/tls_files.h"
#include "grpcpp/security/credentials.h"

namespace fncache::runner::client {

// With the certificates of `files`, read for TlsSide::kClient. The authority of
// each call passes unchecked. `name_setting`: the setting with the name that a
// function's certificate must have, for the report of a mismatch; empty if
// there is none.
std::shared_ptr<grpc::ChannelCredentials> FunctionCredentials(
    const TlsFiles& files, std::string name_setting);

}  // namespace fncache::runner::client

#endif  // FNCACHE_RUNNER_CLIENT_FUNCTION_CREDENTIALS_H_
