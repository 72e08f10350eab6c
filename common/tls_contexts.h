// What every TLS context of this process has in common, whoever makes it: our
// check of peers' certificates (common/peer_certificate.h), no session
// resumption, and reports of handshakes that failed
// (common/handshake_failure.h).
//
// gRPC makes its SSL_CTX itself and lends them to nobody. So this asks OpenSSL,
// through its extra data of contexts (CRYPTO_get_ex_new_index(3)), to be told
// of each that is made. A context that was missed would check certificates as
// OpenSSL does, and refuse too much, never too little.
//
// A resumed session is not checked again, though its certificate may have ended
// or its authority been replaced; so none is resumed, and no ticket is given.
//
// Thread-safe.
#ifndef FNCACHE_COMMON_TLS_CONTEXTS_H_
#define FNCACHE_COMMON_TLS_CONTEXTS_H_

namespace fncache {

// From now on, for the rest of the process. Call it before credentials or
// contexts are made; again does nothing. Aborts where OpenSSL has no room for
// its extra data.
void SetUpTlsContexts();

}  // namespace fncache

#endif  // FNCACHE_COMMON_TLS_CONTEXTS_H_
