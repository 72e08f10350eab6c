// SPDX-License-Identifier: Apache-2.0
#include "proxy/shared_tier.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/certificates.h"
#include "tests/common/temp_dir.h"

namespace fncache::proxy {
namespace {

using ::fncache::testing::CertificateDir;
using ::fncache::testing::MakeCertificate;
using ::fncache::testing::Pem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SharedTierTest : public ::testing::Test {
 protected:
  SharedTierTest() {
    options_.url = "rediss://[::1]:6379";
    options_.secret_file = File("secret", kSecret + "\n");
  }

  std::string File(const std::string& name, const std::string& content) {
    const std::string path = absl::StrCat(dir_.path(), "/", name);
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string LoginWith(const SharedTier& tier) {
    const auto login = tier.client.login();
    return login.ok() && login->has_value()
               ? absl::StrCat((*login)->username, ":", (*login)->password)
               : "none";
  }
  void ExpectUnavailable(absl::string_view key, absl::string_view file) {
    const auto tier = ReadSharedTier(options_);
    ASSERT_FALSE(tier.ok());
    EXPECT_FALSE(absl::IsOutOfRange(tier.status()));
    EXPECT_THAT(tier.status().message(),
                AllOf(HasSubstr(absl::StrCat(key, ": ")), HasSubstr(file),
                      Not(HasSubstr(kSecret))));
  }

  const std::string kSecret = "a secret that has thirty-two byte";
  testing::TempDir dir_;
  settings::SharedOptions options_;
};

TEST_F(SharedTierTest, MakesTheOptionsOfTheClient) {
  options_.server_name = "cache";
  options_.prefix = "team";
  const auto tier = ReadSharedTier(options_);
  ASSERT_TRUE(tier.ok()) << tier.status();
  EXPECT_EQ(tier->secret, kSecret);
  EXPECT_TRUE(tier->client.endpoint.tls);
  EXPECT_EQ(tier->client.endpoint.host, "::1");
  EXPECT_EQ(tier->client.server_name, "cache");
  EXPECT_EQ(tier->client.connections, 6);
  EXPECT_THAT(tier->client.probe,
              ElementsAre("EVAL", "return 1", "1", "team:1:probe"));
  EXPECT_EQ(tier->client.login, nullptr);
  EXPECT_THAT(tier->warnings, IsEmpty());
}

TEST_F(SharedTierTest, ASecretOfAtLeastThirtyTwoBytesIsTaken) {
  for (const char* const end : {"", "\n"}) {
    options_.secret_file = File("secret", std::string(32, 's') + end);
    const auto tier = ReadSharedTier(options_);
    ASSERT_TRUE(tier.ok()) << tier.status();
    EXPECT_EQ(tier->secret, std::string(32, 's'));
    options_.secret_file = File("secret", std::string(31, 's') + end);
    const auto refused = ReadSharedTier(options_);
    EXPECT_TRUE(absl::IsOutOfRange(refused.status())) << refused.status();
    EXPECT_THAT(refused.status().message(),
                AllOf(HasSubstr(options_.secret_file),
                      HasSubstr("accepted: a file of at least 32 bytes"),
                      Not(HasSubstr("sss"))));
  }
  // One newline only.
  options_.secret_file = File("secret", std::string(31, 's') + "\n\n");
  EXPECT_EQ(ReadSharedTier(options_)->secret, std::string(31, 's') + "\n");
}

TEST_F(SharedTierTest, FilesThatCannotBeReadAreNamed) {
  const settings::SharedOptions good = options_;
  options_.secret_file = dir_.path() + "/gone";
  ExpectUnavailable("shared.secret_file", "/gone");
  options_.secret_file = dir_.path();
  ExpectUnavailable("shared.secret_file", dir_.path());
  options_.secret_file = File("large", std::string(65 << 10, 's'));
  ExpectUnavailable("shared.secret_file", "/large");
  options_ = good;
  options_.password_file = dir_.path() + "/gone";
  ExpectUnavailable("shared.password_file", "/gone");
  options_ = good;
  options_.tls_dir = dir_.path();
  ExpectUnavailable("shared.tls_dir", "/ca.crt");
}

TEST_F(SharedTierTest, CertificatesAreChecked) {
  const absl::Time now = absl::Now();
  const Pem ca = MakeCertificate("ca", nullptr, now - absl::Hours(2),
                                 now + absl::Hours(1));
  const Pem pair =
      MakeCertificate("me", &ca, now - absl::Hours(2), now - absl::Hours(1));
  const CertificateDir certificates(pair, ca.certificate);
  options_.tls_dir = certificates.path();
  const auto tier = ReadSharedTier(options_);
  ASSERT_TRUE(tier.ok()) << tier.status();
  EXPECT_EQ(tier->client.tls_dir, certificates.path());
  EXPECT_THAT(tier->warnings,
              ElementsAre(AllOf(HasSubstr("shared.tls_dir: "),
                                HasSubstr("/tls.crt"), HasSubstr("expired"))));
  std::filesystem::remove(certificates.path() + "/tls.key");
  ExpectUnavailable("shared.tls_dir", "/tls.key");
}

TEST_F(SharedTierTest, EachLoginReadsThePasswordAgain) {
  options_.username = "fleet";
  options_.password_file = File("password", "first\n");
  const auto tier = ReadSharedTier(options_);
  ASSERT_TRUE(tier.ok()) << tier.status();
  EXPECT_EQ(LoginWith(*tier), "fleet:first");
  File("password", "second");
  EXPECT_EQ(LoginWith(*tier), "fleet:second");
}

TEST_F(SharedTierTest, TheLastPasswordStaysWhileTheFileIsGone) {
  options_.password_file = File("password", "first\n");
  const auto tier = ReadSharedTier(options_);
  ASSERT_TRUE(tier.ok()) << tier.status();
  std::filesystem::remove(options_.password_file);
  EXPECT_EQ(LoginWith(*tier), ":first");
  File("password", "second");
  EXPECT_EQ(LoginWith(*tier), ":second");
}

}  // namespace
}  // namespace fncache::proxy
