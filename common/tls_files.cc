// SPDX-License-Identifier: Apache-2.0
#include "common/tls_files.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/certificate_names.h"
#include "common/file.h"
#include "common/openssl_owned.h"

namespace fncache {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr int kReadings = 8;

using Chain = std::vector<Owned<X509>>;

absl::Status Missing(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(ENOENT)));
}

absl::Status Bad(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

// Empty if the file does not exist.
absl::StatusOr<absl::optional<std::string>> ReadIfPresent(
    const std::string& path) {
  absl::StatusOr<std::string> content = ReadSmallFile(path, kMaxFileBytes);
  if (absl::IsNotFound(content.status())) return absl::nullopt;
  if (!content.ok()) return content.status();
  return absl::make_optional(*std::move(content));
}

Owned<BIO> Over(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), text.size()));
}

// OpenSSL would ask on the terminal for the pass phrase of an encrypted key.
int NoPassPhrase(char*, int, int, void*) { return -1; }

// Each as gRPC reads it: one that may be trusted by itself is read more
// strictly, and gRPC leaves out, without a word, what it cannot read.
enum class Reading {
  kAuthorities,  // ca.crt
  kLeafFirst,    // tls.crt
};

absl::StatusOr<Chain> ParseChain(const std::string& path,
                                 const std::string& pem, Reading reading) {
  Chain chain;
  const Owned<BIO> bio = Over(pem);
  while (true) {
    ERR_clear_error();
    Owned<X509> certificate(
        reading == Reading::kAuthorities || chain.empty()
            ? PEM_read_bio_X509_AUX(bio.get(), nullptr, NoPassPhrase, nullptr)
            : PEM_read_bio_X509(bio.get(), nullptr, NoPassPhrase, nullptr));
    if (certificate == nullptr) break;
    chain.push_back(std::move(certificate));
  }
  const bool at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) {
    return Bad(path, absl::StrCat("certificate ", chain.size() + 1,
                                  " cannot be parsed"));
  }
  if (chain.empty()) return Bad(path, "holds no certificate in PEM form");
  return chain;
}

absl::StatusOr<Owned<EVP_PKEY>> ParseKey(const std::string& path,
                                         const std::string& pem) {
  const Owned<BIO> bio = Over(pem);
  ERR_clear_error();
  Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassPhrase, nullptr));
  ERR_clear_error();
  if (key != nullptr) return key;
  if (pem.find("ENCRYPTED") != std::string::npos) {
    return Bad(path, "is encrypted; a key without pass phrase is needed");
  }
  if (pem.find("PRIVATE KEY-----") == std::string::npos) {
    return Bad(path, "holds no private key in PEM form");
  }
  return Bad(path, "the private key cannot be parsed");
}

absl::Time FromAsn1(const ASN1_TIME* time, absl::Time otherwise) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return otherwise;
  return absl::FromTM(parts, absl::UTCTimeZone());
}

// OpenSSL refuses what such a one has signed, whatever the time.
void NoteNoAuthorities(const std::string& path, const Chain& chain,
                       TlsFiles* files) {
  for (size_t i = 0; i < chain.size(); ++i) {
    if (X509_check_ca(chain[i].get()) != 0) continue;
    files->warnings.push_back(
        absl::StrCat(path, ": certificate ", i + 1,
                     " is no authority (CA:FALSE): what it signed is refused"));
  }
}

void NoteValidity(const std::string& path, const Chain& chain, absl::Time now,
                  TlsFiles* files) {
  for (size_t i = 0; i < chain.size(); ++i) {
    const absl::Time from =
        FromAsn1(X509_get0_notBefore(chain[i].get()), absl::InfinitePast());
    const absl::Time until =
        FromAsn1(X509_get0_notAfter(chain[i].get()), absl::InfinitePast());
    files->earliest_expiry = std::min(files->earliest_expiry, until);
    const std::string which = chain.size() == 1
                                  ? "the certificate"
                                  : absl::StrCat("certificate ", i + 1);
    if (until < now) {
      files->warnings.push_back(
          absl::StrCat(path, ": ", which, " expired at ",
                       absl::FormatTime(until, absl::UTCTimeZone())));
    }
    if (from > now) {
      files->warnings.push_back(
          absl::StrCat(path, ": ", which, " is not valid before ",
                       absl::FormatTime(from, absl::UTCTimeZone())));
    }
  }
}

