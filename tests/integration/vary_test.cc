// SPDX-License-Identifier: Apache-2.0
// `vary: on` in a daemon of its own process: hints after a restart, reloads,
// look-ups and purges of operators, and what is reported.
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/mutex.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/eventually.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Answers with the composite's spec.size and how many runs there were, and
// sends a hint to callers behind a daemon.
class Function final : public fn::FunctionRunnerService::Service {
 public:
  Function() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Function() override { server_->Shutdown(); }
  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Status RunFunction(grpc::ServerContext* context,
                           const fn::RunFunctionRequest* request,
                           fn::RunFunctionResponse* response) override {
    const MutexLock lock(&mutex_);
    ++runs_;
    *response->mutable_meta()->mutable_tag() = request->meta().tag();
    response->mutable_meta()->mutable_ttl()->set_seconds(3600);
    const auto& object = request->observed().composite().resource().fields();
    const auto& spec = object.at("spec").struct_value().fields();
    response->add_results()->set_message(
        absl::StrCat(spec.at("size").string_value(), " run ", runs_));
    const auto loop = context->client_metadata().find("cdn-loop");
    if (loop != context->client_metadata().end() &&
        absl::StartsWith(
            absl::string_view(loop->second.data(), loop->second.size()),
            "fncache-")) {
      context->AddTrailingMetadata("fncache-depends", hint_);
    }
    return grpc::Status::OK;
  }
  int runs() const {
    const MutexLock lock(&mutex_);
    return runs_;
  }
  void SetHint(const std::string& hint) {
    const MutexLock lock(&mutex_);
    hint_ = hint;
  }

 private:
  mutable Mutex mutex_;
  int runs_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string hint_ ABSL_GUARDED_BY(mutex_) =
      "reads=(\"observed.composite.resource.spec.size\")";
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

fn::RunFunctionRequest Of(const std::string& size, const std::string& name) {
  fn::RunFunctionRequest request;
  request.mutable_meta()->set_tag(absl::StrCat(size, name));
  auto& object = *request.mutable_observed()
                      ->mutable_composite()
                      ->mutable_resource()
                      ->mutable_fields();
  object["kind"].set_string_value("Bucket");
  (*object["metadata"].mutable_struct_value()->mutable_fields())["name"]
      .set_string_value(name);
  (*object["spec"].mutable_struct_value()->mutable_fields())["size"]
      .set_string_value(size);
  return request;
}

class VaryTest : public ::testing::Test {
 protected:
  std::string Settings(const std::string& more) const {
    return absl::StrCat("insecure: true\nlisten: \"127.0.0.1:0\"\nupstream: \"",
                        function_.target(),
                        "\"\nadmin: \"127.0.0.1:0\"\ndrain: 1s\n", more);
  }
  void Start(const std::string& settings = "vary: on\n") {
    WriteFile(file_, Settings(settings));
    process_ = std::make_unique<Process>(std::vector<std::string>{
        "serve", "--config", file_, "--admin-socket", socket_});
    ASSERT_TRUE(process_->WaitForStderr("(admin:")) << process_->Stderr();
    grpc::ChannelArguments channel;
    channel.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    channel.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = fn::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
        process_->Listening()[0], grpc::InsecureChannelCredentials(), channel));
  }
  std::string Admin(std::vector<std::string> arguments, int code = 0) {
    arguments.insert(arguments.begin(), {"admin", "--socket", socket_});
    Process admin(arguments);
    EXPECT_EQ(admin.Wait(), code) << admin.Stderr();
    return code == 0 ? admin.Stdout() : admin.Stderr();
  }
  std::string Get(const std::string& path) const {
    return HttpGet(process_->Listening()[1], path);
  }
  double Metric(const std::string& name) const {
    return Sample(Get("/metrics"),
                  absl::StrCat(name, "{function_name=\"function\"}"));
  }
  // The cache-status after "fncache; ", and in text_ the message.
  std::string Call(const fn::RunFunctionRequest& request) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    fn::RunFunctionResponse response;
    const grpc::Status status =
        stub_->RunFunction(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.meta().tag(), request.meta().tag());
    hints_ = context.GetServerTrailingMetadata().count("fncache-depends");
    text_ = response.results_size() == 0 ? "" : response.results(0).message();
    const auto header = context.GetServerInitialMetadata().find("cache-status");
    return header == context.GetServerInitialMetadata().end()
               ? ""
               : std::string(header->second.data(), header->second.size())
                     .substr(9);
  }
  bool HitsByHint(const fn::RunFunctionRequest& request) {
    const std::string status = Call(request);
    return absl::StartsWith(status, "hit; ") &&
           absl::EndsWith(status, "; detail=hint");
  }

  TempDir dir_;
  const std::string file_ = dir_.File("fncache.yaml");
  const std::string socket_ = dir_.File("admin.sock");
  Function function_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<fn::FunctionRunnerService::Stub> stub_;
  std::string text_;
  size_t hints_ = 0;  // that the last response had
};

