// SPDX-License-Identifier: Apache-2.0
// Schemas of an API server, against a real HTTP(S) server.
#include "runner/render/openapi_client.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/handshake_failure.h"
#include "common/mutex.h"
#include "common/tls_contexts.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runner/engine/fetched_schemas.h"
#include "tests/common/certificates.h"
#include "tests/common/test_data.h"
#include "tests/runner/render/api_server.h"
#include "text/json.h"

namespace fncache::runner::render {
namespace {

namespace fs = std::filesystem;
using ::fncache::testing::ApiServer;
using ::fncache::testing::MakeCertificate;
using ::fncache::testing::Pem;
using ::fncache::testing::TempDir;
using ::fncache::testing::WriteFile;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kIndex[] = R"({"paths": {
  "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=A"},
  "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=B"},
  "apis/odd/v1": {"serverRelativeURL": "//elsewhere/v1"},
  "apis/outside/v1": {"serverRelativeURL": "/elsewhere/v1"}}})";

std::string Document(const std::string& group, const std::string& type) {
  return absl::StrCat(R"({"components": {"schemas": {"Foo": {"type": ")", type,
                      R"(", "x-kubernetes-group-version-kind": [{"group": ")",
                      group, R"(", "version": "v1", "kind": "Foo"}]}}}})");
}

ApiServer::Answer Standard(const ApiServer::Request& request) {
  if (request.path == "/openapi/v3") return {200, kIndex, ""};
  if (request.path == "/openapi/v3/api/v1?hash=A") {
    return {200, Document("", "core"), ""};
  }
  if (request.path == "/openapi/v3/apis/apps/v1?hash=B") {
    return {200, Document("apps", "apps"), ""};
  }
  if (request.path == "/elsewhere/v1") {
    return {200, Document("outside", "outside"), ""};
  }
  return {404, "", ""};
}

std::unique_ptr<engine::SchemaSource> Source(OpenApiServer server) {
  auto client = OpenApiClient::Create(std::move(server));
  EXPECT_TRUE(client.ok()) << client.status();
  return engine::MakeFetchedSchemas(*std::move(client));
}

std::unique_ptr<engine::SchemaSource> Source(const std::string& url) {
  OpenApiServer server;
  server.url = url;
  return Source(std::move(server));
}

// Keeps the result of each Find: a schema's type, "none", or an error.
class Answers {
 public:
  std::function<void(engine::FoundSchema)> Done() {
    return [this](engine::FoundSchema found) {
      std::string answer = "none";
      if (!found.ok()) {
        answer = std::string(found.status().message());
      } else if (found->has_value()) {
        answer = (*found)->fields().at("type").string_value();
      }
      MutexLock lock(&mutex_);
      answers_.push_back(std::move(answer));
      changed_.SignalAll();
    };
  }
  std::vector<std::string> Wait(size_t count) {
    MutexLock lock(&mutex_);
    while (answers_.size() < count) {
      if (changed_.WaitWithTimeout(&mutex_, absl::Minutes(2))) {
        ADD_FAILURE() << "only " << answers_.size() << " answers";
        answers_.resize(count);
      }
    }
    return answers_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> answers_ ABSL_GUARDED_BY(mutex_);
};

std::string Find(engine::SchemaSource* source, const std::string& api_version,
                 const std::string& kind = "Foo") {
  Answers answers;
  source->Find(api_version, kind, absl::InfiniteFuture(), answers.Done());
  return answers.Wait(1)[0];
}

TEST(OpenApiSchemasTest, FindsKindsInTheServersDocuments) {
  const ApiServer server(Standard);
  const auto source = Source(server.url() + "/");
  EXPECT_EQ(Find(source.get(), "v1"), "core");
  EXPECT_EQ(Find(source.get(), "apps/v1"), "apps");
  EXPECT_EQ(Find(source.get(), "outside/v1"), "outside");
  EXPECT_EQ(Find(source.get(), "apps/v1", "Bar"), "none");
  EXPECT_EQ(Find(source.get(), "batch/v1"), "none");
  EXPECT_THAT(Find(source.get(), "a/b/c"), HasSubstr("a/b/c"));
}

TEST(OpenApiSchemasTest, NothingIsFetchedTwice) {
  const ApiServer server(Standard);
  const auto source = Source(server.url());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Find(source.get(), "v1"), "core");
    EXPECT_EQ(Find(source.get(), "v1", "Bar"), "none");
    EXPECT_EQ(Find(source.get(), "batch/v1"), "none");
  }
  EXPECT_EQ(server.requests().size(), 2u);  // the list, and one document
}

