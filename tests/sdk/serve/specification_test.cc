// SPDX-License-Identifier: Apache-2.0
// Crossplane's specification of composition functions, sentence by sentence, in
// the order of its text (contributing/specifications/functions.md in
// Crossplane's repository). Each test has the sentence in our words.
//
// No test of the SDK can show the sentences that bind authors and packages:
// - A FATAL result is only for what is to end the whole pipeline.
// - A function changes outside systems through composed resources only, does
// not
//   talk to the API server, and does not rely on a network.
// - Package and name, which sdk/template writes.
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/method.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "proto/function_v1beta1.grpc.pb.h"
#include "tests/common/certificates.h"
#include "tests/common/loopback_socket.h"
#include "tests/sdk/serve/process.h"
#include "tests/sdk/serve/serving.h"

namespace fncache::sdk::serve {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

class SpecificationTest : public ::testing::Test, public Serving {
 protected:
  static v1::RunFunctionRequest Request(const std::string& json) {
    v1::RunFunctionRequest request;
    const auto status =
        google::protobuf::util::JsonStringToMessage(json, &request);
    EXPECT_TRUE(status.ok()) << status;
    return request;
  }
  // A request with desired state of an earlier step.
  static v1::RunFunctionRequest Pipeline() {
    return Request(R"({
      "meta": {"tag": "sha256:abc"},
      "observed": {"composite": {"resource": {
        "apiVersion": "example.org/v1", "kind": "X",
        "metadata": {"name": "x"}, "spec": {"region": "eu"}}}},
      "desired": {
        "composite": {"resource": {"status": {"earlier": true}}},
        "resources": {
          "one": {"resource": {"apiVersion": "example.org/v1", "kind": "One",
                               "spec": {"size": 1, "kept": [1, 2]}},
                  "ready": "READY_TRUE"},
          "two": {"resource": {"apiVersion": "example.org/v1", "kind": "Two",
                               "spec": {"deep": {"null": null}}}}}},
      "context": {"example.org/key": {"a": ["b"]}}})");
  }
  const google::protobuf::Struct& Desired(const std::string& name) const {
    return response.desired().resources().at(name).resource();
  }
};

// -- Serving requests

TEST_F(SpecificationTest, ImplementsTheServiceInItsLatestVersion) {
  Start();
  EXPECT_TRUE(Call(Pipeline()).ok());
}

TEST_F(SpecificationTest, ImplementsTheVersionBeforeForOlderRunners) {
  Start();
  namespace v1beta1 = apiextensions::fn::proto::v1beta1;
  grpc::ClientContext context;
  v1beta1::RunFunctionRequest request;
  ASSERT_TRUE(request.ParseFromString(Pipeline().SerializeAsString()));
  v1beta1::RunFunctionResponse older;
  EXPECT_TRUE(v1beta1::FunctionRunnerService::NewStub(channel)
                  ->RunFunction(&context, request, &older)
                  .ok());
  ASSERT_TRUE(Call(Pipeline()).ok());
  EXPECT_EQ(older.meta().tag(), response.meta().tag());
  EXPECT_EQ(older.desired().resources_size(), 2);
}

TEST_F(SpecificationTest, TagIsCopiedAndNotChanged) {
  Start();
  for (const char* tag : {"", "sha256:abc", "\xe2\x82\xac \"quoted\"\n"}) {
    ASSERT_TRUE(Call(Tagged(tag)).ok());
    EXPECT_EQ(response.meta().tag(), tag);
  }
}

TEST_F(SpecificationTest, NothingDependsOnTheTag) {
  Start([](function::Context& ctx) {
    ctx.resource("three", "example.org/v1", "Three")["spec"]["region"] =
        ctx.composite().observed()["spec"]["region"];
  });
  v1::RunFunctionRequest request = Pipeline();
  ASSERT_TRUE(Call(request).ok());
  v1::RunFunctionResponse first = response;
  request.mutable_meta()->set_tag("another");
  ASSERT_TRUE(Call(request).ok());
  first.mutable_meta()->set_tag("another");
  EXPECT_TRUE(MessageDifferencer::Equals(response, first));
}

TEST_F(SpecificationTest, ResponseHasATtl) {
  Start();
  ASSERT_TRUE(Call(Pipeline()).ok());
  EXPECT_EQ(response.meta().ttl().seconds(), 60);
}

