// SPDX-License-Identifier: Apache-2.0
#include "common/tls_context.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/handshake_failure.h"
#include "common/tls_contexts.h"

namespace fncache {
namespace {

constexpr std::array<unsigned char, 3> kHttp2 = {2, 'h', '2'};

std::string OpensslError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "OpenSSL gives no reason" : reason;
}

Owned<BIO> Memory(const std::string& text) {
  return Owned<BIO>(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// SSL_CTX_set_alpn_select_cb's: HTTP/2 or nothing.
int SelectHttp2(SSL* /*ssl*/, const unsigned char** out, unsigned char* size,
                const unsigned char* in, unsigned in_size, void* /*unused*/) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, size, kHttp2.data(), kHttp2.size(), in,
                            in_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

bool Trust(const std::string& pem, SSL_CTX* context, bool ask) {
  const Owned<BIO> authorities = Memory(pem);
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  while (const Owned<X509> one{
      PEM_read_bio_X509(authorities.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store, one.get()) != 1) return false;
    if (ask) SSL_CTX_add_client_CA(context, one.get());
  }
  ERR_clear_error();
  return true;
}

// The names that a certificate is for.
std::string NamesOf(X509* certificate) {
  std::vector<std::string> names;
  const Owned<GENERAL_NAMES> all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS) {
      names.emplace_back(
          reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
          ASN1_STRING_length(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      std::array<char, INET6_ADDRSTRLEN> text = {};
      const ASN1_OCTET_STRING* const ip = name->d.iPAddress;
      const int family = ASN1_STRING_length(ip) == 4 ? AF_INET : AF_INET6;
      inet_ntop(family, ASN1_STRING_get0_data(ip), text.data(), text.size());
      names.emplace_back(text.data());
    }
  }
  std::array<char, 256> common = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                            common.data(), common.size());
  return CertificateText(common.data(), names);
}

}  // namespace

bool IsIpAddress(const std::string& host) {
  std::array<char, sizeof(in6_addr)> address;
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

absl::StatusOr<Owned<SSL_CTX>> MakeTlsContext(const TlsFiles& files,
                                              TlsSide side) {
  SetUpTlsContexts();
  ERR_clear_error();
  const bool server = side == TlsSide::kServer;
  Owned<SSL_CTX> context(
      SSL_CTX_new(server ? TLS_server_method() : TLS_client_method()));
  const auto failed = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", OpensslError()));
  };
  if (context == nullptr) return failed("TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // Idle connections are many: they keep no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  if (server) {
    SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_alpn_select_cb(context.get(), &SelectHttp2, nullptr);
    if (!files.ca.empty()) {
      SSL_CTX_set_verify(context.get(),
                         SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                         nullptr);
    }
  } else {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_alpn_protos(context.get(), kHttp2.data(), kHttp2.size());
  }
  if (!Trust(files.ca, context.get(), server)) return failed("ca.crt");
  if (files.certificate.empty()) return context;
  const Owned<BIO> chain = Memory(files.certificate);
  const Owned<X509> leaf(
      PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
  if (leaf == nullptr ||
      SSL_CTX_use_certificate(context.get(), leaf.get()) != 1) {
    return failed("tls.crt");
  }
  while (const Owned<X509> one{
      PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add1_chain_cert(context.get(), one.get()) != 1) {
      return failed("tls.crt");
    }
  }
  ERR_clear_error();
  const Owned<BIO> key_text = Memory(files.key);
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (key == nullptr || SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return failed("tls.key");
  }
  return context;
}

bool IsPeerNamed(SSL* ssl, const std::string& name) {
  const Owned<X509> certificate(SSL_get1_peer_certificate(ssl));
  if (certificate == nullptr) return false;
  const int fits = IsIpAddress(name)
                       ? X509_check_ip_asc(certificate.get(), name.c_str(), 0)
                       : X509_check_host(certificate.get(), name.data(),
                                         name.size(), 0, nullptr);
  return fits == 1;
}

std::string CheckPeerName(SSL* ssl, const std::string& name,
                          const std::string& setting) {
  if (IsPeerNamed(ssl, name)) return "";
  const Owned<X509> certificate(SSL_get1_peer_certificate(ssl));
  return ReportWrongName(
      name, setting, certificate == nullptr ? "" : NamesOf(certificate.get()));
}

}  // namespace fncache
