// SPDX-License-Identifier: Apache-2.0
// Configures TLS contexts of this process, whichever code makes them: our check
// of peers' certificates (common/peer_certificate.h), no session resumption,
// and reports of handshakes that failed (common/handshake_failure.h). A daemon
// does this for every context, and a library in another program's process for
// its own ones only.
//
// gRPC makes its SSL_CTX itself and gives no access to it. So this registers
// extra data of contexts with OpenSSL (CRYPTO_get_ex_new_index(3)), which calls
// it for each new context. A context made before SetUpTlsContexts is missed. It
// would check certificates as OpenSSL does, and refuse too much, never too
// little; but it would resume sessions.
//
// OpenSSL does not check a resumed session again, though its certificate may
// have expired or its authority been replaced. So no session is resumed, and no
// ticket is given.
//
// A library that has a verification of its own, such as libcurl, gets its
// contexts back with LeaveToItsLibrary.
//
// Thread-safe.
#ifndef FNCACHE_COMMON_TLS_CONTEXTS_H_
#define FNCACHE_COMMON_TLS_CONTEXTS_H_

#include <openssl/types.h>

#include <string>

namespace fncache {

// Applies from now on, for the rest of the process. Call it before credentials
// or contexts are made; a second call does nothing. Aborts if OpenSSL cannot
// store its extra data.
void SetUpTlsContexts();

// The same for the next context only that this thread makes. For a library
// whose process has TLS contexts of other code, too.
void SetUpNextTlsContext();

// For a context of another library's that is no runner's or function's: peers'
// certificates are checked as OpenSSL does, and failures are not reported.
// Call it before the context is used. Harmless without SetUpTlsContexts.
void LeaveToItsLibrary(SSL_CTX* context);

// Why the handshake of this connection failed, in words; empty if that was not
// reported.
std::string HandshakeWords(const SSL* ssl);

}  // namespace fncache

#endif  // FNCACHE_COMMON_TLS_CONTEXTS_H_