TEST(OpenApiSchemasTest, ThoseWhoAskAtOnceShareOneFetch) {
  Mutex mutex;
  CondVar changed;
  bool open = false;
  const ApiServer server([&](const ApiServer::Request& request) {
    MutexLock lock(&mutex);
    while (!open) changed.Wait(&mutex);
    return Standard(request);
  });
  const auto source = Source(server.url());
  Answers answers;
  for (int i = 0; i < 100; ++i)
    source->Find("v1", "Foo", absl::InfiniteFuture(), answers.Done());
  {
    MutexLock lock(&mutex);
    open = true;
    changed.SignalAll();
  }
  for (const std::string& answer : answers.Wait(100)) {
    EXPECT_EQ(answer, "core");
  }
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST(OpenApiSchemasTest, WhatFailedIsTriedAgainWhenAskedForAgain) {
  std::atomic<int> left{2};
  const ApiServer server([&](const ApiServer::Request& request) {
    if (left-- > 0) {
      return ApiServer::Answer{
          500, R"({"kind": "Status", "message": "etcd is away"})", ""};
    }
    return Standard(request);
  });
  const auto source = Source(server.url());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        Find(source.get(), "v1"),
        absl::StrCat(server.url(), "/openapi/v3: status 500: etcd is away"));
  }
  EXPECT_EQ(Find(source.get(), "v1"), "core");
}

TEST(OpenApiSchemasTest, PrefixOfTheUrlIsKept) {
  const ApiServer server([](const ApiServer::Request& request) {
    absl::string_view path = request.path;
    if (path == "/elsewhere/v1") return Standard(request);
    if (!absl::ConsumePrefix(&path, "/clusters/a")) {
      return ApiServer::Answer{404, "", ""};
    }
    return Standard({std::string(path), ""});
  });
  const auto source = Source(server.url() + "/clusters/a");
  EXPECT_EQ(Find(source.get(), "v1"), "core");
  // A path that is not below /openapi/v3 is where the server says.
  EXPECT_EQ(Find(source.get(), "outside/v1"), "outside");
}

TEST(OpenApiSchemasTest, TokenIsReadForEveryFetch) {
  const TempDir dir;
  const ApiServer server(Standard);
  OpenApiServer options;
  options.url = server.url();
  options.token_file = dir.File("token");
  WriteFile(options.token_file, "first-token\n");
  const auto source = Source(options);
  EXPECT_EQ(Find(source.get(), "v1"), "core");
  WriteFile(options.token_file, "second-token");
  EXPECT_EQ(Find(source.get(), "apps/v1"), "apps");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].authorization, "Bearer first-token");
  EXPECT_EQ(requests[1].authorization, "Bearer first-token");
  EXPECT_EQ(requests[2].authorization, "Bearer second-token");

  WriteFile(options.token_file, "line\nInjected: header");
  const std::string error = Find(source.get(), "outside/v1");
  EXPECT_THAT(error, HasSubstr(options.token_file));
  EXPECT_THAT(error, Not(HasSubstr("Injected")));
  fs::remove(options.token_file);
  EXPECT_THAT(Find(source.get(), "outside/v1"), HasSubstr(options.token_file));
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(OpenApiSchemasTest, WithoutATokenNoneIsSent) {
  const ApiServer server(Standard);
  const auto source = Source(server.url());
  EXPECT_EQ(Find(source.get(), "v1"), "core");
  EXPECT_EQ(server.requests().at(0).authorization, "");
}

