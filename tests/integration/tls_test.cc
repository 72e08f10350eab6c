// SPDX-License-Identifier: Apache-2.0
// TLS of the binary as people run it, with the very certificates that
// Crossplane issues.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/tls_contexts.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/certificates.h"
#include "tests/common/temp_dir.h"
#include "tests/common/tls_handshake.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using apiextensions::fn::proto::v1::FunctionRunnerService;
using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;
using ::testing::HasSubstr;

std::string Dir(const std::string& side) {
  return absl::StrCat(FNCACHE_SOURCE_DIR, "/tests/data/certificates/", side);
}
Pem Pair(const std::string& side) {
  return {ReadFile(Dir(side) + "/tls.crt"), ReadFile(Dir(side) + "/tls.key")};
}
std::string Ca() { return ReadFile(Dir("server") + "/ca.crt"); }

int PortOf(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return port;
}

// Crossplane, as far as certificates go.
grpc::Status CallAsCrossplane(const std::string& address,
                              RunFunctionResponse* response) {
  // Go accepts Crossplane's certificates as they are; gRPC C++ does not.
  SetUpTlsContexts();
  grpc::SslCredentialsOptions options;
  const Pem pair = Pair("client");
  options.pem_root_certs = Ca();
  options.pem_cert_chain = pair.certificate;
  options.pem_private_key = pair.key;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetSslTargetNameOverride("function-x.crossplane-system.svc");
  const auto stub = FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
      address, grpc::SslCredentials(options), arguments));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  RunFunctionRequest request;
  request.mutable_meta()->set_tag("t");
  request.mutable_observed()->mutable_composite()->mutable_resource();
  return stub->RunFunction(&context, request, response);
}

// A caller with raw TLS. False if the daemon ended the connection.
bool Handshakes(int port, SSL_CTX* context) {
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  SSL* const ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  bool good = SSL_connect(ssl) == 1;
  // With TLS 1.3 the verdict comes later: its SETTINGS are the first bytes of
  // a daemon that is content.
  char byte = 0;
  good = good && SSL_read(ssl, &byte, 1) == 1;
  SSL_free(ssl);
  close(fd);
  return good;
}

double Failed(const std::string& admin, const std::string& side,
              const std::string& reason) {
  return Sample(HttpGet(admin, "/metrics"),
                absl::StrCat("fncache_handshakes_failed_total{side=\"", side,
                             "\",reason=\"", reason, "\"}"));
}

class TlsProcessTest : public ::testing::Test {
 protected:
  // A daemon as Crossplane's sidecar. Function first, then admin.
  void Start(const std::vector<std::string>& upstream) {
    std::vector<std::string> arguments = {
        "serve",       "--tls-dir", Dir("server"), "--listen",
        "127.0.0.1:0", "--admin",   "127.0.0.1:0"};
    arguments.insert(arguments.end(), upstream.begin(), upstream.end());
    daemon_ = std::make_unique<Process>(arguments);
    ASSERT_TRUE(daemon_->WaitForStderr("listening on ", 2))
        << daemon_->Stderr();
    address_ = daemon_->Listening().at(0);
    admin_ = daemon_->Listening().at(1);
  }

  std::unique_ptr<Process> daemon_;
  std::string address_;
  std::string admin_;
};

TEST_F(TlsProcessTest, CrossplanesCertificatesOnEveryConnection) {
  Process function({"function", "--listen", "127.0.0.1:0", "--tls-dir",
                    Dir("server"), "--ttl", "1h"});
  ASSERT_TRUE(function.WaitForStderr("listening on "));
  Start({"--upstream", function.Listening().at(0), "--upstream-tls-dir",
         Dir("client"), "--upstream-server-name", "function-x"});
  RunFunctionResponse response;
  const grpc::Status status = CallAsCrossplane(address_, &response);
  EXPECT_TRUE(status.ok()) << status.error_message() << daemon_->Stderr()
                           << function.Stderr();
  EXPECT_EQ(response.meta().tag(), "t");
}

TEST_F(TlsProcessTest, CrossplanesCertificatesOverAUnixSocket) {
  const TempDir dir;
  const std::string address = absl::StrCat("unix:", dir.File("f.sock"));
  Process function({"function", "--listen", "127.0.0.1:0", "--tls-dir",
                    Dir("server"), "--ttl", "1h"});
  ASSERT_TRUE(function.WaitForStderr("listening on "));
  Process daemon({"serve", "--tls-dir", Dir("server"), "--listen", address,
                  "--admin", "", "--upstream", function.Listening().at(0),
                  "--upstream-tls-dir", Dir("client"), "--upstream-server-name",
                  "function-x"});
  ASSERT_TRUE(daemon.WaitForStderr("listening on "));
  RunFunctionResponse response;
  const grpc::Status status = CallAsCrossplane(address, &response);
  EXPECT_TRUE(status.ok()) << status.error_message() << daemon.Stderr();
  EXPECT_EQ(response.meta().tag(), "t");
}

