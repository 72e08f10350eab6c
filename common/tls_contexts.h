// SPDX-License-Identifier: Apache-2.0
// Gives every TLS context of this process, whoever makes it, what all have in
// common: our check of peers' certificates (common/peer_certificate.h), no
// session resumption, and reports of handshakes that failed
// (common/handshake_failure.h).
//
// gRPC makes its SSL_CTX itself and lends them to nobody. So this asks OpenSSL,
// through its extra data of contexts (CRYPTO_get_ex_new_index(3)), to be told
// of each that is made. A context that was missed, made before
// SetUpTlsContexts, would check certificates as OpenSSL does, and refuse too
// much, never too little; but it would resume sessions.
//
// A resumed session is not checked again, though its certificate may have ended
// or its authority been replaced; so none is resumed, and no ticket is given.
//
// A library that has a verification of its own to offer, such as libcurl, gets
// its contexts back with LeaveToItsLibrary.
//
// Thread-safe.
#ifndef FNCACHE_COMMON_TLS_CONTEXTS_H_
#define FNCACHE_COMMON_TLS_CONTEXTS_H_

#include <openssl/types.h>

#include <string>

namespace fncache {

// From now on, for the rest of the process. Call it before credentials or
// contexts are made; again does nothing. Aborts where OpenSSL has no room for
// its extra data.
void SetUpTlsContexts();

// For a context of another library's that is no runner's or function's: peers'
// certificates are checked as OpenSSL does, and failures are not reported.
// Call it before the context is used. Harmless without SetUpTlsContexts.
void LeaveToItsLibrary(SSL_CTX* context);

// Why the handshake of this connection failed, in words; empty if that was not
// reported.
std::string HandshakeWords(const SSL* ssl);

}  // namespace fncache

#endif  // FNCACHE_COMMON_TLS_CONTEXTS_H_
