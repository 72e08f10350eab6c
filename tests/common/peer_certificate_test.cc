// SPDX-License-Identifier: Apache-2.0
#include "common/peer_certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <functional>
#include <ostream>
#include <vector>

#include "gtest/gtest.h"
#include "tests/common/certificates.h"

namespace fncache {
namespace {

using testing::CertificateOptions;
using testing::CrossplaneAuthority;
using testing::MakeCertificate;
using testing::Pem;

constexpr int kLevel = 2;  // Debian's

std::vector<X509*> Parse(const std::string& pem) {
  std::vector<X509*> all;
  BIO* bio = BIO_new_mem_buf(pem.data(), pem.size());
  while (X509* one = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
    all.push_back(one);
  }
  ERR_clear_error();
  BIO_free(bio);
  return all;
}

// Returns what a side says of a peer's chain, trusting `ca`, as in a handshake.
CertificateVerdict Check(TlsSide side, const std::string& chain,
                         const std::string& ca, int* error = nullptr) {
  X509_STORE* store = X509_STORE_new();
  for (X509* authority : Parse(ca)) {
    X509_STORE_add_cert(store, authority);
    X509_free(authority);
  }
  STACK_OF(X509)* shown = sk_X509_new_null();
  for (X509* one : Parse(chain)) sk_X509_push(shown, one);
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, sk_X509_value(shown, 0), shown);
  X509_STORE_CTX_set_default(
      context, side == TlsSide::kServer ? "ssl_client" : "ssl_server");
  X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context), kLevel);
  CertificateVerdict verdict = CheckPeerCertificate(context, side);
  const int left = X509_STORE_CTX_get_error(context);
  EXPECT_EQ(verdict.good, left == X509_V_OK) << left;
  EXPECT_EQ(ERR_peek_error(), 0u);
  if (error != nullptr) *error = left;
  X509_STORE_CTX_free(context);
  sk_X509_pop_free(shown, X509_free);
  X509_STORE_free(store);
  return verdict;
}

// The same peers for both sides: what is right for one is wrong for the other.
class PeerCertificateTest : public ::testing::TestWithParam<TlsSide> {
 protected:
  using Change = std::function<void(CertificateOptions*)>;

  // Dear to make: leaves share one, and so do authorities.
  static std::string RsaKey() {
    return MakeCertificate(CrossplaneAuthority(), nullptr).key;
  }
  TlsSide side() const { return GetParam(); }
  // A peer's certificate in Crossplane's shape.
  static Pem Leaf(TlsSide side, const Pem& authority,
                  const Change& change = nullptr) {
    CertificateOptions options = side == TlsSide::kServer
                                     ? testing::CrossplaneClient()
                                     : testing::CrossplaneServer();
    if (change != nullptr) change(&options);
    static const std::string key = RsaKey();
    if (options.rsa_bits == 2048) options.key = key;
    return MakeCertificate(options, &authority);
  }
  Pem Leaf(const Pem& authority, const Change& change = nullptr) const {
    return Leaf(side(), authority, change);
  }
  static Pem Authority(const Change& change = nullptr) {
    CertificateOptions options = CrossplaneAuthority();
    if (change != nullptr) change(&options);
    static const std::string key = RsaKey();
    if (options.rsa_bits == 2048) options.key = key;
    return MakeCertificate(options, nullptr);
  }
  static const Pem& Old() {
    static const auto* const authority =
        new Pem(MakeCertificate(CrossplaneAuthority(), nullptr));
    return *authority;
  }
  static const Pem& New() {
    static const auto* const authority =
        new Pem(MakeCertificate(CrossplaneAuthority(), nullptr));
    return *authority;
  }

  void ExpectAccepted(const std::string& chain, const std::string& ca) const {
    const CertificateVerdict verdict = Check(side(), chain, ca);
    EXPECT_TRUE(verdict.good) << verdict.words;
  }
  void ExpectRefused(const std::string& chain, const std::string& ca,
                     HandshakeFault fault, const std::string& words) const {
    const CertificateVerdict verdict = Check(side(), chain, ca);
    ASSERT_FALSE(verdict.good);
    EXPECT_EQ(verdict.fault, fault)
        << HandshakeFaultName(verdict.fault) << ": " << verdict.words;
    EXPECT_NE(verdict.words.find(words), std::string::npos) << verdict.words;
  }
};

