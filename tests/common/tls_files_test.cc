// SPDX-License-Identifier: Apache-2.0
#include "common/tls_files.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/certificates.h"

namespace fncache {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::EncryptedKey;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeCertificate;
using testing::Pem;
using testing::TempDir;
using testing::WriteFile;

class TlsFilesTest : public ::testing::Test {
 protected:
  TlsFilesTest()
      : now_(absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()))),
        ca_(MakeCertificate("ca", nullptr, now_ - absl::Hours(1),
                            now_ + absl::Hours(1000))),
        pair_(MakeCertificate("function", &ca_, now_ - absl::Hours(1),
                              now_ + absl::Hours(10))) {
    Put("tls.crt", pair_.certificate);
    Put("tls.key", pair_.key);
    Put("ca.crt", ca_.certificate);
  }

  void Put(const std::string& name, const std::string& content) {
    WriteFile(dir_.File(name), content);
  }
  void Remove(const std::string& name) {
    std::filesystem::remove_all(dir_.File(name));
  }
  absl::StatusOr<TlsFiles> Read(TlsSide side = TlsSide::kServer) {
    return ReadTlsFiles(dir_.path(), side, now_);
  }
  // The read fails and the message names the file.
  void ExpectRefused(const std::string& file, absl::StatusCode code,
                     const std::string& why, TlsSide side = TlsSide::kServer) {
    const auto files = Read(side);
    ASSERT_FALSE(files.ok());
    EXPECT_EQ(files.status().code(), code) << files.status();
    EXPECT_THAT(files.status().message(),
                AllOf(HasSubstr(dir_.File(file) + ": "), HasSubstr(why)));
  }

  const absl::Time now_;
  const Pem ca_;
  const Pem pair_;
  TempDir dir_;
};

TEST_F(TlsFilesTest, ReadsAllThreeOnBothSides) {
  for (const TlsSide side : {TlsSide::kServer, TlsSide::kClient}) {
    const auto files = Read(side);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(files->certificate, pair_.certificate);
    EXPECT_EQ(files->key, pair_.key);
    EXPECT_EQ(files->ca, ca_.certificate);
    EXPECT_EQ(files->earliest_expiry, now_ + absl::Hours(10));
    EXPECT_THAT(files->warnings, IsEmpty());
  }
}

TEST_F(TlsFilesTest, AServerNeedsThePairOnly) {
  Remove("ca.crt");
  const auto files = Read();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->ca, "");
  Remove("tls.key");
  ExpectRefused("tls.key", absl::StatusCode::kNotFound, "No such file");
  Remove("tls.crt");
  ExpectRefused("tls.crt", absl::StatusCode::kNotFound, "No such file");
}

TEST_F(TlsFilesTest, AClientNeedsTheAuthorityAndNoHalfPair) {
  Remove("tls.crt");
  ExpectRefused("tls.crt", absl::StatusCode::kNotFound, "No such file",
                TlsSide::kClient);
  Remove("tls.key");
  const auto files = Read(TlsSide::kClient);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->certificate, "");
  EXPECT_EQ(files->key, "");
  EXPECT_EQ(files->earliest_expiry, now_ + absl::Hours(1000));
  Put("tls.crt", pair_.certificate);
  ExpectRefused("tls.key", absl::StatusCode::kNotFound, "No such file",
                TlsSide::kClient);
  Remove("ca.crt");
  Put("tls.key", pair_.key);
  ExpectRefused("ca.crt", absl::StatusCode::kNotFound, "No such file",
                TlsSide::kClient);
}

