// SPDX-License-Identifier: Apache-2.0
// TLS contexts of our own connections, with what all have in common
// (common/tls_contexts.h): HTTP/2 by ALPN, TLS 1.2 or newer, non-blocking use.
//
// Thread-safe.
#ifndef FNCACHE_COMMON_TLS_CONTEXT_H_
#define FNCACHE_COMMON_TLS_CONTEXT_H_

#include <openssl/ssl.h>

#include <string>

#include "absl/status/statusor.h"
#include "common/openssl_owned.h"
#include "common/tls_files.h"
#include "common/tls_side.h"

namespace fncache {

// For one side, with the files that were read for it. A server asks callers for
// a certificate where there is a ca.crt. InvalidArgument says what does not
// fit.
absl::StatusOr<Owned<SSL_CTX>> MakeTlsContext(const TlsFiles& files,
                                              TlsSide side);

bool IsIpAddress(const std::string& host);

// After a client's handshake: the peer's certificate is for this name.
bool IsPeerNamed(SSL* ssl, const std::string& name);

// Empty where it is, else what is wrong, which is reported, too
// (common/handshake_failure.h). `setting`: the one that says the name, for that
// report; empty if there is none.
std::string CheckPeerName(SSL* ssl, const std::string& name,
                          const std::string& setting);

}  // namespace fncache

#endif  // FNCACHE_COMMON_TLS_CONTEXT_H_
