// SPDX-License-Identifier: Apache-2.0
// Certificates made on the spot, for tests of whatever reads tls.crt, tls.key
// and ca.crt, or checks a peer. Failures abort: a test without its certificate
// has no meaning.
#ifndef FNCACHE_TESTS_COMMON_CERTIFICATES_H_
#define FNCACHE_TESTS_COMMON_CERTIFICATES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tests/common/temp_dir.h"

namespace fncache::testing {

struct Pem {
  std::string certificate;  // and, of a peer, the chain above it
  std::string key;
};

// tls.crt, tls.key and, unless `ca` is empty, ca.crt in a directory of their
// own.
class CertificateDir {
 public:
  CertificateDir(const Pem& pair, const std::string& ca);
  const std::string& path() const { return dir_.path(); }

 private:
  TempDir dir_;
};

// A certificate for localhost and 127.0.0.1 with a fresh P-256 key, signed by
// `issuer`, or by itself (and fit to sign others) where that is null.
Pem MakeCertificate(const std::string& name, const Pem* issuer, absl::Time from,
                    absl::Time until);

// Says what a certificate holds, where that matters to a test.
struct CertificateOptions {
  // "CN", "x"; "O", "y"...
  std::vector<std::pair<std::string, std::string>> subject = {{"CN", "x"}};
  // The type of all of these: a V_ASN1_... of OpenSSL's; 0 = PrintableString.
  int subject_type = 0;
  absl::optional<int64_t> serial;  // none = random
  int rsa_bits = 0;                // 0 = a key of `curve`
  std::string curve = "P-256";
  std::string digest = "SHA256";
  bool authority = false;
  // In OpenSSL's words, such as "critical,keyCertSign"; empty = without.
  std::string key_usage;
  std::string extended_key_usage;
  std::string alt_names = "DNS:localhost,IP:127.0.0.1";
  std::string name_constraints;
  std::string resources;  // sbgp-ipAddrBlock (RFC 3779)
  // subjectKeyIdentifier, and authorityKeyIdentifier where there is an issuer
  // that has one.
  bool key_identifiers = false;
  // An unknown critical extension, which must be refused.
  bool unknown_critical = false;
  // For an authority that is made anew: its key (PEM); empty = a fresh one.
  std::string key;
  absl::Time from = absl::Now() - absl::Hours(1);
  absl::Time until = absl::Now() + absl::Hours(10);
};
Pem MakeCertificate(const CertificateOptions& options, const Pem* issuer);

// As Crossplane 2.4 makes them (internal/initializer): authority and leaves
// with the same subject and serial number, RSA 2048, no authorityKeyIdentifier.
CertificateOptions CrossplaneAuthority();
CertificateOptions CrossplaneServer();
CertificateOptions CrossplaneClient();

// The same key, encrypted with a pass phrase.
std::string EncryptedKey(const std::string& key_pem);

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_CERTIFICATES_H_
