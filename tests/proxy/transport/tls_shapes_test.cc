// SPDX-License-Identifier: Apache-2.0
// Certificates of every shape that real authorities issue, and of many that
// must be refused, through a listener and towards a function.
#include <signal.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/handshake_failure.h"
#include "common/tls_contexts.h"
#include "gtest/gtest.h"
#include "proxy/transport/tls.h"
#include "tests/common/certificates.h"
#include "tests/common/handshake_failures.h"
#include "tests/common/loopback_socket.h"
#include "tests/common/tls_handshake.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::transport {
namespace {

using ::fncache::testing::CertificateDir;
using ::fncache::testing::CertificateOptions;
using ::fncache::testing::CrossplaneAuthority;
using ::fncache::testing::CrossplaneClient;
using ::fncache::testing::CrossplaneServer;
using ::fncache::testing::MakeCertificate;
using ::fncache::testing::Pem;
using ::fncache::testing::ReadFile;
using ::fncache::testing::WriteFile;

using Change = std::function<void(CertificateOptions*)>;

// RSA keys are dear to make: leaves share one.
Pem Make(CertificateOptions options, const Pem* issuer,
         const Change& change = nullptr) {
  if (change != nullptr) change(&options);
  static const std::string key =
      MakeCertificate(CrossplaneServer(), nullptr).key;
  if (options.rsa_bits == 2048 && !options.authority) options.key = key;
  return MakeCertificate(options, issuer);
}

void Ecdsa(CertificateOptions* options) { options->rsa_bits = 0; }

// The certificates that both ends of a connection have.
struct Shape {
  std::string name;
  std::string ca;
  Pem server;
  Pem client;
};

Shape OfAuthority(const std::string& name, const Pem& authority,
                  const Change& change = nullptr) {
  return {name, authority.certificate,
          Make(CrossplaneServer(), &authority, change),
          Make(CrossplaneClient(), &authority, change)};
}

const Pem& Authority() {
  static const auto* const made =
      new Pem(MakeCertificate(CrossplaneAuthority(), nullptr));
  return *made;
}
const Pem& OtherAuthority() {
  static const auto* const made =
      new Pem(MakeCertificate(CrossplaneAuthority(), nullptr));
  return *made;
}

Shape Recorded() {
  const std::string dir =
      std::string(FNCACHE_SOURCE_DIR) + "/tests/data/certificates/";
  const auto pair = [&dir](const std::string& side) {
    return Pem{ReadFile(dir + side + "/tls.crt"),
               ReadFile(dir + side + "/tls.key")};
  };
  return {"Recorded", ReadFile(dir + "server/ca.crt"), pair("server"),
          pair("client")};
}

Shape WithIntermediate() {
  CertificateOptions options;
  options.key_identifiers = true;
  options.authority = true;
  options.subject = {{"CN", "root"}};
  const Pem root = MakeCertificate(options, nullptr);
  options.subject = {{"CN", "intermediate"}};
  const Pem intermediate = MakeCertificate(options, &root);
  options.authority = false;
  options.subject = {{"CN", "leaf"}};
  const auto leaf = [&] {
    Pem made = MakeCertificate(options, &intermediate);
    made.certificate += intermediate.certificate;
    return made;
  };
  return {"Intermediate", root.certificate, leaf(), leaf()};
}

// The old and the new authority of one subject; leaves of the old one.
Shape TwoAuthorities(bool old_first) {
  Shape shape = OfAuthority(old_first ? "OldFirst" : "NewFirst", Authority());
  shape.ca = old_first ? Authority().certificate + OtherAuthority().certificate
                       : OtherAuthority().certificate + Authority().certificate;
  return shape;
}

const std::vector<Shape>& Shapes() {
  static const auto* const shapes = new std::vector<Shape>{
      OfAuthority("Crossplane", Authority()),
      Recorded(),
      WithIntermediate(),
      TwoAuthorities(/*old_first=*/true),
      TwoAuthorities(/*old_first=*/false),
      OfAuthority("EcdsaLeaf", Authority(), &Ecdsa),
      OfAuthority("EcdsaLeafOfAnotherName", Authority(),
                  [](CertificateOptions* options) {
                    Ecdsa(options);
                    options->subject = {{"CN", "someone"}};
                  }),
  };
  return *shapes;
}

// A certificate of a peer that must not be let in, which may come with those
// above it in its chain, and the fault that it has.
struct Bad {
  std::string name;
  HandshakeFault fault;
  Pem pem;
};

std::vector<Bad> BadPeers(TlsSide peer) {
  const CertificateOptions good =
      peer == TlsSide::kServer ? CrossplaneServer() : CrossplaneClient();
  const CertificateOptions other_side =
      peer == TlsSide::kServer ? CrossplaneClient() : CrossplaneServer();
  const Pem intermediate = MakeCertificate(CrossplaneAuthority(), &Authority());
  Pem chain = Make(good, &intermediate);
  chain.certificate += intermediate.certificate;
  std::vector<Bad> bad = {
      {"another authority of the name", HandshakeFault::kUnknownAuthority,
       Make(good, &OtherAuthority())},
      {"self-signed", HandshakeFault::kUnknownAuthority, Make(good, nullptr)},
      {"the authority itself", HandshakeFault::kWrongUsage, Authority()},
      {"expired", HandshakeFault::kExpired,
       Make(good, &Authority(),
            [](CertificateOptions* options) {
              options->from = absl::Now() - absl::Hours(2);
              options->until = absl::Now() - absl::Hours(1);
            })},
      {"not yet valid", HandshakeFault::kNotYetValid,
       Make(good, &Authority(),
            [](CertificateOptions* options) {
              options->from = absl::Now() + absl::Hours(1);
            })},
      {"the other side's usage", HandshakeFault::kWrongUsage,
       Make(other_side, &Authority())},
      {"a chain of two", HandshakeFault::kUnknownAuthority, chain},
      {"a leaf marked CA", HandshakeFault::kWrongUsage,
       Make(good, &Authority(),
            [](CertificateOptions* options) { options->authority = true; })},
  };
  if (peer == TlsSide::kServer) {
    bad.push_back({"wrong name", HandshakeFault::kWrongName,
                   Make(good, &Authority(), [](CertificateOptions* options) {
                     options->alt_names = "DNS:elsewhere.example.org";
                   })});
  }
  return bad;
}

grpc::StatusCode TryFor(const std::shared_ptr<grpc::Channel>& channel,
                        std::chrono::milliseconds patience) {
  TestCall call(channel, "/t.T/Count");
  call.context().set_deadline(std::chrono::system_clock::now() + patience);
  std::string answer;
  return call.Unary("x", &answer).error_code();
}

grpc::StatusCode Try(const std::shared_ptr<grpc::Channel>& channel) {
  return TryFor(channel, std::chrono::seconds(20));
}

// Files that one side watches, and the watcher's reports on them.
struct Watched {
  explicit Watched(const Pem& pair, const std::string& ca, TlsSide side)
      : dir(pair, ca) {
    auto made = TlsWatcher::Create(
        dir.path(), side, [this](bool ok) { ++(ok ? taken_up : refused); },
        absl::Milliseconds(20));
    if (!made.ok()) std::abort();
    watcher = *std::move(made);
    watching = watcher.get();
  }
  // One file after the other, as an editor would: the watcher may see halves.
  void Replace(const Pem& pair, const std::string& ca) const {
    WriteFile(dir.path() + "/tls.crt", pair.certificate);
    WriteFile(dir.path() + "/tls.key", pair.key);
    WriteFile(dir.path() + "/ca.crt", ca);
  }
  // Whether the watcher has taken these up.
  bool AreUsed(const Pem& pair, const std::string& ca) const {
    const auto files = watching->files();
    return files->certificate == pair.certificate && files->key == pair.key &&
           files->ca == ca;
  }