TEST_F(SpecificationTest, TtlIsWhatTheFunctionSays) {
  Start([](function::Context& ctx) { ctx.ttl(absl::Minutes(10)); });
  ASSERT_TRUE(Call(Pipeline()).ok());
  EXPECT_EQ(response.meta().ttl().seconds(), 600);
}

TEST_F(SpecificationTest, DesiredStateWithoutOpinionPassesThrough) {
  Start();
  const v1::RunFunctionRequest request = Pipeline();
  ASSERT_TRUE(Call(request).ok());
  EXPECT_TRUE(
      MessageDifferencer::Equals(response.desired(), request.desired()));
  EXPECT_TRUE(
      MessageDifferencer::Equals(response.context(), request.context()));
}

TEST_F(SpecificationTest, ResourcesMayBeAdded) {
  Start([](function::Context& ctx) {
    ctx.resource("three", "example.org/v1", "Three")["spec"]["size"] = 3;
  });
  const v1::RunFunctionRequest request = Pipeline();
  ASSERT_TRUE(Call(request).ok());
  EXPECT_EQ(response.desired().resources_size(), 3);
  EXPECT_EQ(Desired("three").fields().at("kind").string_value(), "Three");
  EXPECT_TRUE(
      MessageDifferencer::Equals(response.desired().resources().at("one"),
                                 request.desired().resources().at("one")));
}

TEST_F(SpecificationTest, FieldsOfResourcesMayBeAdded) {
  Start([](function::Context& ctx) {
    ctx.resource("one", "example.org/v1", "One")["spec"]["more"] = "yes";
  });
  ASSERT_TRUE(Call(Pipeline()).ok());
  const auto& spec = Desired("one").fields().at("spec").struct_value().fields();
  EXPECT_EQ(spec.at("more").string_value(), "yes");
  EXPECT_EQ(spec.at("size").number_value(), 1);
  EXPECT_EQ(spec.at("kept").list_value().values_size(), 2);
  EXPECT_EQ(response.desired().resources().at("one").ready(), v1::READY_TRUE);
}

TEST_F(SpecificationTest, ResourcesMayBeRemovedOnPurposeOnly) {
  Start([](function::Context& ctx) { ctx.remove("one"); });
  ASSERT_TRUE(Call(Pipeline()).ok());
  EXPECT_EQ(response.desired().resources_size(), 1);
  EXPECT_EQ(response.desired().resources().count("two"), 1u);
}

TEST_F(SpecificationTest, OfTheCompositeOnlyStatusIsDesired) {
  Start([](function::Context& ctx) {
    ctx.composite()["status"]["region"] =
        ctx.composite().observed()["spec"]["region"];
  });
  ASSERT_TRUE(Call(Pipeline()).ok());
  const auto& fields = response.desired().composite().resource().fields();
  EXPECT_EQ(fields.count("spec"), 0u);
  EXPECT_EQ(fields.count("metadata"), 0u);
  const auto& status = fields.at("status").struct_value().fields();
  EXPECT_EQ(status.at("region").string_value(), "eu");
  EXPECT_TRUE(status.at("earlier").bool_value());
}

TEST_F(SpecificationTest, ComposedResourcesGetNoNameOrStatusOfTheSdks) {
  Start([](function::Context& ctx) {
    ctx.resource("three", "example.org/v1", "Three")["spec"]["size"] = 3;
  });
  ASSERT_TRUE(Call(Pipeline()).ok());
  EXPECT_EQ(Desired("three").fields().count("status"), 0u);
  EXPECT_EQ(Desired("three").fields().count("metadata"), 0u);
}

TEST_F(SpecificationTest, ExternalNamesMayBeSet) {
  Start([](function::Context& ctx) {
    ctx.resource("three", "example.org/v1", "Three").external_name("cloud-3");
  });
  ASSERT_TRUE(Call(Pipeline()).ok());
  EXPECT_EQ(Desired("three")
                .fields()
                .at("metadata")
                .struct_value()
                .fields()
                .at("annotations")
                .struct_value()
                .fields()
                .at("crossplane.io/external-name")
                .string_value(),
            "cloud-3");
}

