// Certificates made on the spot, for tests of whatever reads tls.crt, tls.key
// and ca.crt. Failures abort: a test without its certificate has no meaning.
#ifndef FNCACHE_TESTS_COMMON_CERTIFICATES_H_
#define FNCACHE_TESTS_COMMON_CERTIFICATES_H_

#include <string>

#include "absl/time/time.h"

namespace fncache::testing {

// A directory of its own below the system's temporary one, removed at the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void WriteFile(const std::string& path, const std::string& content);

struct Pem {
  std::string certificate;
  std::string key;
};

// A certificate for localhost and 127.0.0.1 with a fresh P-256 key, signed by
// `issuer`, or by itself (and fit to sign others) where that is null.
Pem MakeCertificate(const std::string& name, const Pem* issuer, absl::Time from,
                    absl::Time until);

// The same key, encrypted with a pass phrase.
std::string EncryptedKey(const std::string& key_pem);

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_CERTIFICATES_H_
