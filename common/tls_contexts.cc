// SPDX-License-Identifier: Apache-2.0
#include "common/tls_contexts.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/handshake_failure.h"
#include "common/log.h"
#include "common/openssl_owned.h"
#include "common/peer_certificate.h"
#include "common/tls_side.h"

namespace fncache {
namespace {

// The index of the words with which each SSL's failure has been reported: a
// handshake that fails may show itself in several ways.
int g_reported = -1;
// The index of a mark that is set on each context which is configured here.
int g_configured = -1;

// All contexts are configured, not only those after SetUpNextTlsContext.
std::atomic<bool> g_all{false};
thread_local bool t_next = false;

TlsSide SideOf(const SSL* ssl) {
  return SSL_is_server(ssl) == 1 ? TlsSide::kServer : TlsSide::kClient;
}

void Report(SSL* ssl, HandshakeFailure failure) {
  if (SSL_get_ex_data(ssl, g_reported) != nullptr) return;
  SSL_set_ex_data(ssl, g_reported, new std::string(failure.words));
  failure.side = SideOf(ssl);
  ReportHandshakeFailure(failure);
}

std::string Subject(const X509* certificate) {
  const Owned<BIO> out(BIO_new(BIO_s_mem()));
  if (out == nullptr || certificate == nullptr) return "";
  X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0,
                     XN_FLAG_RFC2253);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, size);
}

