// SPDX-License-Identifier: Apache-2.0
#include "common/peer_certificate.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/certificate_names.h"
#include "common/openssl_owned.h"

namespace fncache {
namespace {

// The peer is the other side.
int PurposeOfPeer(TlsSide side) {
  return side == TlsSide::kServer ? X509_PURPOSE_SSL_CLIENT
                                  : X509_PURPOSE_SSL_SERVER;
}

// Bits of security that a level of OpenSSL's asks for:
// SSL_CTX_set_security_level(3).
int BitsOfLevel(int level) {
  static constexpr int kBits[] = {0, 80, 112, 128, 192, 256};
  return kBits[std::clamp(level, 0, 5)];
}

// Verifies one certificate that is trusted as it is: its dates, key, critical
// extensions and, for the purpose, usages. X509_V_OK or what is wrong.
int VerifyAlone(X509* certificate, X509_STORE_CTX* like, int purpose) {
  const Owned<X509_STORE> store(X509_STORE_new());
  const Owned<X509_STORE_CTX> context(X509_STORE_CTX_new());
  if (store == nullptr || context == nullptr ||
      X509_STORE_add_cert(store.get(), certificate) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr) !=
          1) {
    return X509_V_ERR_OUT_OF_MEM;
  }
  X509_VERIFY_PARAM* const param = X509_STORE_CTX_get0_param(context.get());
  if (X509_VERIFY_PARAM_set1(param, X509_STORE_CTX_get0_param(like)) != 1 ||
      X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN) != 1 ||
      // The certificate looks self-signed; that it is not was seen before.
      X509_VERIFY_PARAM_clear_flags(param, X509_V_FLAG_CHECK_SS_SIGNATURE) !=
          1 ||
      X509_VERIFY_PARAM_set_purpose(param, purpose) != 1) {
    return X509_V_ERR_UNSPECIFIED;
  }
  if (X509_verify_cert(context.get()) == 1) return X509_V_OK;
  const int error = X509_STORE_CTX_get_error(context.get());
  return error == X509_V_OK ? X509_V_ERR_UNSPECIFIED : error;
}

// Whether the signature of `certificate` is as strong as the level of `like`
// asks for. VerifyAlone cannot tell: it never looks at a trusted one's.
bool StronglySigned(X509* certificate, X509_STORE_CTX* like) {
  int bits = 0;
  return X509_get_signature_info(certificate, nullptr, nullptr, &bits,
                                 nullptr) == 1 &&
         bits >= BitsOfLevel(X509_VERIFY_PARAM_get_auth_level(
                     X509_STORE_CTX_get0_param(like)));
}

bool SignedBy(X509* certificate, X509* signer) {
  EVP_PKEY* const key = X509_get0_pubkey(signer);
  return key != nullptr && X509_verify(certificate, key) == 1;
}

bool NamesHosts(X509* certificate) {
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    if (sk_GENERAL_NAME_value(names.get(), i)->type == GEN_DNS) return true;
  }
  return false;
}

// As OpenSSL does it for a chain (RFC 5280, 4.2.1.10): common names count where
// there are no DNS names.
int CheckNameConstraints(X509* authority, X509* leaf) {
  const Owned<NAME_CONSTRAINTS> constraints(static_cast<NAME_CONSTRAINTS*>(
      X509_get_ext_d2i(authority, NID_name_constraints, nullptr, nullptr)));
  if (constraints == nullptr) return X509_V_OK;
  const int error = NAME_CONSTRAINTS_check(leaf, constraints.get());
  if (error != X509_V_OK || NamesHosts(leaf)) return error;
  return NAME_CONSTRAINTS_check_CN(leaf, constraints.get());
}

// Extensions whose meaning is a chain's, not one certificate's: addresses and
// systems that an authority may give away (RFC 3779).
bool DelegatesAddresses(const X509* certificate) {
  return X509_get_ext_by_NID(certificate, NID_sbgp_ipAddrBlock, -1) >= 0 ||
         X509_get_ext_by_NID(certificate, NID_sbgp_autonomousSysNum, -1) >= 0;
}

