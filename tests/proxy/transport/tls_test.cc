// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/tls.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/certificates.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::transport {
namespace {

using ::fncache::testing::MakeCertificate;
using ::fncache::testing::Pem;
using ::fncache::testing::TempDir;
using ::fncache::testing::WriteFile;

const absl::Duration kInterval = absl::Milliseconds(20);

Pem Make(const std::string& name, const Pem* issuer) {
  return MakeCertificate(name, issuer, absl::Now() - absl::Hours(1),
                         absl::Now() + absl::Hours(10));
}

// A directory as the kubelet mounts a Secret: files are links through ..data,
// and an update swaps that link.
class Secret {
 public:
  Secret(const Pem& pair, const std::string& ca) {
    Replace(pair.certificate, pair.key, ca);
    for (const char* name : {"tls.crt", "tls.key", "ca.crt"}) {
      if (ca.empty() && name[0] == 'c') continue;
      std::filesystem::create_symlink(absl::StrCat("..data/", name),
                                      dir_.File(name));
    }
  }
  void Replace(const std::string& certificate, const std::string& key,
               const std::string& ca) {
    const std::string version = absl::StrCat("..", ++version_);
    std::filesystem::create_directory(dir_.File(version));
    WriteFile(dir_.File(version + "/tls.crt"), certificate);
    WriteFile(dir_.File(version + "/tls.key"), key);
    if (!ca.empty()) WriteFile(dir_.File(version + "/ca.crt"), ca);
    std::filesystem::create_symlink(version, dir_.File("..new"));
    std::filesystem::rename(dir_.File("..new"), dir_.File("..data"));
  }
  const std::string& path() const { return dir_.path(); }

 private:
  TempDir dir_;
  int version_ = 0;
};

std::shared_ptr<grpc::ChannelCredentials> Trusting(const std::string& ca,
                                                   const Pem* identity) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ca;
  if (identity != nullptr) {
    options.pem_cert_chain = identity->certificate;
    options.pem_private_key = identity->key;
  }
  return grpc::SslCredentials(options);
}

// The code of one call on a channel.
grpc::StatusCode Try(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& authority = "") {
  TestCall call(channel, "/t.T/Count");
  call.context().set_deadline(std::chrono::system_clock::now() +
                              std::chrono::seconds(10));
  if (!authority.empty()) call.context().set_authority(authority);
  std::string answer;
  return call.Unary("x", &answer).error_code();
}

class ServerTlsTest : public ::testing::Test {
 protected:
  void Start(const std::string& dir) {
    auto watcher = TlsWatcher::Create(
        dir, TlsSide::kServer,
        [this](bool taken_up) { ++(taken_up ? taken_up_ : refused_); },
        kInterval);
    ASSERT_TRUE(watcher.ok()) << watcher.status();
    watcher_ = watcher->get();
    tls_ = std::make_unique<ServerTls>(*std::move(watcher));
    proxy_ =
        std::make_unique<TestProxy>(TestProxy::To(function_.target()),
                                    /*workers=*/1, /*tls=*/nullptr, tls_.get());
  }
  std::shared_ptr<grpc::Channel> Caller(const std::string& ca,
                                        const Pem* identity) {
    return Connect(proxy_->target(), Trusting(ca, identity));
  }

  const Pem ca_ = Make("ca", nullptr);
  const Pem pair_ = Make("server", &ca_);
  const Pem caller_ = Make("caller", &ca_);
  const Pem other_ca_ = Make("other ca", nullptr);
  const Pem other_pair_ = Make("other server", &other_ca_);
  const Pem other_caller_ = Make("other caller", &other_ca_);
  std::atomic<int> taken_up_{0};
  std::atomic<int> refused_{0};
  TestFunction function_;
  std::unique_ptr<ServerTls> tls_;
  const TlsWatcher* watcher_ = nullptr;  // of tls_
  std::unique_ptr<TestProxy> proxy_;
};

