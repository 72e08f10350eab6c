// SPDX-License-Identifier: Apache-2.0
// Owned<T>: an object of OpenSSL's, freed at the end; null is none.
#ifndef FNCACHE_COMMON_OPENSSL_OWNED_H_
#define FNCACHE_COMMON_OPENSSL_OWNED_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>

namespace fncache {

struct OpensslFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
  void operator()(NAME_CONSTRAINTS* constraints) const {
    NAME_CONSTRAINTS_free(constraints);
  }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(STACK_OF(X509) * certificates) const {
    sk_X509_pop_free(certificates, X509_free);
  }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* context) const {
    X509_STORE_CTX_free(context);
  }
};

template <typename T>
using Owned = std::unique_ptr<T, OpensslFree>;

}  // namespace fncache

#endif  // FNCACHE_COMMON_OPENSSL_OWNED_H_