INSTANTIATE_TEST_SUITE_P(Sides, PeerCertificateTest,
                         ::testing::Values(TlsSide::kServer, TlsSide::kClient),
                         [](const auto& info) {
                           return info.param == TlsSide::kServer
                                      ? "OfCallers"
                                      : "OfFunctions";
                         });

TEST_P(PeerCertificateTest, CrossplanesAreAccepted) {
  ExpectAccepted(Leaf(Old()).certificate, Old().certificate);
}

TEST_P(PeerCertificateTest, CrossplanesOwnAreAccepted) {
  const std::string dir = std::string(FNCACHE_SOURCE_DIR) +
                          "/tests/data/certificates/" +
                          (side() == TlsSide::kServer ? "client" : "server");
  ExpectAccepted(testing::ReadFile(dir + "/tls.crt"),
                 testing::ReadFile(dir + "/ca.crt"));
}

TEST_P(PeerCertificateTest, AuthorityBehindTheLeafDoesNotMatter) {
  ExpectAccepted(Leaf(Old()).certificate + Old().certificate,
                 Old().certificate);
}

TEST_P(PeerCertificateTest, EitherOfTwoAuthoritiesOfOneNameIsAccepted) {
  for (const Pem* signer : {&Old(), &New()}) {
    const std::string leaf = Leaf(*signer).certificate;
    ExpectAccepted(leaf, Old().certificate + New().certificate);
    ExpectAccepted(leaf, New().certificate + Old().certificate);
  }
}

TEST_P(PeerCertificateTest, LeafOfAnotherNameFindsItsAuthorityAmongTwo) {
  for (const int rsa_bits : {0, 2048}) {
    const auto other = [rsa_bits](CertificateOptions* options) {
      options->subject = {{"CN", "someone"}};
      options->serial = absl::nullopt;
      options->rsa_bits = rsa_bits;
    };
    for (const Pem* signer : {&Old(), &New()}) {
      const std::string leaf = Leaf(*signer, other).certificate;
      ExpectAccepted(leaf, signer->certificate);
      ExpectAccepted(leaf, Old().certificate + New().certificate);
      ExpectAccepted(leaf, New().certificate + Old().certificate);
    }
  }
}

TEST_P(PeerCertificateTest, EcdsaLeavesAreAccepted) {
  const auto ecdsa = [](CertificateOptions* options) { options->rsa_bits = 0; };
  const Pem authority = Authority(ecdsa);
  ExpectAccepted(Leaf(Old(), ecdsa).certificate, Old().certificate);
  ExpectAccepted(Leaf(authority, ecdsa).certificate, authority.certificate);
  ExpectAccepted(Leaf(authority).certificate, authority.certificate);
  ExpectAccepted(Leaf(authority, ecdsa).certificate,
                 Old().certificate + authority.certificate);
}

TEST_P(PeerCertificateTest, OrdinaryChainsAndBundlesStayAccepted) {
  CertificateOptions options;
  options.key_identifiers = true;
  options.subject = {{"CN", "root"}};
  options.authority = true;
  const Pem root = MakeCertificate(options, nullptr);
  options.subject = {{"CN", "intermediate"}};
  const Pem intermediate = MakeCertificate(options, &root);
  options.subject = {{"CN", "leaf"}};
  options.authority = false;
  const Pem leaf = MakeCertificate(options, &intermediate);
  const std::string chain = leaf.certificate + intermediate.certificate;
  ExpectAccepted(chain, root.certificate);
  ExpectAccepted(chain, Old().certificate + root.certificate);
  ExpectAccepted(leaf.certificate, intermediate.certificate + root.certificate);
  ExpectRefused(leaf.certificate, root.certificate,
                HandshakeFault::kUnknownAuthority, "no authority of ca.crt");
}