// Returns TLS's own objection to a pair that belongs together, because a
// handshake is too late to find out.
absl::Status CheckUsable(const std::string& path, const Chain& chain,
                         EVP_PKEY* key) {
  const std::string names = WhatIsWrongWithNames(chain.front().get());
  if (!names.empty()) return Bad(path, absl::StrCat("the certificate ", names));
  ERR_clear_error();
  const Owned<SSL_CTX> context(SSL_CTX_new(TLS_method()));
  if (context == nullptr) return absl::ResourceExhaustedError("OpenSSL");
  bool usable =
      SSL_CTX_use_certificate(context.get(), chain.front().get()) == 1 &&
      SSL_CTX_use_PrivateKey(context.get(), key) == 1;
  for (size_t i = 1; usable && i < chain.size(); ++i) {
    usable = SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) == 1;
  }
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  if (usable) return absl::OkStatus();
  return Bad(path, absl::StrCat("cannot be used for TLS: ",
                                reason == nullptr ? "refused" : reason));
}

struct Paths {
  explicit Paths(const std::string& dir)
      : certificate(absl::StrCat(dir, "/tls.crt")),
        key(absl::StrCat(dir, "/tls.key")),
        ca(absl::StrCat(dir, "/ca.crt")) {}
  std::string certificate;
  std::string key;
  std::string ca;
};

// Those that exist.
struct Contents {
  absl::optional<std::string> certificate;
  absl::optional<std::string> key;
  absl::optional<std::string> ca;

  bool operator==(const Contents& other) const {
    return certificate == other.certificate && key == other.key &&
           ca == other.ca;
  }
};

absl::StatusOr<Contents> ReadEach(const Paths& paths) {
  Contents contents;
  for (const auto& [path, content] :
       {std::make_pair(&paths.certificate, &contents.certificate),
        std::make_pair(&paths.key, &contents.key),
        std::make_pair(&paths.ca, &contents.ca)}) {
    auto read = ReadIfPresent(*path);
    if (!read.ok()) return read.status();
    *content = *std::move(read);
  }
  return contents;
}

// A volume with a Secret replaces its files at once, and they are read one
// after another. Contents on which two readings in a row agree are of one set.
absl::StatusOr<Contents> ReadSet(const Paths& paths) {
  absl::StatusOr<Contents> contents = ReadEach(paths);
  for (int i = 1; i < kReadings; ++i) {
    absl::StatusOr<Contents> again = ReadEach(paths);
    const bool same = contents == again;
    contents = std::move(again);
    if (same) break;
  }
  return contents;
}

}  // namespace

absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& dir, TlsSide side,
                                      absl::Time now) {
  const Paths paths(dir);
  absl::StatusOr<Contents> contents = ReadSet(paths);
  if (!contents.ok()) return contents.status();
  const auto& [certificate_path, key_path, ca_path] = paths;
  auto& [certificate, key, ca] = *contents;

  const bool pair_needed =
      side == TlsSide::kServer || certificate.has_value() || key.has_value();
  if (pair_needed && !certificate.has_value()) {
    return Missing(certificate_path);
  }
  if (pair_needed && !key.has_value()) return Missing(key_path);
  if (side == TlsSide::kClient && !ca.has_value()) {
    return Missing(ca_path);
  }

  TlsFiles files;
  if (pair_needed) {
    absl::StatusOr<Chain> chain =
        ParseChain(certificate_path, *certificate, Reading::kLeafFirst);
    if (!chain.ok()) return chain.status();
    absl::StatusOr<Owned<EVP_PKEY>> parsed = ParseKey(key_path, *key);
    if (!parsed.ok()) return parsed.status();
    const bool belongs =
        X509_check_private_key(chain->front().get(), parsed->get()) == 1;
    ERR_clear_error();
    if (!belongs) {
      return Bad(key_path, absl::StrCat("is not the key of the certificate in ",
                                        certificate_path));
    }
    const absl::Status usable =
        CheckUsable(certificate_path, *chain, parsed->get());
    if (!usable.ok()) return usable;
    NoteValidity(certificate_path, *chain, now, &files);
    files.certificate = *std::move(certificate);
    files.key = *std::move(key);
  }
  if (ca.has_value()) {
    absl::StatusOr<Chain> chain =
        ParseChain(ca_path, *ca, Reading::kAuthorities);
    if (!chain.ok()) return chain.status();
    NoteValidity(ca_path, *chain, now, &files);
    NoteNoAuthorities(ca_path, *chain, &files);
    files.ca = *std::move(ca);
  }
  return files;
}

}  // namespace fncache