  const CertificateDir dir;
  std::atomic<int> taken_up{0};
  std::atomic<int> refused{0};
  // The user of the files takes the watcher, and keeps it as long as this.
  std::unique_ptr<TlsWatcher> watcher;
  const TlsWatcher* watching = nullptr;
};

class TlsShapesTest : public ::testing::Test {
 protected:
  // Before the peers of this process make contexts of their own.
  TlsShapesTest() { SetUpTlsContexts(); }

  // Callers of a listener.
  struct Server {
    Server(const Pem& pair, const std::string& ca)
        : files(pair, ca, TlsSide::kServer), tls(std::move(files.watcher)) {
      proxy = std::make_unique<TestProxy>(TestProxy::To(function.target()),
                                          /*workers=*/1, /*tls=*/nullptr, &tls);
    }
    std::shared_ptr<grpc::Channel> Caller(const Pem& identity,
                                          const std::string& ca) const {
      grpc::SslCredentialsOptions options;
      options.pem_root_certs = ca;
      options.pem_cert_chain = identity.certificate;
      options.pem_private_key = identity.key;
      return Connect(absl::StrCat("localhost:", proxy->listener().port()),
                     grpc::SslCredentials(options));
    }

    Watched files;
    ServerTls tls;
    TestFunction function;
    std::unique_ptr<TestProxy> proxy;
  };