// X509_V_OK if `authority`, which has signed the leaf, may have.
int CheckAuthority(X509* authority, X509* leaf, X509_STORE_CTX* context,
                   int purpose) {
  const uint32_t flags = X509_get_extension_flags(authority);
  if ((flags & EXFLAG_INVALID) != 0) return X509_V_ERR_INVALID_EXTENSION;
  if (DelegatesAddresses(authority) || DelegatesAddresses(leaf)) {
    return X509_V_ERR_UNNESTED_RESOURCE;
  }
  if ((flags & EXFLAG_CA) == 0) return X509_V_ERR_INVALID_CA;
  // Without the extension the usages are not restricted: UINT32_MAX.
  if ((X509_get_key_usage(authority) & KU_KEY_CERT_SIGN) == 0) {
    return X509_V_ERR_KEYUSAGE_NO_CERTSIGN;
  }
  if (X509_check_purpose(authority, purpose, /*ca=*/1) != 1) {
    return X509_V_ERR_INVALID_PURPOSE;
  }
  const int names = CheckNameConstraints(authority, leaf);
  if (names != X509_V_OK) return names;
  return VerifyAlone(authority, context, X509_PURPOSE_ANY);
}

// Whether this is how OpenSSL fails where leaf and authority, or several
// authorities, share a name.
bool MayShareAName(int error, int depth) {
  return error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
         (error == X509_V_ERR_CERT_SIGNATURE_FAILURE && depth == 0);
}

// Holds the result of looking at a leaf: an error of OpenSSL's, and how far
// above the leaf it lies.
struct Finding {
  int error = X509_V_OK;
  int depth = 0;
};

// Decides by the three steps of the header, where OpenSSL found `first`.
Finding LookAgain(X509_STORE_CTX* context, const Finding& first, TlsSide side) {
  X509* const leaf = X509_STORE_CTX_get0_cert(context);
  const EVP_PKEY* const key = X509_get0_pubkey(leaf);
  if (key == nullptr) return first;
  // An authority of any kind, or what is marked as one, whatever its usages.
  if (X509_check_ca(leaf) != 0 ||
      (X509_get_extension_flags(leaf) & EXFLAG_CA) != 0) {
    return {X509_V_ERR_INVALID_CA, 0};
  }
  const int purpose = PurposeOfPeer(side);
  const Owned<STACK_OF(X509)> authorities(
      X509_STORE_CTX_get1_certs(context, X509_get_issuer_name(leaf)));
  Finding finding = {
      authorities == nullptr ? first.error : X509_V_ERR_CERT_SIGNATURE_FAILURE,
      0};
  for (int i = 0; i < sk_X509_num(authorities.get()); ++i) {
    X509* const authority = sk_X509_value(authorities.get(), i);
    // Names, key identifiers, algorithms; then the signature itself. Only keys
    // of ca.crt are calculated with: a stranger's could take long.
    const int issued = X509_check_issued(authority, leaf);
    if ((issued != X509_V_OK && issued != X509_V_ERR_KEYUSAGE_NO_CERTSIGN) ||
        EVP_PKEY_eq(key, X509_get0_pubkey(authority)) == 1 ||
        !SignedBy(leaf, authority)) {
      continue;
    }
    finding = {CheckAuthority(authority, leaf, context, purpose), 1};
    if (finding.error != X509_V_OK) continue;  // it may have been renewed
    return {StronglySigned(leaf, context) ? VerifyAlone(leaf, context, purpose)
                                          : X509_V_ERR_CA_MD_TOO_WEAK,
            0};
  }
  return finding;
}