TEST_F(VaryTest, AfterARestartTheFirstResponseBringsTheHintAgain) {
  const std::string disk = absl::StrCat(
      "vary: on\ngeneration: g\ncache: {dir: \"", dir_.File("cache"), "\"}\n");
  Start(disk);
  EXPECT_THAT(Call(Of("1", "a")), StartsWith("fwd=miss; stored"));
  EXPECT_TRUE(HitsByHint(Of("1", "b")));
  ASSERT_TRUE(Eventually([&] {
    return Sample(Get("/metrics"), "fncache_tier_entries{tier=\"disk\"}") == 1;
  }));
  process_->Signal(SIGTERM);
  EXPECT_EQ(process_->Wait(), 0);
  Start(disk);
  EXPECT_EQ(Metric("fncache_vary_hints"), 0);
  EXPECT_THAT(Call(Of("2", "a")), StartsWith("fwd=miss; stored"));
  EXPECT_TRUE(HitsByHint(Of("1", "c")));
  EXPECT_EQ(text_, "1 run 1");
  EXPECT_EQ(function_.runs(), 2);
}

TEST_F(VaryTest, AReloadSwitchesIt) {
  Start();
  Call(Of("1", "a"));
  EXPECT_EQ(hints_, 0u) << "it is for the daemon";
  EXPECT_TRUE(HitsByHint(Of("1", "b")));
  WriteFile(file_, Settings("vary: off\n"));
  EXPECT_THAT(Admin({"reload"}), HasSubstr("vary"));
  EXPECT_THAT(Call(Of("1", "c")), HasSubstr("fwd=miss"));
  EXPECT_EQ(hints_, 1u) << "it passes as it came";
  WriteFile(file_, Settings("vary: on\n"));
  Admin({"reload"});
  // Entries by hint may be older than answers and purges of the time without.
  EXPECT_THAT(Call(Of("1", "d")), StartsWith("fwd=miss; stored"));
  EXPECT_TRUE(HitsByHint(Of("1", "a")));
  EXPECT_EQ(text_, "1 run 3");
  WriteFile(file_, Settings("vary: on\nkey: tag\n"));
  const std::string error = Admin({"reload"}, 1);
  EXPECT_THAT(error, HasSubstr("vary: contradicts key: tag"));
  EXPECT_TRUE(HitsByHint(Of("1", "e")));
}

TEST_F(VaryTest, ItContradictsKeyTag) {
  WriteFile(file_, Settings("vary: on\nkey: tag\n"));
  Process check({"serve", "--config", file_, "--check"});
  EXPECT_EQ(check.Wait(), 2);
  EXPECT_THAT(check.Stderr(), HasSubstr("vary: contradicts key: tag"));
  WriteFile(file_, Settings("vary: on\n"));
  Process good({"serve", "--config", file_, "--check"});
  EXPECT_EQ(good.Wait(), 0) << good.Stderr();
  EXPECT_THAT(good.Stdout(), HasSubstr("vary: on"));
}

TEST_F(VaryTest, OperatorsFindAndPurgeTheEntryThatAHitTakes) {
  Start();
  Call(Of("1", "a"));
  Call(Of("2", "a"));
  const std::string request = dir_.File("request.bin");
  WriteFile(request, Of("1", "other").SerializeAsString());
  const std::string found = Admin({"lookup", "--request", request});
  EXPECT_THAT(found, HasSubstr("function   "));
  EXPECT_THAT(found, ::testing::ContainsRegex("served +yes\n"));
  const std::string key = found.substr(4, 32);
  Admin({"purge", "--key", key});
  EXPECT_THAT(Admin({"lookup", "--request", request}),
              HasSubstr("no tier has an entry"));
  EXPECT_THAT(Call(Of("1", "b")), StartsWith("fwd=miss; stored"));
  EXPECT_EQ(text_, "1 run 3");
  EXPECT_TRUE(HitsByHint(Of("1", "a")));
  EXPECT_TRUE(HitsByHint(Of("2", "b")));
  // And all of the function.
  Admin({"purge", "--function", "function"});
  EXPECT_THAT(Call(Of("2", "c")), HasSubstr("fwd=miss"));
}