TEST_F(ServerTlsTest, WithoutCaNobodyNeedsACertificate) {
  Secret secret(pair_, "");
  Start(secret.path());
  EXPECT_EQ(Try(Caller(ca_.certificate, nullptr)), grpc::StatusCode::OK);
  EXPECT_EQ(Try(Caller(other_ca_.certificate, nullptr)),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ServerTlsTest, WithCaOnlyItsCertificatesAreServed) {
  Secret secret(pair_, ca_.certificate);
  Start(secret.path());
  EXPECT_EQ(Try(Caller(ca_.certificate, &caller_)), grpc::StatusCode::OK);
  EXPECT_EQ(Try(Caller(ca_.certificate, nullptr)),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Try(Caller(ca_.certificate, &other_caller_)),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(function_.calls, 1);
  EXPECT_EQ(watcher_->expiry(), watcher_->files()->earliest_expiry);
}

TEST_F(ServerTlsTest, ReplacedFilesAreUsedForNewHandshakesOnly) {
  Secret secret(pair_, ca_.certificate);
  Start(secret.path());
  const auto old = Caller(ca_.certificate, &caller_);
  TestCall stream(old, "/t.T/Echo");
  ASSERT_TRUE(stream.Start());
  ASSERT_TRUE(stream.Write("a"));
  secret.Replace(other_pair_.certificate, other_pair_.key,
                 other_ca_.certificate);
  ASSERT_TRUE(Eventually([&] { return taken_up_ == 1; }));
  EXPECT_EQ(Try(Caller(other_ca_.certificate, &other_caller_)),
            grpc::StatusCode::OK);
  EXPECT_EQ(Try(Caller(other_ca_.certificate, &caller_)),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Try(Caller(ca_.certificate, &caller_)),
            grpc::StatusCode::UNAVAILABLE);
  // The connection that was made before goes on.
  std::string back;
  EXPECT_TRUE(stream.Read(&back));
  EXPECT_EQ(Try(old), grpc::StatusCode::OK);
  EXPECT_TRUE(stream.HalfClose());
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(refused_, 0);
}

TEST_F(ServerTlsTest, BadPairKeepsTheOldOneAndIsCounted) {
  Secret secret(pair_, ca_.certificate);
  Start(secret.path());
  secret.Replace(other_pair_.certificate, pair_.key, ca_.certificate);
  ASSERT_TRUE(Eventually([&] { return refused_ == 1; }));
  EXPECT_EQ(Try(Caller(ca_.certificate, &caller_)), grpc::StatusCode::OK);
  secret.Replace("rubbish", pair_.key, ca_.certificate);
  ASSERT_TRUE(Eventually([&] { return refused_ == 2; }));
  EXPECT_EQ(Try(Caller(ca_.certificate, &caller_)), grpc::StatusCode::OK);
  // A ca.crt that vanishes must not let everybody in.
  secret.Replace(pair_.certificate, pair_.key, "");
  ASSERT_TRUE(Eventually([&] { return refused_ == 3; }));
  EXPECT_EQ(Try(Caller(ca_.certificate, nullptr)),
            grpc::StatusCode::UNAVAILABLE);
  secret.Replace(other_pair_.certificate, other_pair_.key,
                 other_ca_.certificate);
  ASSERT_TRUE(Eventually([&] { return taken_up_ == 1; }));
  EXPECT_EQ(Try(Caller(other_ca_.certificate, &other_caller_)),
            grpc::StatusCode::OK);
}

TEST_F(ServerTlsTest, MissingFilesAreRefusedAtStartByName) {
  TempDir empty;
  const auto watcher = TlsWatcher::Create(empty.path(), TlsSide::kServer);
  ASSERT_FALSE(watcher.ok());
  EXPECT_NE(watcher.status().message().find(empty.File("tls.crt")),
            absl::string_view::npos)
      << watcher.status();
}

class ClientTlsTest : public ::testing::Test {
 protected:
  static std::shared_ptr<grpc::ServerCredentials> Serving(
      const Pem& pair, const std::string& ca) {
    grpc::SslServerCredentialsOptions options(
        ca.empty()
            ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
            : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = ca;
    options.pem_key_cert_pairs.push_back({pair.key, pair.certificate});
    return grpc::SslServerCredentials(options);
  }
  void Start(const std::string& dir, const std::string& target,
             const std::string& server_name = "") {
    auto watcher = TlsWatcher::Create(
        dir, TlsSide::kClient, [this](bool ok) { taken_up_ += ok; }, kInterval);
    ASSERT_TRUE(watcher.ok()) << watcher.status();
    tls_ = std::make_unique<ClientTls>(*std::move(watcher));
    UpstreamOptions to;
    to.target = target;
    to.server_name = server_name;
    proxy_ = std::make_unique<TestProxy>(to, /*workers=*/1, tls_.get());
    channel_ = Connect(proxy_->target());
  }
  grpc::StatusCode TryFor(std::chrono::milliseconds patience) {
    TestCall call(channel_, "/t.T/Count");
    call.context().set_deadline(std::chrono::system_clock::now() + patience);
    std::string answer;
    return call.Unary("x", &answer).error_code();
  }

  const Pem ca_ = Make("ca", nullptr);
  const Pem pair_ = Make("function", &ca_);
  const Pem identity_ = Make("proxy", &ca_);
  const Pem other_ca_ = Make("other ca", nullptr);
  const Pem other_identity_ = Make("other proxy", &other_ca_);
  std::atomic<int> taken_up_{0};
  std::unique_ptr<ClientTls> tls_;
  std::unique_ptr<TestProxy> proxy_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(ClientTlsTest, FunctionThatWantsACertificateIsReached) {
  TestFunction function(Serving(pair_, ca_.certificate));
  Secret secret(identity_, ca_.certificate);
  Start(secret.path(), function.target());
  // The caller's authority passes whatever the function's certificate says.
  EXPECT_EQ(Try(channel_, "function-x.example:9443"), grpc::StatusCode::OK);
  EXPECT_EQ(function.last().host, "function-x.example:9443");
}

TEST_F(ClientTlsTest, ServerNameIsWhatTheCertificateIsCheckedFor) {
  TestFunction function(Serving(pair_, ""));
  Secret secret(identity_, ca_.certificate);
  Start(secret.path(), function.target(), "localhost");
  EXPECT_EQ(Try(channel_), grpc::StatusCode::OK);
  proxy_ = nullptr;
  Start(secret.path(), function.target(), "elsewhere.example");
  EXPECT_EQ(TryFor(std::chrono::milliseconds(500)),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(function.calls, 1);
}

TEST_F(ClientTlsTest, FunctionOfAnotherCaIsNotTrusted) {
  const Pem stranger = Make("function", &other_ca_);
  TestFunction function(Serving(stranger, ""));
  Secret secret(identity_, ca_.certificate);
  Start(secret.path(), function.target());
  EXPECT_EQ(TryFor(std::chrono::milliseconds(500)),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(function.calls, 0);
}

TEST_F(ClientTlsTest, ReplacedCertificatesGetANewChannelAndOldCallsFinish) {
  // The function accepts both identities; it tells us which by answering only.
  TestFunction function(
      Serving(pair_, ca_.certificate + other_ca_.certificate));
  Secret secret(identity_, ca_.certificate);
  Start(secret.path(), function.target());
  TestCall stream(channel_, "/t.T/Echo");
  ASSERT_TRUE(stream.Start());
  ASSERT_TRUE(stream.Write("a"));
  std::string back;
  ASSERT_TRUE(stream.Read(&back));
  secret.Replace(other_identity_.certificate, other_identity_.key,
                 ca_.certificate);
  ASSERT_TRUE(Eventually([&] { return taken_up_ == 1; }));
  EXPECT_EQ(Try(channel_), grpc::StatusCode::OK);
  ASSERT_TRUE(stream.Write("b"));
  ASSERT_TRUE(stream.Read(&back));
  ASSERT_TRUE(stream.HalfClose());
  EXPECT_TRUE(stream.Finish().ok());
  // Trusts no authority that the function has: only a new channel can notice.
  secret.Replace(other_identity_.certificate, other_identity_.key,
                 other_ca_.certificate);
  ASSERT_TRUE(Eventually([&] { return taken_up_ == 2; }));
  EXPECT_EQ(TryFor(std::chrono::milliseconds(500)),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace fncache::proxy::transport