  // A function behind an upstream, and a caller in plaintext.
  struct Client {
    Client(ClientTls* tls, const Pem& server, const std::string& callers_ca)
        : function(Serving(server, callers_ca)) {
      const std::string target = absl::StrCat("localhost:", function.port());
      proxy = std::make_unique<TestProxy>(TestProxy::To(target), /*workers=*/1,
                                          tls);
      channel = Connect(proxy->target());
    }
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

    TestFunction function;
    std::unique_ptr<TestProxy> proxy;
    std::shared_ptr<grpc::Channel> channel;
  };

  // The upstreams' files.
  struct ClientFiles {
    ClientFiles(const Pem& identity, const std::string& ca)
        : files(identity, ca, TlsSide::kClient),
          tls(std::move(files.watcher)) {}
    Watched files;
    ClientTls tls;
  };

  // Faults that the side met since the last look.
  std::vector<HandshakeFault> Faults(TlsSide side) {
    std::vector<HandshakeFault> faults;
    for (const HandshakeFailure& failure : failures_.Take()) {
      if (failure.side == side) faults.push_back(failure.fault);
    }
    return faults;
  }

  // No call on the channel gets through, and this is why.
  void ExpectRefused(const std::shared_ptr<grpc::Channel>& channel,
                     HandshakeFault fault) {
    std::vector<HandshakeFault> seen;
    EXPECT_TRUE(Eventually([&] {
      EXPECT_NE(TryFor(channel, std::chrono::milliseconds(200)),
                grpc::StatusCode::OK);
      for (const HandshakeFault one : Faults(TlsSide::kClient)) {
        seen.push_back(one);
      }
      // An earlier channel's last attempt may end only now.
      return std::find(seen.begin(), seen.end(), fault) != seen.end();
    })) << "not "
        << HandshakeFaultName(fault)
        << (seen.empty() ? "" : HandshakeFaultName(seen.back()));
  }

  testing::HandshakeFailures failures_;
};

TEST_F(TlsShapesTest, ListenerAcceptsEach) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape.name);
    const Server server(shape.server, shape.ca);
    EXPECT_EQ(Try(server.Caller(shape.client, shape.ca)), grpc::StatusCode::OK);
  }
  EXPECT_TRUE(Faults(TlsSide::kServer).empty());
}

TEST_F(TlsShapesTest, UpstreamAcceptsEach) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape.name);
    ClientFiles ours(shape.client, shape.ca);
    const Client client(&ours.tls, shape.server, shape.ca);
    EXPECT_EQ(Try(client.channel), grpc::StatusCode::OK);
  }
  EXPECT_TRUE(Faults(TlsSide::kClient).empty());
}

TEST_F(TlsShapesTest, ListenerRefusesBadCallersAndSaysWhy) {
  const Shape good = OfAuthority("", Authority());
  const Server server(good.server, good.ca);
  for (const Bad& bad : BadPeers(TlsSide::kClient)) {
    SCOPED_TRACE(bad.name);
    EXPECT_EQ(Try(server.Caller(bad.pem, good.ca)),
              grpc::StatusCode::UNAVAILABLE);
    const auto faults = Faults(TlsSide::kServer);
    ASSERT_FALSE(faults.empty());
    for (const HandshakeFault fault : faults) EXPECT_EQ(fault, bad.fault);
  }
  EXPECT_EQ(server.function.calls, 0);
  EXPECT_EQ(Try(server.Caller(good.client, good.ca)), grpc::StatusCode::OK);
}

TEST_F(TlsShapesTest, UpstreamRefusesBadFunctionsAndSaysWhy) {
  const Shape good = OfAuthority("", Authority());
  ClientFiles ours(good.client, good.ca);
  for (const Bad& bad : BadPeers(TlsSide::kServer)) {
    SCOPED_TRACE(bad.name);
    const Client client(&ours.tls, bad.pem, "");
    ExpectRefused(client.channel, bad.fault);
    EXPECT_EQ(client.function.calls, 0);
  }
}

// A function that finishes no handshake, and says why, as Go's do. (gRPC's own
// server hangs up without a word.)
class RefusingFunction {
 public:
  RefusingFunction(const Pem& pair, const std::string& ca)
      : context_(testing::MakeTlsContext(TlsSide::kServer, &pair, ca)) {
    // OpenSSL writes without MSG_NOSIGNAL.
    signal(SIGPIPE, SIG_IGN);
    listening_.Listen(8);
    thread_ = std::thread([this] { Serve(); });
  }
  ~RefusingFunction() {
    listening_.Shutdown();
    thread_.join();
  }
  std::string target() const {
    return absl::StrCat("localhost:", listening_.port());
  }