TEST(OpenApiSchemasTest, RedirectsAreFollowedWithinTheServerOnly) {
  const ApiServer other(Standard);
  const ApiServer server([&](const ApiServer::Request& request) {
    if (request.path == "/openapi/v3/api/v1?hash=A") {
      // As an API server does once the document has changed.
      return ApiServer::Answer{301, "", "/elsewhere/new"};
    }
    if (request.path == "/elsewhere/new") {
      return ApiServer::Answer{200, Document("", "newer"), ""};
    }
    if (request.path == "/elsewhere/v1") {
      return ApiServer::Answer{302, "", "/elsewhere/v1"};
    }
    if (request.path == "/openapi/v3/apis/apps/v1?hash=B") {
      return ApiServer::Answer{302, "", other.url() + "/openapi/v3"};
    }
    return Standard(request);
  });
  const TempDir dir;
  OpenApiServer options;
  options.url = server.url();
  options.token_file = dir.File("token");
  WriteFile(options.token_file, "secret");
  const auto source = Source(options);
  EXPECT_EQ(Find(source.get(), "v1"), "newer");
  EXPECT_EQ(Find(source.get(), "apps/v1"),
            absl::StrCat(server.url(),
                         "/openapi/v3/apis/apps/v1?hash=B: redirects to "
                         "another server: ",
                         other.url(), "/openapi/v3"));
  EXPECT_TRUE(other.requests().empty());
  EXPECT_THAT(Find(source.get(), "outside/v1"),
              HasSubstr("redirects too often"));
}

TEST(OpenApiSchemasTest, ErrorsNameTheUrlAndWhatIsWrong) {
  const struct {
    ApiServer::Answer answer;
    const char* error;
  } kCases[] = {
      {{200, "{", ""}, "the answer is not JSON"},
      {{200, "[]", ""}, "it has no paths"},
      {{200, R"({"paths": []})", ""}, "it has no paths"},
      {{404, "404 page not found", ""}, "status 404"},
      {{403, R"({"message": "user \"u\" cannot get path"})", ""},
       "status 403: user \"u\" cannot get path"},
      {{401, "who\x1b[31m are you", ""}, "status 401: who\\x1b[31m are you"},
      {{200, std::string(kMaxOpenApiBytes + 1, ' '), ""},
       "the answer is larger than 64 MiB"},
  };
  for (const auto& one : kCases) {
    const ApiServer server(
        [&](const ApiServer::Request&) { return one.answer; });
    const auto source = Source(server.url());
    const std::string error = Find(source.get(), "v1");
    EXPECT_THAT(error, HasSubstr(server.url() + "/openapi/v3: "));
    EXPECT_THAT(error, HasSubstr(one.error));
  }
}

TEST(OpenApiSchemasTest, DocumentErrorsNameTheDocument) {
  const ApiServer server([](const ApiServer::Request& request) {
    if (request.path == "/openapi/v3/api/v1?hash=A") {
      return ApiServer::Answer{200, "no json", ""};
    }
    if (request.path == "/elsewhere/v1") return ApiServer::Answer{404, "", ""};
    return Standard(request);
  });
  const auto source = Source(server.url());
  EXPECT_THAT(Find(source.get(), "v1"),
              HasSubstr(server.url() +
                        "/openapi/v3/api/v1?hash=A: the answer is not JSON"));
  EXPECT_THAT(Find(source.get(), "odd/v1"),
              HasSubstr("paths.\"apis/odd/v1\".serverRelativeURL is no path"));
  EXPECT_EQ(Find(source.get(), "outside/v1"), "none");
  EXPECT_EQ(Find(source.get(), "apps/v1"), "apps");
}

TEST(OpenApiSchemasTest, ServerThatIsDownIsAnError) {
  std::string url;
  { url = ApiServer(Standard).url(); }
  const auto source = Source(url);
  EXPECT_THAT(Find(source.get(), "v1"), HasSubstr(url + "/openapi/v3: "));
}

// A server that keeps requests waiting until the test releases it.
class Stuck {
 public:
  Stuck()
      : server_([this](const ApiServer::Request&) {
          MutexLock lock(&mutex_);
          ++waiting_;
          changed_.SignalAll();
          while (!let_go_) changed_.Wait(&mutex_);
          return ApiServer::Answer{500, "", ""};
        }) {}
  void LetGo() {
    MutexLock lock(&mutex_);
    let_go_ = true;
    changed_.SignalAll();
  }
  void AwaitRequest() {
    MutexLock lock(&mutex_);
    while (waiting_ == 0) changed_.Wait(&mutex_);
  }
  const std::string& url() const { return server_.url(); }

 private:
  Mutex mutex_;
  CondVar changed_;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool let_go_ ABSL_GUARDED_BY(mutex_) = false;
  const ApiServer server_;
};

