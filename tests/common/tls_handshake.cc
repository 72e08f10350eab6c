// SPDX-License-Identifier: Apache-2.0
#include "tests/common/tls_handshake.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <cstdlib>

namespace fncache::testing {
namespace {

void Must(bool held) {
  if (!held) std::abort();
}

// Where the tickets of a connection are counted.
int TicketsIndex() {
  static const int index =
      SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

int OnNewSession(SSL* ssl, SSL_SESSION* /*session*/) {
  auto* const made =
      static_cast<Handshake*>(SSL_get_ex_data(ssl, TicketsIndex()));
  if (made != nullptr) ++made->tickets;
  return 0;  // the session stays OpenSSL's
}

int SelectHttp2(SSL* /*ssl*/, const unsigned char** out, unsigned char* size,
                const unsigned char* offered, unsigned offered_size,
                void* /*unused*/) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, size, kHttp2, sizeof kHttp2, offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

// All certificates of a text, each to `use`.
template <typename Use>
void ForEachCertificate(const std::string& pem, Use use) {
  BIO* bio = BIO_new_mem_buf(pem.data(), pem.size());
  while (X509* certificate =
             PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
    use(certificate);
    X509_free(certificate);
  }
  ERR_clear_error();
  BIO_free(bio);
}

void ShowIdentity(SSL_CTX* context, const Pem& identity) {
  bool first = true;
  ForEachCertificate(identity.certificate, [&](X509* certificate) {
    Must((first ? SSL_CTX_use_certificate(context, certificate)
                : SSL_CTX_add1_chain_cert(context, certificate)) == 1);
    first = false;
  });
  BIO* bio = BIO_new_mem_buf(identity.key.data(), identity.key.size());
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  Must(SSL_CTX_use_PrivateKey(context, key) == 1);
  EVP_PKEY_free(key);
}

}  // namespace

TlsContext MakeTlsContext(TlsSide side, const Pem* identity,
                          const std::string& ca, int version) {
  TlsContext context(SSL_CTX_new(
      side == TlsSide::kServer ? TLS_server_method() : TLS_client_method()));
  Must(context != nullptr);
  SSL_CTX_set_min_proto_version(context.get(), version);
  SSL_CTX_set_max_proto_version(context.get(), version);
  if (identity != nullptr) ShowIdentity(context.get(), *identity);
  if (!ca.empty()) {
    ForEachCertificate(ca, [&](X509* certificate) {
      Must(X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()),
                               certificate) == 1);
    });
    SSL_CTX_set_verify(context.get(),
                       SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       nullptr);
  }
  constexpr unsigned char kId[] = "test";
  SSL_CTX_set_session_id_context(context.get(), kId, sizeof kId - 1);
  SSL_CTX_sess_set_new_cb(context.get(), &OnNewSession);
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  Must(SSL_CTX_set_alpn_protos(context.get(), kHttp2, sizeof kHttp2) == 0);
  SSL_CTX_set_alpn_select_cb(context.get(), &SelectHttp2, nullptr);
  if (side == TlsSide::kClient) {
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_CLIENT);
    SSL_CTX_clear_options(context.get(), SSL_OP_NO_TICKET);
  }
  return context;
}

Handshake ShakeHands(SSL_CTX* server_context, SSL_CTX* client_context,
                     SSL_SESSION* session) {
  Handshake made;
  const std::unique_ptr<SSL, FreeTls> server(SSL_new(server_context));
  const std::unique_ptr<SSL, FreeTls> client(SSL_new(client_context));
  BIO* server_end = nullptr;
  BIO* client_end = nullptr;
  Must(BIO_new_bio_pair(&server_end, 0, &client_end, 0) == 1);
  SSL_set_bio(server.get(), server_end, server_end);
  SSL_set_bio(client.get(), client_end, client_end);
  SSL_set_accept_state(server.get());
  SSL_set_connect_state(client.get());
  if (session != nullptr) Must(SSL_set_session(client.get(), session) == 1);
  Must(SSL_set_ex_data(client.get(), TicketsIndex(), &made) == 1);
  // Each side finishes, writes a byte and reads the other's. A few rounds are
  // more than any handshake takes.
  bool server_wrote = false;
  bool client_wrote = false;
  for (int round = 0; round < 10; ++round) {
    const auto go = [](SSL* ssl, bool* wrote, bool* done) {
      char byte = 'x';
      if (SSL_do_handshake(ssl) != 1) return;
      if (!*wrote) *wrote = SSL_write(ssl, &byte, 1) == 1;
      if (SSL_read(ssl, &byte, 1) == 1) *done = true;
    };
    go(client.get(), &client_wrote, &made.client);
    go(server.get(), &server_wrote, &made.server);
  }
  ERR_clear_error();
  made.resumed = SSL_session_reused(client.get()) == 1;
  made.session.reset(SSL_get1_session(client.get()));
  SSL_set_ex_data(client.get(), TicketsIndex(), nullptr);
  // As after a proper end: what broke off is never resumed.
  SSL_set_shutdown(client.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_set_shutdown(server.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  return made;
}

}  // namespace fncache::testing