TEST_P(PeerCertificateTest, AnotherAuthorityOfTheNameIsRefused) {
  ExpectRefused(Leaf(New()).certificate, Old().certificate,
                HandshakeFault::kUnknownAuthority,
                "another authority than that of the same name");
  ExpectRefused(Leaf(New()).certificate + New().certificate, Old().certificate,
                HandshakeFault::kUnknownAuthority,
                "another authority than that of the same name");
  // And so is an unknown one.
  CertificateOptions options;
  options.authority = true;
  ExpectRefused(Leaf(Old()).certificate,
                MakeCertificate(options, nullptr).certificate,
                HandshakeFault::kUnknownAuthority, "ca.crt");
}

TEST_P(PeerCertificateTest, SelfSignedOfTheNameIsRefused) {
  const Pem leaf = Leaf(Old());
  CertificateOptions options = side() == TlsSide::kServer
                                   ? testing::CrossplaneClient()
                                   : testing::CrossplaneServer();
  ExpectRefused(MakeCertificate(options, nullptr).certificate,
                Old().certificate, HandshakeFault::kUnknownAuthority,
                "or by itself");
}

TEST_P(PeerCertificateTest, TheAuthorityItselfIsNoPeer) {
  ExpectRefused(Old().certificate, Old().certificate,
                HandshakeFault::kWrongUsage, "is not made for TLS");
  // Another one of its kind.
  ExpectRefused(New().certificate, Old().certificate,
                HandshakeFault::kWrongUsage, "may be taken for one");
}

TEST_P(PeerCertificateTest, LeafMarkedAsAnAuthorityIsRefused) {
  for (const char* usages :
       {"critical,digitalSignature,keyEncipherment",
        "critical,digitalSignature,keyEncipherment,keyCertSign", ""}) {
    const Pem leaf = Leaf(Old(), [usages](CertificateOptions* options) {
      options->authority = true;
      options->key_usage = usages;
    });
    ExpectRefused(leaf.certificate, Old().certificate,
                  HandshakeFault::kWrongUsage,
                  "is an authority's, or may be taken");
  }
}

TEST_P(PeerCertificateTest, ChainOfTwoInThisShapeIsRefused) {
  const Pem intermediate = MakeCertificate(CrossplaneAuthority(), &Old());
  ExpectRefused(Leaf(intermediate).certificate + intermediate.certificate,
                Old().certificate, HandshakeFault::kUnknownAuthority,
                "another authority than that of the same name");
}

TEST_P(PeerCertificateTest, DatesAreChecked) {
  const auto ended = [](CertificateOptions* options) {
    options->from = absl::Now() - absl::Hours(3);
    options->until = absl::Now() - absl::Hours(2);
  };
  const auto to_come = [](CertificateOptions* options) {
    options->from = absl::Now() + absl::Hours(1);
  };
  ExpectRefused(Leaf(Old(), ended).certificate, Old().certificate,
                HandshakeFault::kExpired, "'s certificate has expired");
  ExpectRefused(Leaf(Old(), to_come).certificate, Old().certificate,
                HandshakeFault::kNotYetValid, "is not valid yet");
  const Pem expired = Authority(ended);
  ExpectRefused(Leaf(expired).certificate, expired.certificate,
                HandshakeFault::kExpired, "an authority of");
  const Pem future = Authority(to_come);
  ExpectRefused(Leaf(future).certificate, future.certificate,
                HandshakeFault::kNotYetValid, "an authority of");
  // The same key, renewed.
  const Pem renewed = Authority();
  ExpectAccepted(Leaf(expired).certificate,
                 expired.certificate + renewed.certificate);
  ExpectAccepted(Leaf(expired).certificate,
                 renewed.certificate + expired.certificate);
  ExpectRefused(Leaf(expired).certificate,
                expired.certificate + New().certificate,
                HandshakeFault::kExpired, "an authority of");
}

TEST_P(PeerCertificateTest, TheOtherSidesUsageIsRefused) {
  const Pem leaf = Leaf(
      side() == TlsSide::kServer ? TlsSide::kClient : TlsSide::kServer, Old());
  ExpectRefused(leaf.certificate, Old().certificate,
                HandshakeFault::kWrongUsage,
                side() == TlsSide::kServer ? "not made for TLS clients"
                                           : "not made for TLS servers");
}