TEST_F(TlsProcessTest, RefusedCallersAreCountedAndLoggedOnceASecond) {
  Start({"--upstream", "127.0.0.1:1"});
  const int port = PortOf(address_);
  const Pem authority = MakeCertificate(CrossplaneAuthority(), nullptr);
  const Pem stranger = MakeCertificate(CrossplaneClient(), &authority);
  const TlsContext context = MakeTlsContext(TlsSide::kClient, &stranger, "", 0);
  const absl::Time started = absl::Now();
  constexpr int kCallers = 100;
  for (int i = 0; i < kCallers; ++i) {
    ASSERT_FALSE(Handshakes(port, context.get()));
  }
  ASSERT_TRUE(daemon_->WaitForStderr(
      "TLS handshake with a caller failed: the caller's certificate is signed "
      "by another authority than that of the same name in ca.crt, or by "
      "itself"));
  EXPECT_EQ(Failed(admin_, "listener", "unknown_authority"), kCallers);
  const std::vector<std::string> lines =
      absl::StrSplit(daemon_->Stderr(), '\n');
  const auto said =
      std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
        return absl::StrContains(line, "TLS handshake with a caller failed");
      });
  EXPECT_LE(said, 1 + absl::ToInt64Seconds(absl::Now() - started));
  // Valid callers are still served.
  const Pem client = Pair("client");
  EXPECT_TRUE(
      Handshakes(port, MakeTlsContext(TlsSide::kClient, &client, "", 0).get()));
}

// gRPC has lines of its own for these, as many as there are callers.
TEST_F(TlsProcessTest, RefusedCallersOfAFunctionAreLoggedOnceASecond) {
  Process function(
      {"function", "--listen", "127.0.0.1:0", "--tls-dir", Dir("server")});
  ASSERT_TRUE(function.WaitForStderr("listening on "));
  const TlsContext context = MakeTlsContext(TlsSide::kClient, nullptr, "", 0);
  const absl::Time started = absl::Now();
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(Handshakes(PortOf(function.Listening().at(0)), context.get()));
  }
  ASSERT_TRUE(function.WaitForStderr(
      "TLS handshake with a caller failed: the caller shows no certificate"));
  const std::vector<std::string> lines =
      absl::StrSplit(function.Stderr(), '\n', absl::SkipEmpty());
  EXPECT_LE(lines.size(), 2 + absl::ToInt64Seconds(absl::Now() - started))
      << function.Stderr();
}

// `key: tag` trusts every client that may call.
TEST_F(TlsProcessTest, TagsWithoutCallersCertificatesWarn) {
  const TempDir dir;
  for (const char* file : {"tls.crt", "tls.key"}) {
    WriteFile(dir.File(file), ReadFile(Dir("server") + "/" + file));
  }
  const auto check = [](const std::string& tls_dir) {
    Process serve({"serve", "--check", "--tls-dir", tls_dir, "--upstream",
                   "127.0.0.1:1", "--key", "tag"});
    EXPECT_EQ(serve.Wait(), 0);
    return serve.Stderr();
  };
  EXPECT_THAT(check(dir.path()), HasSubstr("without ca.crt anyone may be one"));
  EXPECT_EQ(check(Dir("server")), "");
}

TEST_F(TlsProcessTest, NobodyResumesASession) {
  Start({"--upstream", "127.0.0.1:1"});
  const Pem client = Pair("client");
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const TlsContext context =
        MakeTlsContext(TlsSide::kClient, &client, "", version);
    EXPECT_TRUE(Handshakes(PortOf(address_), context.get()));
    // The daemon gave nothing to resume with.
    EXPECT_EQ(SSL_CTX_sess_number(context.get()), 0) << version;
  }
}

// Most servers just close a connection that does not begin with TLS.
TEST_F(TlsProcessTest, AFunctionThatWantsTlsIsToldAsOneThatMay) {
  Process function(
      {"function", "--listen", "127.0.0.1:0", "--tls-dir", Dir("server")});
  ASSERT_TRUE(function.WaitForStderr("listening on "));
  Start({"--upstream", function.Listening().at(0)});
  std::thread caller([this] {
    RunFunctionResponse response;
    CallAsCrossplane(address_, &response);
  });
  EXPECT_TRUE(daemon_->WaitForStderr("so it may want TLS"));
  daemon_->Signal(SIGKILL);
  caller.join();
}

TEST_F(TlsProcessTest, FunctionsThatAreRefusedAreCountedAndLogged) {
  // Its certificate is for function-x and localhost.
  Process function(
      {"function", "--listen", "127.0.0.1:0", "--tls-dir", Dir("server")});
  ASSERT_TRUE(function.WaitForStderr("listening on "));
  Start({"--upstream", function.Listening().at(0), "--upstream-tls-dir",
         Dir("client"), "--upstream-server-name", "function-y"});
  std::thread caller([this] {
    RunFunctionResponse response;
    CallAsCrossplane(address_, &response);
  });
  EXPECT_TRUE(daemon_->WaitForStderr(
      "TLS handshake with a function failed: the function's certificate is not "
      "for function-y (upstream_server_name) reason=wrong_name "
      "certificate=\"CN=Crossplane for function-x, "
      "function-x.crossplane-system, function-x.crossplane-system.svc, "
      "localhost\""));
  EXPECT_GE(Failed(admin_, "upstream", "wrong_name"), 1);
  daemon_->Signal(SIGKILL);
  caller.join();
}

}  // namespace
}  // namespace fncache::testing