TEST(OpenApiSchemasTest, SilentServerIsGivenUp) {
  Stuck server;
  OpenApiServer options;
  options.url = server.url();
  options.timeout = absl::Milliseconds(200);
  const auto source = Source(options);
  EXPECT_EQ(Find(source.get(), "v1"),
            server.url() + "/openapi/v3: no whole answer within 200ms");
  server.LetGo();
}

TEST(OpenApiSchemasTest, DeadlineEndsTheFetch) {
  Stuck server;
  const auto source = Source(server.url());
  Answers answers;
  const absl::Time deadline = absl::Now() + absl::Milliseconds(200);
  source->Find("v1", "Foo", deadline, answers.Done());
  EXPECT_EQ(answers.Wait(1)[0],
            server.url() + "/openapi/v3: no whole answer in time");
  EXPECT_GE(absl::Now(), deadline);
  source->Find("v1", "Foo", deadline, answers.Done());  // not even begun
  EXPECT_EQ(answers.Wait(2)[1],
            server.url() + "/openapi/v3: no whole answer in time");
  server.LetGo();
}

TEST(OpenApiSchemasTest, DeadlineOfOneDoesNotFailTheOthers) {
  Stuck server;
  const auto source = Source(server.url());
  Answers hurried;
  Answers patient;
  source->Find("v1", "Foo", absl::Now() + absl::Seconds(1), hurried.Done());
  source->Find("v1", "Foo", absl::InfiniteFuture(), patient.Done());
  EXPECT_THAT(hurried.Wait(1)[0], HasSubstr("no whole answer in time"));
  server.LetGo();
  EXPECT_THAT(patient.Wait(1)[0], HasSubstr("status 500"));
}

TEST(OpenApiSchemasTest, DestructorAnswersWhatIsLeft) {
  Stuck server;
  auto source = Source(server.url());
  Answers answers;
  source->Find("v1", "Foo", absl::InfiniteFuture(), answers.Done());
  source->Find("v1", "Foo", absl::InfiniteFuture(), answers.Done());
  source->Find("apps/v1", "Foo", absl::InfiniteFuture(), answers.Done());
  server.AwaitRequest();
  source = nullptr;
  const auto left = answers.Wait(3);
  EXPECT_THAT(left[0], HasSubstr("cancelled"));
  EXPECT_THAT(left[1], HasSubstr("cancelled"));
  EXPECT_THAT(left[2], HasSubstr("no longer needed"));
  server.LetGo();
}

TEST(OpenApiSchemasTest, ProxiesOfTheEnvironmentAreNotUsed) {
  const ApiServer server(Standard);
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  const auto source = Source(server.url());
  EXPECT_EQ(Find(source.get(), "v1"), "core");
  unsetenv("http_proxy");
}

TEST(OpenApiSchemasTest, WhatIsNoServerIsRefusedWithTheReason) {
  const TempDir dir;
  WriteFile(dir.File("empty"), "\n");
  const std::string kUrl = "http://localhost";
  const absl::Duration kLong = absl::Seconds(30);
  const struct {
    std::string url;
    std::string token_file;
    std::string ca_file;
    absl::Duration timeout;
    std::string error;
  } kCases[] = {
      {"", "", "", kLong, "\"\" is not accepted"},
      {"localhost:6443", "", "", kLong, "is not accepted"},
      {"ftp://localhost", "", "", kLong, "it is none of http or https"},
      {"https://user:word@localhost", "", "", kLong, "it has a user name"},
      {"https://localhost/?a=b", "", "", kLong, "it has more than a path"},
      {"https://localhost/openapi/v3/", "", "", kLong, "it ends in /openapi"},
      {kUrl, dir.File("none"), "", kLong, dir.File("none")},
      {kUrl, dir.File("empty"), "", kLong, "holds no token"},
      {kUrl, "", dir.File("none"), kLong, dir.File("none")},
      {kUrl, "", dir.File("empty"), kLong, "holds no certificate"},
      {kUrl, "", "", absl::ZeroDuration(), "timeout: 0"},
  };
  for (const auto& one : kCases) {
    OpenApiServer server;
    server.url = one.url;
    server.token_file = one.token_file;
    server.ca_file = one.ca_file;
    server.timeout = one.timeout;
    const auto client = OpenApiClient::Create(server);
    EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(client.status().message()), HasSubstr(one.error));
  }
}