TEST_P(PeerCertificateTest, WhatMayNotSignDoesNotCount) {
  const Pem crl_only = Authority([](CertificateOptions* options) {
    options->key_usage = "critical,cRLSign";
  });
  ExpectRefused(Leaf(crl_only).certificate, crl_only.certificate,
                HandshakeFault::kBadCertificate, "an authority of");
  const Pem no_authority = Authority(
      [](CertificateOptions* options) { options->authority = false; });
  ExpectRefused(Leaf(no_authority).certificate, no_authority.certificate,
                HandshakeFault::kWrongUsage, "is none (CA:FALSE)");
  const Pem for_mail = Authority([](CertificateOptions* options) {
    options->extended_key_usage = "emailProtection";
  });
  ExpectRefused(Leaf(for_mail).certificate, for_mail.certificate,
                HandshakeFault::kWrongUsage, "an authority of");
  // A leaf signs another one.
  const Pem leaf = Leaf(Old());
  ExpectRefused(Leaf(leaf).certificate + leaf.certificate, Old().certificate,
                HandshakeFault::kUnknownAuthority, "");
  // Without the extension all usages are allowed.
  const Pem any = Authority(
      [](CertificateOptions* options) { options->key_usage.clear(); });
  ExpectAccepted(Leaf(any).certificate, any.certificate);
}

TEST_P(PeerCertificateTest, WeakKeysAndDigestsAreRefused) {
  const auto weak = [](CertificateOptions* options) {
    options->rsa_bits = 1024;
  };
  ExpectRefused(Leaf(Old(), weak).certificate, Old().certificate,
                HandshakeFault::kBadCertificate, "key that is too weak");
  const Pem authority = Authority(weak);
  ExpectRefused(Leaf(authority).certificate, authority.certificate,
                HandshakeFault::kBadCertificate, "an authority of");
  const auto sha1 = [](CertificateOptions* options) {
    options->digest = "SHA1";
  };
  ExpectRefused(Leaf(Old(), sha1).certificate, Old().certificate,
                HandshakeFault::kBadCertificate, "too weak");
}

TEST_P(PeerCertificateTest, UnknownCriticalExtensionsAreRefused) {
  const auto unknown = [](CertificateOptions* options) {
    options->unknown_critical = true;
  };
  ExpectRefused(Leaf(Old(), unknown).certificate, Old().certificate,
                HandshakeFault::kBadCertificate, "critical extension");
  const Pem authority = Authority(unknown);
  ExpectRefused(Leaf(authority).certificate, authority.certificate,
                HandshakeFault::kBadCertificate, "critical extension");
}

TEST_P(PeerCertificateTest, NameConstraintsOfTheAuthorityHold) {
  const auto only = [](const char* names) {
    return Authority([names](CertificateOptions* options) {
      options->name_constraints = names;
    });
  };
  const auto named = [](CertificateOptions* options) {
    options->alt_names = "DNS:fn.example.org";
  };
  const Pem elsewhere = only("critical,permitted;DNS:example.com");
  ExpectRefused(Leaf(elsewhere, named).certificate, elsewhere.certificate,
                HandshakeFault::kBadCertificate, "permitted subtree");
  const Pem here = only("critical,permitted;DNS:example.org");
  ExpectAccepted(Leaf(here, named).certificate, here.certificate);
}

TEST_P(PeerCertificateTest, NameConstraintsHoldForCommonNamesToo) {
  const Pem authority = Authority([](CertificateOptions* options) {
    options->name_constraints = "critical,permitted;DNS:example.org";
  });
  const auto named = [](const char* name) {
    return [name](CertificateOptions* options) {
      options->subject = {{"CN", name}};
      options->alt_names.clear();
    };
  };
  for (const std::string& ca :
       {authority.certificate, Old().certificate + authority.certificate,
        authority.certificate + Old().certificate}) {
    ExpectRefused(Leaf(authority, named("foo.example.com")).certificate, ca,
                  HandshakeFault::kBadCertificate, "permitted subtree");
    ExpectAccepted(Leaf(authority, named("foo.example.org")).certificate, ca);
  }
}

