// SPDX-License-Identifier: Apache-2.0
// The check of a peer's certificate: OpenSSL's, and ours where OpenSSL cannot
// follow what Crossplane issues.
//
// Crossplane gives its authority and every certificate that the authority signs
// the same subject and serial number, and no authorityKeyIdentifier. OpenSSL
// takes such a leaf for self-signed (error 18). If two authorities have one
// name, it tries only one of them (error 7). Go does neither. So
// CheckPeerCertificate checks again after these two errors of the leaf, and
// after no others:
//
// 1. The leaf is no authority.
// 2. An authority of the trusted store has the name of the leaf's issuer and
//    the key that signed the leaf, which is not the leaf's own. It is a CA that
//    may sign certificates, in its time, and all else that OpenSSL asks of an
//    authority.
// 3. OpenSSL verifies the leaf once more with the leaf alone trusted
//    (X509_V_FLAG_PARTIAL_CHAIN), for the purpose of the peer's side, which
//    brings dates, key strength, critical extensions and usages.
//
// Chains that OpenSSL accepts without this (with intermediates, from bundles)
// stay accepted, except those with names that crash other libraries
// (common/certificate_names.h). The caller that knows the expected name checks
// it.
//
// Thread-safe, as OpenSSL's own verification is.
#ifndef FNCACHE_COMMON_PEER_CERTIFICATE_H_
#define FNCACHE_COMMON_PEER_CERTIFICATE_H_

#include <openssl/types.h>

#include <string>

#include "common/handshake_failure.h"
#include "common/tls_side.h"

namespace fncache {

struct CertificateVerdict {
  bool good = false;
  // Says what is wrong; it means nothing if `good`.
  HandshakeFault fault = HandshakeFault::kBadCertificate;
  // The same as a phrase, such as "the caller's certificate has expired".
  std::string words;
};

// Verifies the leaf of `context` as the certificate of a peer that talks to
// `side`: a server checks clients' certificates and a client servers'. The
// context is as OpenSSL gives it to SSL_CTX_set_cert_verify_callback. Its error
// is left as OpenSSL would leave it, X509_V_OK if the verdict is good.
CertificateVerdict CheckPeerCertificate(X509_STORE_CTX* context, TlsSide side);

}  // namespace fncache

#endif  // FNCACHE_COMMON_PEER_CERTIFICATE_H_