// As a volume with a Secret replaces them: its directory is another one.
TEST_F(TlsFilesTest, FilesThatAreReplacedAtOnceAreOfOneSet) {
  const Pem other_ca = MakeCertificate("other", nullptr, now_ - absl::Hours(1),
                                       now_ + absl::Hours(1000));
  const Pem other = MakeCertificate(
      "function", &other_ca, now_ - absl::Hours(1), now_ + absl::Hours(10));
  for (const bool is_other : {false, true}) {
    const std::string set = is_other ? "..other/" : "..first/";
    std::filesystem::create_directory(dir_.File(set));
    Put(set + "tls.crt", (is_other ? other : pair_).certificate);
    Put(set + "tls.key", (is_other ? other : pair_).key);
    Put(set + "ca.crt", (is_other ? other_ca : ca_).certificate);
  }
  std::filesystem::create_symlink("..first", dir_.File("..data"));
  for (const char* const name : {"tls.crt", "tls.key", "ca.crt"}) {
    Remove(name);
    std::filesystem::create_symlink(absl::StrCat("..data/", name),
                                    dir_.File(name));
  }
  std::atomic<int> readings{0};
  std::atomic<bool> done{false};
  std::thread replacer([&] {
    bool is_other = true;
    // At most two replacements during one reading.
    for (int seen = 0; !done;) {
      if (readings == seen) {
        std::this_thread::yield();
        continue;
      }
      seen = readings;
      std::filesystem::create_symlink(is_other ? "..other" : "..first",
                                      dir_.File("..new"));
      std::filesystem::rename(dir_.File("..new"), dir_.File("..data"));
      is_other = !is_other;
    }
  });
  int others = 0;
  for (int i = 0; i < 1000 || others == 0; ++i) {
    ++readings;
    const auto files = Read();
    EXPECT_TRUE(files.ok()) << files.status();
    if (!files.ok()) break;
    const bool is_other = files->certificate == other.certificate;
    others += is_other;
    EXPECT_EQ(files->key, (is_other ? other : pair_).key);
    EXPECT_EQ(files->ca, (is_other ? other_ca : ca_).certificate);
  }
  done = true;
  replacer.join();
}

TEST_F(TlsFilesTest, AMissingDirectoryNamesTheFile) {
  const auto files = ReadTlsFiles(dir_.File("nowhere"), TlsSide::kServer, now_);
  EXPECT_EQ(files.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(files.status().message(), HasSubstr("nowhere/tls.crt"));
}

TEST_F(TlsFilesTest, AnEmptyAuthorityIsNotAnAbsentOne) {
  Put("ca.crt", "");
  ExpectRefused("ca.crt", absl::StatusCode::kInvalidArgument, "no certificate");
}

TEST_F(TlsFilesTest, RefusesWhatDoesNotParse) {
  Put("tls.crt", "hello");
  ExpectRefused("tls.crt", absl::StatusCode::kInvalidArgument,
                "no certificate");
  std::string damaged = pair_.certificate;
  damaged.erase(100, 64);
  Put("tls.crt", pair_.certificate + damaged);
  ExpectRefused("tls.crt", absl::StatusCode::kInvalidArgument,
                "certificate 2 cannot be parsed");
  Put("tls.crt", pair_.certificate.substr(0, 200));
  ExpectRefused("tls.crt", absl::StatusCode::kInvalidArgument,
                "certificate 1 cannot be parsed");
  Put("tls.crt", pair_.certificate);
  Put("tls.key", pair_.certificate);
  ExpectRefused("tls.key", absl::StatusCode::kInvalidArgument,
                "no private key");
  Put("tls.key", pair_.key.substr(0, 100));
  ExpectRefused("tls.key", absl::StatusCode::kInvalidArgument, "parse");
}

TEST_F(TlsFilesTest, RefusesAnEncryptedKeyWithoutAsking) {
  Put("tls.key", EncryptedKey(pair_.key));
  ExpectRefused("tls.key", absl::StatusCode::kInvalidArgument, "encrypted");
}

TEST_F(TlsFilesTest, RefusesAnotherCertificatesKey) {
  Put("tls.key", ca_.key);
  ExpectRefused("tls.key", absl::StatusCode::kInvalidArgument,
                "not the key of the certificate in " + dir_.File("tls.crt"));
}

TEST_F(TlsFilesTest, AChainCountsForTheExpiryAndItsFirstForTheKey) {
  const Pem soon =
      MakeCertificate("intermediate", nullptr, now_, now_ + absl::Hours(3));
  Put("tls.crt", pair_.certificate + soon.certificate);
  const auto files = Read();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->earliest_expiry, now_ + absl::Hours(3));
  Put("tls.crt", soon.certificate + pair_.certificate);
  ExpectRefused("tls.key", absl::StatusCode::kInvalidArgument, "not the key");
}

TEST_F(TlsFilesTest, ExpiredAndNotYetValidWarn) {
  const Pem old = MakeCertificate("function", &ca_, now_ - absl::Hours(3),
                                  now_ - absl::Hours(2));
  Put("tls.crt", old.certificate);
  Put("tls.key", old.key);
  const Pem future = MakeCertificate("ca", nullptr, now_ + absl::Hours(2),
                                     now_ + absl::Hours(3));
  Put("ca.crt", future.certificate);
  const auto files = Read();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->earliest_expiry, now_ - absl::Hours(2));
  EXPECT_THAT(
      files->warnings,
      ElementsAre(AllOf(HasSubstr(dir_.File("tls.crt")), HasSubstr("expired")),
                  AllOf(HasSubstr(dir_.File("ca.crt")),
                        HasSubstr("not valid before"))));
}