TEST_P(PeerCertificateTest, DelegatedAddressesAreRefused) {
  // OpenSSL refuses them in a chain whose authority has none.
  const auto delegated = [](CertificateOptions* options) {
    options->resources = "critical,IPv4:10.0.0.0/8";
  };
  ExpectRefused(Leaf(Old(), delegated).certificate, Old().certificate,
                HandshakeFault::kBadCertificate, "RFC 3779");
}

// The names are refused whatever OpenSSL or our check would say of the rest.
TEST_P(PeerCertificateTest, NamesThatOthersDoNotSurviveAreRefused) {
  CertificateOptions ordinary;
  ordinary.authority = true;
  const Pem root = MakeCertificate(ordinary, nullptr);
  const struct {
    const char* alt_names;
    const char* words;
  } kNames[] = {
      // iPAddress of 0, 5 and 32 bytes.
      {"DER:30:02:87:00", "an IP address of 0 bytes"},
      {"DER:30:07:87:05:01:02:03:04:05", "an IP address of 5 bytes"},
      // dNSName "ab\0cd", rfc822Name, URI.
      {"DER:30:07:82:05:61:62:00:63:64", "a DNS name with a NUL inside"},
      {"DER:30:07:81:05:61:62:00:63:64", "a mail address with a NUL inside"},
      {"DER:30:07:86:05:61:62:00:63:64", "a URI with a NUL inside"},
  };
  for (const auto& names : kNames) {
    const auto odd = [&names](CertificateOptions* options) {
      options->alt_names = names.alt_names;
    };
    ExpectRefused(Leaf(Old(), odd).certificate, Old().certificate,
                  HandshakeFault::kBadCertificate, names.words);
    ordinary.authority = false;
    ordinary.subject = {{"CN", "leaf"}};
    ordinary.alt_names = names.alt_names;
    ExpectRefused(MakeCertificate(ordinary, &root).certificate,
                  root.certificate, HandshakeFault::kBadCertificate,
                  names.words);
  }
  // The rest of what an address or a name may be.
  const auto fine = [](CertificateOptions* options) {
    options->alt_names =
        "DNS:a.example.org,IP:10.0.0.1,IP:::1,email:a@b.c,URI:spiffe://x/y";
  };
  ExpectAccepted(Leaf(Old(), fine).certificate, Old().certificate);
  const auto no_text = [](CertificateOptions* options) {
    options->subject = {{"CN", "xyz"}};
    options->subject_type = V_ASN1_BIT_STRING;
  };
  ExpectRefused(Leaf(Old(), no_text).certificate, Old().certificate,
                HandshakeFault::kBadCertificate,
                "a common name that is no text");
}

TEST_P(PeerCertificateTest, AChangedBitIsRefused) {
  const std::string chain = Leaf(Old()).certificate;
  X509* leaf = Parse(chain)[0];
  unsigned char* der = nullptr;
  const int size = i2d_X509(leaf, &der);
  X509_free(leaf);
  int parsed = 0;
  // Each bit of a few bytes in every part, the signature included.
  for (int at = 40; at < size; at += 37) {
    der[at] ^= 1;
    const unsigned char* from = der;
    X509* changed = d2i_X509(nullptr, &from, size);
    ERR_clear_error();
    if (changed != nullptr) {
      ++parsed;
      BIO* out = BIO_new(BIO_s_mem());
      PEM_write_bio_X509(out, changed);
      char* data = nullptr;
      const long length = BIO_get_mem_data(out, &data);
      EXPECT_FALSE(
          Check(side(), std::string(data, length), Old().certificate).good)
          << at;
      BIO_free(out);
      X509_free(changed);
    }
    der[at] ^= 1;
  }
  OPENSSL_free(der);
  EXPECT_GT(parsed, 10);
}

TEST_P(PeerCertificateTest, EmptyCaRefusesEverybody) {
  ExpectRefused(Leaf(Old()).certificate, "", HandshakeFault::kUnknownAuthority,
                "ca.crt");
}

}  // namespace
}  // namespace fncache
