// SPDX-License-Identifier: Apache-2.0
// TLS handshakes within a process, between two contexts of OpenSSL's and
// nothing in between.
#ifndef FNCACHE_TESTS_COMMON_TLS_HANDSHAKE_H_
#define FNCACHE_TESTS_COMMON_TLS_HANDSHAKE_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "common/openssl_owned.h"
#include "common/tls_side.h"
#include "tests/common/certificates.h"

namespace fncache::testing {

struct FreeTls {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};
using TlsContext = Owned<SSL_CTX>;
using TlsSession = std::unique_ptr<SSL_SESSION, FreeTls>;

// A side that speaks HTTP/2 (ALPN) and shows `identity` (null = nothing).
// Unless `ca` is empty, it wants a certificate of that authority from its peer.
// `version` is TLS1_2_VERSION... or 0 for any.
TlsContext MakeTlsContext(TlsSide side, const Pem* identity,
                          const std::string& ca, int version = TLS1_3_VERSION);

struct Handshake {
  // Whether each side finished and went on to get a byte from the other.
  bool server = false;
  bool client = false;
  bool resumed = false;
  int tickets = 0;     // that the client was given
  TlsSession session;  // the client's, to be resumed
};
// `session`: what the client offers to resume, may be null.
Handshake ShakeHands(SSL_CTX* server, SSL_CTX* client,
                     SSL_SESSION* session = nullptr);

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_TLS_HANDSHAKE_H_