TEST_F(TlsFilesTest, AnAuthorityThatIsNoneWarns) {
  // A leaf among those to trust.
  Put("ca.crt",
      ca_.certificate + MakeCertificate("leaf", &ca_, now_ - absl::Hours(1),
                                        now_ + absl::Hours(1))
                            .certificate);
  const auto files = Read();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->warnings,
              ElementsAre(AllOf(HasSubstr(dir_.File("ca.crt")),
                                HasSubstr("certificate 2 is no authority"))));
}

TEST_F(TlsFilesTest, RefusesWhatIsNoRegularFileWithoutHanging) {
  Remove("tls.crt");
  ASSERT_EQ(mkfifo(dir_.File("tls.crt").c_str(), 0600), 0);
  ExpectRefused("tls.crt", absl::StatusCode::kFailedPrecondition,
                "not a regular file");
  Remove("tls.crt");
  ASSERT_EQ(mkdir(dir_.File("tls.crt").c_str(), 0700), 0);
  ExpectRefused("tls.crt", absl::StatusCode::kFailedPrecondition,
                "not a regular file");
  Remove("tls.crt");
  Put("tls.crt", std::string((1 << 20) + 1, '\n'));
  ExpectRefused("tls.crt", absl::StatusCode::kFailedPrecondition,
                "1048576 bytes");
}

TEST_F(TlsFilesTest, UnreadableIsSaidSo) {
  // A link to itself fails for every user, root included.
  Remove("tls.key");
  std::filesystem::create_symlink("tls.key", dir_.File("tls.key"));
  ExpectRefused("tls.key", absl::StatusCode::kPermissionDenied, "levels");
}

TEST_F(TlsFilesTest, FollowsTheLinksOfAKubernetesMount) {
  const std::string data = dir_.File("..2026_11_21");
  ASSERT_EQ(mkdir(data.c_str(), 0700), 0);
  for (const char* name : {"tls.crt", "tls.key", "ca.crt"}) {
    std::filesystem::rename(dir_.File(name), data + "/" + name);
    std::filesystem::create_symlink(std::string("..data/") + name,
                                    dir_.File(name));
  }
  std::filesystem::create_symlink("..2026_11_21", dir_.File("..data"));
  const auto files = Read();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->certificate, pair_.certificate);
}

// gRPC would keep the old files without a word.
TEST_F(TlsFilesTest, WhatTlsDoesNotAcceptIsRefused) {
  testing::CertificateOptions options;
  options.rsa_bits = 1024;
  const Pem weak = MakeCertificate(options, &ca_);
  Put("tls.crt", weak.certificate);
  Put("tls.key", weak.key);
  ExpectRefused("tls.crt", absl::StatusCode::kInvalidArgument,
                "ee key too small");
  options.rsa_bits = 0;
  options.alt_names = "DER:30:07:87:05:01:02:03:04:05";
  const Pem odd = MakeCertificate(options, &ca_);
  Put("tls.crt", odd.certificate);
  Put("tls.key", odd.key);
  ExpectRefused("tls.crt", absl::StatusCode::kInvalidArgument,
                "an IP address of 5 bytes");
}

TEST_F(TlsFilesTest, BytesBehindACertificateInItsBlockAreRefused) {
  // The block of `pem` with a NULL of ASN.1 behind the certificate.
  const auto longer = [](const std::string& pem) {
    std::string der;
    const size_t start = pem.find('\n') + 1;
    EXPECT_TRUE(absl::Base64Unescape(
        pem.substr(start, pem.find("-----END") - start), &der));
    der += std::string("\5\0", 2);
    std::string base64 = absl::Base64Escape(der);
    for (size_t at = 64; at < base64.size(); at += 65) base64.insert(at, "\n");
    return "-----BEGIN CERTIFICATE-----\n" + base64 +
           "\n-----END CERTIFICATE-----\n";
  };
  Put("ca.crt", ca_.certificate + longer(ca_.certificate));
  ExpectRefused("ca.crt", absl::StatusCode::kInvalidArgument,
                "certificate 2 cannot be parsed");
  Put("ca.crt", ca_.certificate);
  Put("tls.crt", longer(pair_.certificate));
  ExpectRefused("tls.crt", absl::StatusCode::kInvalidArgument,
                "certificate 1 cannot be parsed");
}

}  // namespace
}  // namespace fncache