TEST_F(SpecificationTest, NameOfAnotherKindIsNoSilentConflict) {
  Start([](function::Context& ctx) {
    ctx.resource("one", "example.org/v1", "Other")["spec"]["size"] = 3;
  });
  const v1::RunFunctionRequest request = Pipeline();
  ASSERT_TRUE(Call(request).ok());
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(response.results(0).severity(), v1::SEVERITY_FATAL);
  EXPECT_TRUE(
      MessageDifferencer::Equals(response.desired(), request.desired()));
}

TEST_F(SpecificationTest, NoResultIsSentWithoutAReason) {
  Start([](function::Context& ctx) {
    ctx.resource("three", "example.org/v1", "Three")["spec"]["size"] = 3;
  });
  ASSERT_TRUE(Call(Pipeline()).ok());
  EXPECT_EQ(response.results_size(), 0);
}

// -- Configuration

TEST_F(SpecificationTest, DebugIsAFlagThatIsOffByDefault) {
  Process quiet(kPlain);
  EXPECT_TRUE(serve::Call(quiet.address()).ok());
  std::vector<std::string> flags = kPlain;
  flags.insert(flags.end(), {"--debug", "--log-format=json"});
  Process debug(flags);
  EXPECT_TRUE(serve::Call(debug.address()).ok());
  EXPECT_TRUE(debug.Logs("call"));
  EXPECT_EQ(quiet.Field("call", "msg"), "");
}

TEST_F(SpecificationTest, InsecureTurnsTransportSecurityOff) {
  Process process(kPlain);
  EXPECT_TRUE(serve::Call(process.address()).ok());
}

TEST_F(SpecificationTest, TransportSecurityIsOnUnlessInsecureIsGiven) {
  Process process({"--address", "127.0.0.1:0"});
  EXPECT_EQ(process.Wait(), 2);
  EXPECT_THAT(process.Err(), HasSubstr("--insecure or --tls-certs-dir"));
}

class SpecificationTlsTest : public SpecificationTest {
 protected:
  SpecificationTlsTest() {
    const absl::Time from = absl::Now() - absl::Hours(1);
    const absl::Time until = absl::Now() + absl::Hours(1);
    authority_ = testing::MakeCertificate("authority", nullptr, from, until);
    caller_ = testing::MakeCertificate("runner", &authority_, from, until);
    dir_ = std::make_unique<testing::CertificateDir>(
        testing::MakeCertificate("function", &authority_, from, until),
        authority_.certificate);
  }
  grpc::Status CallWith(const std::string& address,
                        const testing::Pem* caller) {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = authority_.certificate;
    if (caller != nullptr) {
      ssl.pem_private_key = caller->key;
      ssl.pem_cert_chain = caller->certificate;
    }
    grpc::ClientContext context;
    v1::RunFunctionResponse answer;
    return v1::FunctionRunnerService::NewStub(
               Connect(address, grpc::SslCredentials(ssl)))
        ->RunFunction(&context, {}, &answer);
  }

  testing::Pem authority_, caller_;
  std::unique_ptr<testing::CertificateDir> dir_;
};

TEST_F(SpecificationTlsTest, CertificatesComeFromTheFlagsFolder) {
  Process process({"--address", "127.0.0.1:0",
                   "--metrics-address=", "--tls-certs-dir", dir_->path()});
  const std::string address = process.address();
  EXPECT_TRUE(CallWith(address, &caller_).ok());
  // ca.crt decides about callers.
  EXPECT_FALSE(CallWith(address, nullptr).ok());
  EXPECT_FALSE(serve::Call(address).ok());
}

TEST_F(SpecificationTlsTest, CertificatesComeFromTheEnvironmentsFolder) {
  Process process({"--address", "127.0.0.1:0", "--metrics-address="},
                  {"TLS_SERVER_CERTS_DIR=" + dir_->path()});
  EXPECT_TRUE(CallWith(process.address(), &caller_).ok());
}

TEST_F(SpecificationTlsTest, InsecureWinsOverCertificates) {
  std::vector<std::string> flags = kPlain;
  flags.insert(flags.end(), {"--tls-certs-dir", dir_->path()});
  Process process(flags);
  EXPECT_TRUE(serve::Call(process.address()).ok());
}

TEST_F(SpecificationTest, ListensOn9443WithAndWithoutTransportSecurity) {
  EXPECT_EQ(function::ServerOptions().address, ":9443");
  Process process({"--help"});
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_THAT(process.Out(), HasSubstr("(default :9443)"));
}

}  // namespace
}  // namespace fncache::sdk::serve