TEST(OpenApiSchemasTest, ATokenGoesOverHttpToThisMachineOnly) {
  const TempDir dir;
  OpenApiServer server;
  server.token_file = dir.File("token");
  WriteFile(server.token_file, "secret");
  for (const char* const url :
       {"http://localhost:8001", "http://LOCALHOST", "http://127.0.0.1:8001",
        "http://127.8.9.10", "http://[::1]:8001", "https://example.org"}) {
    server.url = url;
    EXPECT_TRUE(OpenApiClient::Create(server).ok()) << url;
  }
  for (const char* const url :
       {"http://example.org", "http://localhost.example.org",
        "http://10.0.0.1:8001", "http://128.0.0.1", "http://[::2]",
        "http://127.example.org", "HTTP://example.org"}) {
    server.url = url;
    const absl::Status status = OpenApiClient::Create(server).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(std::string(status.message()), HasSubstr("use https://"));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  }
  server.token_file = "";
  server.url = "http://example.org";
  EXPECT_TRUE(OpenApiClient::Create(server).ok());
}

TEST(OpenApiSchemasTest, CertificateMustComeFromTheCaFile) {
  const auto make = [](const std::string& name, const Pem* issuer) {
    return MakeCertificate(name, issuer, absl::Now() - absl::Hours(1),
                           absl::Now() + absl::Hours(10));
  };
  const Pem ca = make("ca", nullptr);
  const Pem other_ca = make("other ca", nullptr);
  const Pem pair = make("server", &ca);
  const TempDir dir;
  WriteFile(dir.File("ca.crt"), ca.certificate);
  WriteFile(dir.File("other.crt"), other_ca.certificate);
  const ApiServer server(Standard, &pair);
  ASSERT_TRUE(absl::StartsWith(server.url(), "https://"));
  OpenApiServer options;
  options.url = server.url();
  options.ca_file = dir.File("ca.crt");
  EXPECT_EQ(Find(Source(options).get(), "v1"), "core");
  for (const char* file : {"other.crt", ""}) {
    options.ca_file = *file == 0 ? "" : dir.File(file);
    EXPECT_THAT(Find(Source(options).get(), "v1"), HasSubstr("certificate"));
  }
  // Nor is a certificate taken for a host that it does not name.
  options.ca_file = dir.File("ca.crt");
  options.url = absl::StrReplaceAll(server.url(), {{"localhost", "127.0.0.2"}});
  EXPECT_NE(Find(Source(options).get(), "v1"), "core");
}

TEST(OpenApiSchemasTest, CertificatesAreLibcurlsBusiness) {
  // Functions' certificates are checked otherwise in the same process.
  SetUpTlsContexts();
  std::atomic<int> reported{0};
  const HandshakeObserver observer([&](const HandshakeFailure& failure) {
    reported += failure.side == TlsSide::kClient ? 1 : 0;
  });
  const Pem ca = MakeCertificate(testing::CrossplaneAuthority(), nullptr);
  const Pem pair = MakeCertificate(testing::CrossplaneServer(), &ca);
  const TempDir dir;
  WriteFile(dir.File("ca.crt"), ca.certificate);
  const ApiServer server(Standard, &pair);
  OpenApiServer options;
  options.url = server.url();
  options.ca_file = dir.File("ca.crt");
  EXPECT_THAT(Find(Source(options).get(), "v1"), HasSubstr("certificate"));
  EXPECT_EQ(reported, 0);
}

TEST(OpenApiSchemasTest, ServesRealDocuments) {
  const fs::path data = ::fncache::testing::DataFolder();
  if (!fs::is_directory(data / "openapi")) {
    GTEST_SKIP() << "no " << data / "openapi";
  }
  const ApiServer server([&](const ApiServer::Request& request) {
    if (request.path == "/openapi/v3") {
      return ApiServer::Answer{200, R"({"paths": {"apis/apps/v1":
        {"serverRelativeURL": "/openapi/v3/apis/apps/v1"}}})",
                               ""};
    }
    std::ifstream in(data / "openapi/apis__apps__v1_openapi.json");
    return ApiServer::Answer{
        200, std::string(std::istreambuf_iterator<char>(in), {}), ""};
  });
  const auto source = Source(server.url());
  EXPECT_EQ(Find(source.get(), "apps/v1", "Deployment"), "object");
}

}  // namespace
}  // namespace fncache::runner::render