TEST_F(VaryTest, APurgeOfTheKeyThatExplainNamesHoldsAfterKillNine) {
  const std::string disk = absl::StrCat(
      "vary: on\ngeneration: g\ncache: {dir: \"", dir_.File("cache"), "\"}\n");
  Start(disk);
  EXPECT_THAT(Call(Of("1", "a")), StartsWith("fwd=miss; stored"));
  const json explained = json::parse(Admin({"explain", "--json"}));
  const std::string key = explained.at("last").at(0).at("key");
  Admin({"purge", "--key", key});
  EXPECT_THAT(Call(Of("1", "a")), StartsWith("fwd=miss; stored"));
  EXPECT_TRUE(HitsByHint(Of("1", "a")));
  ASSERT_TRUE(Eventually([&] {
    return Sample(Get("/metrics"), "fncache_tier_entries{tier=\"disk\"}") == 1;
  }));
  EXPECT_THAT(Admin({"purge", "--key", key}), HasSubstr("after a restart"));
  process_->Signal(SIGKILL);
  process_->Wait();
  Start(disk);
  EXPECT_THAT(Call(Of("2", "a")), StartsWith("fwd=miss; stored"));
  EXPECT_THAT(Call(Of("1", "a")), StartsWith("fwd=miss; stored"));
  EXPECT_EQ(text_, "1 run 4");
}

TEST_F(VaryTest, IsReported) {
  Start();
  EXPECT_EQ(Metric("fncache_vary_hits_total"), 0);
  EXPECT_EQ(Metric("fncache_vary_hints_refused_total"), 0);
  Call(Of("1", "a"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(HitsByHint(Of("1", absl::StrCat("b", i))));
  }
  function_.SetHint("reads=(\"secret");
  Call(Of("2", "a"));
  Call(Of("3", "a"));
  EXPECT_EQ(Metric("fncache_vary_hits_total"), 3);
  EXPECT_EQ(Metric("fncache_vary_hints"), 1);
  EXPECT_EQ(Metric("fncache_vary_hints_refused_total"), 2);
  const json page = json::parse(Get("/statusz?format=json"));
  EXPECT_EQ(page["functions"][0]["varying"],
            json({{"hits_by_hint", 3}, {"hints", 1}, {"hints_refused", 2}}));
  EXPECT_THAT(Get("/statusz"), HasSubstr("<dt>hints<dd>3 hits by hint"));
  process_->Signal(SIGTERM);
  EXPECT_EQ(process_->Wait(), 0);
  // Once, and without what it says.
  const std::string log = process_->Stderr();
  const std::string line = "a response's hint cannot be used";
  EXPECT_THAT(log, HasSubstr(line));
  EXPECT_EQ(log.find(line, log.find(line) + 1), std::string::npos);
  EXPECT_THAT(log, Not(HasSubstr("secret")));
}

TEST_F(VaryTest, NoUnreadPathIsTheReasonOfAMiss) {
  Start();
  Call(Of("1", "a"));
  auto request = Of("1", "a");
  auto& object = *request.mutable_observed()
                      ->mutable_composite()
                      ->mutable_resource()
                      ->mutable_fields();
  // One path that was read, and two that were not.
  object["status"].set_string_value("unread");
  (*object["spec"].mutable_struct_value()->mutable_fields())["color"]
      .set_string_value("unread");
  (*object["spec"].mutable_struct_value()->mutable_fields())["size"]
      .set_string_value("9");
  EXPECT_EQ(Call(request),
            "fwd=miss; stored; detail=\"changed: "
            "observed.composite.resource.spec.size\"");
}

TEST_F(VaryTest, ARehearsalComparesHitsByHint) {
  Start("vary: on\nmode: shadow\n");
  EXPECT_THAT(Call(Of("1", "a")), HasSubstr("detail=shadow"));
  EXPECT_THAT(Call(Of("1", "b")), HasSubstr("detail=shadow"));
  EXPECT_EQ(function_.runs(), 2);
  EXPECT_TRUE(
      Eventually([&] { return Metric("fncache_shadow_lookups_total") == 2; }));
  // The function's answers differ: each has its own number.
  const json shadow = json::parse(Admin({"shadow", "--json"}));
  EXPECT_THAT(shadow.dump(), HasSubstr("results"));
}

}  // namespace
}  // namespace fncache::testing