 private:
  void Serve() {
    for (int fd = listening_.Accept(); fd >= 0; fd = listening_.Accept()) {
      SSL* const ssl = SSL_new(context_.get());
      SSL_set_fd(ssl, fd);
      EXPECT_NE(SSL_accept(ssl), 1);
      SSL_free(ssl);
      close(fd);
    }
  }

  testing::LoopbackSocket listening_;
  const testing::TlsContext context_;
  std::thread thread_;
};

TEST_F(TlsShapesTest, FunctionThatRefusesUsIsSeen) {
  const Shape good = OfAuthority("", Authority());
  const RefusingFunction function(good.server, OtherAuthority().certificate);
  ClientFiles ours(good.client, good.ca);
  const TestProxy proxy(TestProxy::To(function.target()), /*workers=*/1,
                        &ours.tls);
  // The function's words may be overtaken by its hanging up.
  ExpectRefused(Connect(proxy.target()), HandshakeFault::kRefusedByPeer);
}

// A walk that goes from each kind of shape to each other: 0 1, 0 2, ... 1 2,
// and so on.
std::vector<const Shape*> FromEachToEach() {
  std::vector<const Shape*> kinds;
  for (const Shape& shape : Shapes()) {
    if (shape.name != "Recorded" && shape.name != "NewFirst" &&
        shape.name != "EcdsaLeafOfAnotherName") {
      kinds.push_back(&shape);
    }
  }
  std::vector<const Shape*> walk = {kinds[0]};
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (walk.back() != kinds[i]) walk.push_back(kinds[i]);
    for (size_t j = i + 1; j < kinds.size(); ++j) {
      walk.push_back(kinds[j]);
      walk.push_back(kinds[i]);
    }
  }
  return walk;
}

TEST_F(TlsShapesTest, ListenerReloadsFromEachToEach) {
  Server server(Shapes()[0].server, Shapes()[0].ca);
  for (const Shape* shape : FromEachToEach()) {
    SCOPED_TRACE(shape->name);
    server.files.Replace(shape->server, shape->ca);
    ASSERT_TRUE(Eventually(
        [&] { return server.files.AreUsed(shape->server, shape->ca); }));
    EXPECT_EQ(Try(server.Caller(shape->client, shape->ca)),
              grpc::StatusCode::OK);
  }
}

TEST_F(TlsShapesTest, ListenerForgetsTheAuthorityThatWasReplaced) {
  const Shape old = OfAuthority("", Authority());
  const Shape fresh = OfAuthority("", OtherAuthority());
  Server server(old.server, old.ca);
  EXPECT_EQ(Try(server.Caller(old.client, old.ca)), grpc::StatusCode::OK);
  server.files.Replace(fresh.server, fresh.ca);
  ASSERT_TRUE(
      Eventually([&] { return server.files.AreUsed(fresh.server, fresh.ca); }));
  Faults(TlsSide::kServer);
  EXPECT_EQ(Try(server.Caller(old.client, fresh.ca)),
            grpc::StatusCode::UNAVAILABLE);
  const auto faults = Faults(TlsSide::kServer);
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults[0], HandshakeFault::kUnknownAuthority);
  EXPECT_EQ(Try(server.Caller(fresh.client, fresh.ca)), grpc::StatusCode::OK);
}

TEST_F(TlsShapesTest, UpstreamReloadsFromEachToEach) {
  // One function for each shape; our files go from one to the next.
  ClientFiles ours(Shapes()[0].client, Shapes()[0].ca);
  std::map<const Shape*, std::unique_ptr<Client>> clients;
  for (const Shape* shape : FromEachToEach()) {
    SCOPED_TRACE(shape->name);
    std::unique_ptr<Client>& client = clients[shape];
    if (client == nullptr) {
      client = std::make_unique<Client>(&ours.tls, shape->server, shape->ca);
    }
    ours.files.Replace(shape->client, shape->ca);
    ASSERT_TRUE(Eventually(
        [&] { return ours.files.AreUsed(shape->client, shape->ca); }));
    EXPECT_EQ(Try(client->channel), grpc::StatusCode::OK);
  }
}

TEST_F(TlsShapesTest, UpstreamForgetsTheAuthorityThatWasReplaced) {
  const Shape old = OfAuthority("", Authority());
  const Shape fresh = OfAuthority("", OtherAuthority());
  ClientFiles ours(old.client, old.ca);
  const Client client(&ours.tls, old.server, old.ca);
  EXPECT_EQ(Try(client.channel), grpc::StatusCode::OK);
  ours.files.Replace(old.client, fresh.ca);
  ASSERT_TRUE(
      Eventually([&] { return ours.files.AreUsed(old.client, fresh.ca); }));
  ExpectRefused(client.channel, HandshakeFault::kUnknownAuthority);
}

}  // namespace
}  // namespace fncache::proxy::transport