// SSL_CTX_set_cert_verify_callback's.
int Verify(X509_STORE_CTX* context, void* /*unused*/) {
  auto* const ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(
      context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  CertificateVerdict verdict = CheckPeerCertificate(context, SideOf(ssl));
  // The verdict has no effect on a connection that does not verify its peer.
  if (!verdict.good && (SSL_get_verify_mode(ssl) & SSL_VERIFY_PEER) != 0) {
    HandshakeFailure failure;
    failure.fault = verdict.fault;
    failure.words = std::move(verdict.words);
    failure.certificate = Subject(X509_STORE_CTX_get0_cert(context));
    Report(ssl, std::move(failure));
  }
  return verdict.good ? 1 : 0;
}

// Whether these first bytes of a peer begin a record of TLS: its type, and the
// version's first byte (RFC 8446, 5.1).
bool BeginsRecord(const uint8_t* bytes) {
  return bytes[0] >= SSL3_RT_CHANGE_CIPHER_SPEC &&
         bytes[0] <= SSL3_RT_APPLICATION_DATA && bytes[1] == SSL3_VERSION_MAJOR;
}

// The first five bytes of HTTP, in the clear: a client's preface or request, a
// server's answer, or the SETTINGS frame (RFC 9113, 6.5) that a server of
// HTTP/2 sends first.
bool LooksLikeHttp(absl::string_view bytes) {
  for (const char* start : {"PRI *", "GET /", "POST ", "HEAD ", "PUT /",
                            "OPTIO", "CONNE", "DELET", "PATCH", "HTTP/"}) {
    if (bytes == start) return true;
  }
  constexpr char kSettings = 4;
  return bytes.size() == 5 && bytes[0] == 0 && bytes[3] == kSettings &&
         bytes[4] == 0;
}

const char* PeerOf(const SSL* ssl) {
  return SideOf(ssl) == TlsSide::kServer ? "the caller" : "the function";
}

void OnHeader(SSL* ssl, absl::string_view bytes) {
  // OpenSSL gives up without an alert on what cannot be TLS.
  if (SSL_is_init_finished(ssl) == 1 || bytes.size() != 5 ||
      BeginsRecord(reinterpret_cast<const uint8_t*>(bytes.data()))) {
    return;
  }
  const char* const peer = PeerOf(ssl);
  HandshakeFailure failure;
  if (LooksLikeHttp(bytes)) {
    failure.fault = HandshakeFault::kPlaintext;
    failure.words = absl::StrCat(peer, " speaks plaintext, not TLS");
  } else {
    failure.fault = HandshakeFault::kProtocol;
    failure.words = absl::StrCat(peer, " does not speak TLS");
  }
  Report(ssl, std::move(failure));
}

// Whether an alert is about the certificate of its receiver (RFC 8446, 6.2).
bool IsAboutCertificates(int alert) {
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR:
    case SSL_AD_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

// Those of TLS 1.3 (RFC 8446, 6.2) that OpenSSL 3.0 calls unknown, too.
const char* AlertName(int alert) {
  switch (alert) {
    case SSL_AD_CERTIFICATE_REQUIRED:
      return "certificate required";
    case SSL_AD_MISSING_EXTENSION:
      return "missing extension";
    case SSL_AD_NO_APPLICATION_PROTOCOL:
      return "no application protocol";
    default:
      return SSL_alert_desc_string_long(alert);
  }
}

void OnAlertReceived(SSL* ssl, int alert) {
  const char* const peer = PeerOf(ssl);
  const char* const name = AlertName(alert);
  HandshakeFailure failure;
  const bool none = SSL_get_certificate(ssl) == nullptr;
  if (IsAboutCertificates(alert)) {
    // With TLS 1.3 a server says so when the client is long done.
    failure.fault = HandshakeFault::kRefusedByPeer;
    failure.words = absl::StrCat(
        peer,
        none ? " wants a certificate, and we have none (no tls.crt): "
             : " does not accept our certificate: ",
        name);
  } else if (SSL_is_init_finished(ssl) == 0) {
    failure.fault = HandshakeFault::kProtocol;
    failure.words = absl::StrCat(peer, " ended the handshake: ", name);
    // Up to TLS 1.2 it may say no more than that.
    if (alert == SSL_AD_HANDSHAKE_FAILURE && none &&
        SideOf(ssl) == TlsSide::kClient) {
      failure.words += "; it may want a certificate, and we have none";
    }
  } else {
    return;
  }
  Report(ssl, std::move(failure));
}

void OnAlertSent(SSL* ssl, int alert) {
  if (SSL_is_init_finished(ssl) == 1) return;
  // OpenSSL queues the reason before it sends the alert.
  const unsigned long error = ERR_peek_last_error();
  // A peer that hangs up, as probes do, has not failed at TLS.
  if (ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) return;
  const char* reason = ERR_reason_error_string(error);
  if (reason == nullptr) reason = AlertName(alert);
  const char* const peer = PeerOf(ssl);
  HandshakeFailure failure;
  if (ERR_GET_REASON(error) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    failure.fault = HandshakeFault::kNoCertificate;
    failure.words = "the caller shows no certificate";
  } else if (ERR_GET_REASON(error) == SSL_R_BAD_SIGNATURE) {
    failure.fault = HandshakeFault::kBadCertificate;
    failure.words =
        absl::StrCat(peer, " does not have the key of its certificate");
  } else if (IsAboutCertificates(alert) || ERR_GET_LIB(error) == ERR_LIB_ASN1) {
    failure.fault = HandshakeFault::kBadCertificate;
    failure.words =
        absl::StrCat(peer, " shows a certificate that cannot be read");
  } else {
    failure.fault = HandshakeFault::kProtocol;
    failure.words = absl::StrCat("no TLS in common: ", reason);
  }
  Report(ssl, std::move(failure));
}

// gRPC wants HTTP/2 to be agreed upon (ALPN, RFC 7301), and hangs up where it
// is not. Which it is, is known when a client finishes.
void OnFinished(SSL* ssl, bool sent) {
  const bool clients = sent == (SideOf(ssl) == TlsSide::kClient);
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  if (!clients || size != 0) return;
  HandshakeFailure failure;
  failure.fault = HandshakeFault::kProtocol;
  failure.words =
      absl::StrCat(PeerOf(ssl), " does not speak HTTP/2 over TLS (ALPN)");
  Report(ssl, std::move(failure));
}

// SSL_CTX_set_msg_callback's.
void OnMessage(int sent, int /*version*/, int type, const void* data,
               size_t size, SSL* ssl, void* /*unused*/) {
  const absl::string_view bytes(static_cast<const char*>(data), size);
  if (type == SSL3_RT_HEADER) {
    if (sent == 0) OnHeader(ssl, bytes);
    return;
  }
  if (type == SSL3_RT_HANDSHAKE && size > 0 && bytes[0] == SSL3_MT_FINISHED) {
    OnFinished(ssl, sent != 0);
    return;
  }
  if (type != SSL3_RT_ALERT || size != 2 || bytes[0] != SSL3_AL_FATAL) return;
  const int alert = static_cast<unsigned char>(bytes[1]);
  if (sent == 0) {
    OnAlertReceived(ssl, alert);
  } else {
    OnAlertSent(ssl, alert);
  }
}

// SSL_CTX_new calls this while it makes `parent`, when what is set here is
// plain data that it does not set again.
void OnNewContext(void* parent, void* /*data*/, CRYPTO_EX_DATA* /*all*/,
                  int index, long /*argl*/, void* /*argp*/) {
  if (!std::exchange(t_next, false) && !g_all) return;
  auto* const context = static_cast<SSL_CTX*>(parent);
  SSL_CTX_set_ex_data(context, index, context);
  SSL_CTX_set_cert_verify_callback(context, &Verify, nullptr);
  SSL_CTX_set_msg_callback(context, &OnMessage);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

// SSL_new's, likewise. With TLS 1.3 tickets go out even where none can be used;
// and openssl.cnf has a say after OnNewContext.
void OnNewConnection(void* parent, void* /*data*/, CRYPTO_EX_DATA* /*all*/,
                     int /*index*/, long /*argl*/, void* /*argp*/) {
  auto* const ssl = static_cast<SSL*>(parent);
  const SSL_CTX* const context = SSL_get_SSL_CTX(ssl);
  if (!g_all && SSL_CTX_get_ex_data(context, g_configured) == nullptr) return;
  SSL_set_options(ssl, SSL_OP_NO_TICKET);
  SSL_set_num_tickets(ssl, 0);
  // gRPC has P-256 only, which in TLS 1.2 rules out certificates of other
  // curves. Harmless where this fails, as with FIPS.
  SSL_set1_groups_list(ssl, "P-256:X25519:P-384:P-521:X448");
}

void FreeWords(void* /*parent*/, void* words, CRYPTO_EX_DATA* /*all*/,
               int /*index*/, long /*argl*/, void* /*argp*/) {
  delete static_cast<std::string*>(words);
}

bool RegisterNow() {
  g_reported =
      SSL_get_ex_new_index(0, nullptr, &OnNewConnection, nullptr, &FreeWords);
  g_configured =
      SSL_CTX_get_ex_new_index(0, nullptr, &OnNewContext, nullptr, nullptr);
  if (g_reported >= 0 && g_configured >= 0) return true;
  Log(LogLevel::kError, "OpenSSL cannot store extra data");
  std::abort();
}

void Register() {
  static const bool done = RegisterNow();
  (void)done;
}

}  // namespace

void LeaveToItsLibrary(SSL_CTX* context) {
  SSL_CTX_set_cert_verify_callback(context, nullptr, nullptr);
  SSL_CTX_set_msg_callback(context, nullptr);
}

std::string HandshakeWords(const SSL* ssl) {
  if (g_reported < 0) return "";
  const auto* const words =
      static_cast<const std::string*>(SSL_get_ex_data(ssl, g_reported));
  return words == nullptr ? "" : *words;
}

void SetUpTlsContexts() {
  Register();
  g_all = true;
}

void SetUpNextTlsContext() {
  Register();
  t_next = true;
}

}  // namespace fncache