HandshakeFault FaultOf(int error) {
  switch (error) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_CERT_UNTRUSTED:
      return HandshakeFault::kUnknownAuthority;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return HandshakeFault::kExpired;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return HandshakeFault::kNotYetValid;
    case X509_V_ERR_INVALID_PURPOSE:
    case X509_V_ERR_INVALID_CA:
      return HandshakeFault::kWrongUsage;
    default:
      return HandshakeFault::kBadCertificate;
  }
}

const char* Whose(TlsSide side) {
  return side == TlsSide::kServer ? "the caller's certificate"
                                  : "the function's certificate";
}

std::string Words(const Finding& finding, TlsSide side) {
  const char* const whose = Whose(side);
  const std::string subject = finding.depth == 0
                                  ? std::string(whose)
                                  : absl::StrCat("an authority of ", whose);
  switch (finding.error) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return absl::StrCat(
          subject, " is self-signed, or comes from no authority of ca.crt");
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_UNTRUSTED:
      return absl::StrCat(whose, " comes from no authority of ca.crt");
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return absl::StrCat(subject,
                          " is signed by another authority than that of the "
                          "same name in ca.crt, or by itself");
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::StrCat(subject, " has expired");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::StrCat(subject, " is not valid yet");
    case X509_V_ERR_INVALID_PURPOSE:
      return absl::StrCat(subject, " is not made for TLS ",
                          side == TlsSide::kServer ? "clients" : "servers",
                          " (key usages)");
    case X509_V_ERR_INVALID_CA:
      return absl::StrCat(subject,
                          finding.depth == 0
                              ? " is an authority's, or may be taken for one"
                              : " is none (CA:FALSE)");
    case X509_V_ERR_EE_KEY_TOO_SMALL:
      return absl::StrCat(subject, " has a key that is too weak");
    default:
      return absl::StrCat(subject, " is refused: ",
                          X509_verify_cert_error_string(finding.error));
  }
}

}  // namespace

CertificateVerdict CheckPeerCertificate(X509_STORE_CTX* context, TlsSide side) {
  CertificateVerdict verdict;
  // An error left in OpenSSL's queue would look like one of the connection if
  // the verdict is good, and like the verdict's reason if it is bad.
  ERR_set_mark();
  Finding finding;
  if (X509_verify_cert(context) != 1) {
    finding = {X509_STORE_CTX_get_error(context),
               X509_STORE_CTX_get_error_depth(context)};
    // OpenSSL can fail without a reason, for lack of memory.
    if (finding.error == X509_V_OK) finding.error = X509_V_ERR_UNSPECIFIED;
    const uint32_t flags =
        X509_get_extension_flags(X509_STORE_CTX_get0_cert(context));
    if ((flags & EXFLAG_INVALID) != 0) {
      // An extension that could not be read is the reason, whatever OpenSSL
      // made of it.
      finding = {X509_V_ERR_INVALID_EXTENSION, 0};
    } else if (MayShareAName(finding.error, finding.depth)) {
      finding = LookAgain(context, finding, side);
    }
  }
  std::string names;
  if (finding.error == X509_V_OK) {
    names = WhatIsWrongWithNames(X509_STORE_CTX_get0_cert(context));
    if (!names.empty()) finding = {X509_V_ERR_APPLICATION_VERIFICATION, 0};
  }
  // OpenSSL makes an alert of this error. A peer that signed with an unknown
  // key gets "unknown authority", not an alert about garbled data.
  X509_STORE_CTX_set_error(context,
                           finding.error == X509_V_ERR_CERT_SIGNATURE_FAILURE
                               ? X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
                               : finding.error);
  X509_STORE_CTX_set_error_depth(context, finding.depth);
  ERR_pop_to_mark();
  verdict.good = finding.error == X509_V_OK;
  if (verdict.good) return verdict;
  verdict.fault = FaultOf(finding.error);
  verdict.words = names.empty() ? Words(finding, side)
                                : absl::StrCat(Whose(side), " ", names);
  return verdict;
}

}  // namespace fncache
