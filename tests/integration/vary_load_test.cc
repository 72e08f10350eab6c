// SPDX-License-Identifier: Apache-2.0
// `fncache load` on functions of the SDK, alone and behind `fncache serve`: the
// bucket and its ACL of examples/sdk/storage.cc. Nothing is deleted, and with
// `vary: on` settled composites hit without a mask.
//
// `make nightly` runs 1,000 composites, and prints the table of
// docs/hit-rates.md.
#include <atomic>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "fncache/function/context.h"
#include "fncache/function/serve.h"
#include "fncache/function/testing.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.grpc.pb.h"
#include "runner/testing/call_state.h"
#include "runner/testing/messages.h"
#include "tests/common/long_form.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

void Storage(fncache::function::Context& ctx);  // examples/sdk/storage.cc

namespace fncache::testing {
namespace {

namespace fn = function;
namespace ft = function::testing;
namespace pb = apiextensions::fn::proto::v1;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr char kComposition[] = R"(
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: storage}
spec:
  compositeTypeRef: {apiVersion: platform.example.com/v1alpha1, kind: XStorageBucket}
  mode: Pipeline
  pipeline:
  - step: storage
    functionRef: {name: function-storage}
)";

// The bucket and its ACL, each ready when its provider says so.
void Bucket(fn::Context& ctx) {
  Storage(ctx);
  ctx.auto_ready();
}

// Reads nothing but the composite's spec.
void Located(fn::Context& ctx) {
  const fn::Resource bucket =
      ctx.resource("bucket", "storage.gcp.upbound.io/v1beta1", "Bucket");
  bucket["spec"]["forProvider"]["location"] =
      ctx.composite().observed()["spec"]["parameters"]["location"];
  bucket.ready(fn::Ready::kTrue);
}

class VaryLoadHeavyTest : public ::testing::Test {
 protected:
  VaryLoadHeavyTest() {
    WriteFile(dir_.File("composition.yaml"), kComposition);
  }

  void Serve(fn::Function function, absl::Duration ttl = absl::Hours(1)) {
    daemon_.reset();
    fn::ServerOptions options;
    options.address = "127.0.0.1:0";
    options.insecure = true;
    options.function_options.ttl = ttl;
    options.function_options.pure = true;
    auto server = fn::Server::Start(
        options, [this, function = std::move(function)](fn::Context& ctx) {
          ++runs_;
          function(ctx);
        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    target_ = server_->address();
  }

  // Calls go to a new daemon, which has no mask and no entry.
  void StartDaemon(const std::string& vary) {
    daemon_ = std::make_unique<Process>(std::vector<std::string>{
        "serve", "--insecure", "--listen", "127.0.0.1:0", "--admin", "",
        "--upstream", server_->address(), "--vary", vary});
    ASSERT_TRUE(daemon_->WaitForStderr("listening on ")) << daemon_->Stderr();
    target_ = daemon_->Listening().at(0);
  }

  // The results of a load. One from nothing ends once all are ready.
  Json Load(const std::string& name, std::vector<std::string> more,
            bool from_nothing = false) {
    WriteFile(dir_.File("xr.yaml"),
              absl::StrCat("apiVersion: platform.example.com/v1alpha1\n"
                           "kind: XStorageBucket\nmetadata: {name: ",
                           name,
                           "}\nspec: {parameters: {location: US, versioning: "
                           "true, acl: private}}\n"));
    const std::string results = dir_.File("results.json");
    more.insert(more.begin(),
                {"load", dir_.File("xr.yaml"), dir_.File("composition.yaml"),
                 absl::StrCat("--function=function-storage=", target_),
                 absl::StrCat("--composites=", composites_), "--progress=plain",
                 absl::StrCat("--json=", results), "--workers=20"});
    if (from_nothing) {
      more.insert(more.end(), {"--start=create", "--duration=1h"});
    }
    Process load(more);
    if (from_nothing) {
      const std::string all =
          absl::StrCat(", ", composites_, " of ", composites_, " ready");
      bool ready = false;
      for (int i = 0; i < 5 && !ready; ++i) ready = load.WaitForStderr(all);
      EXPECT_TRUE(ready) << load.Stderr();
      load.Signal(SIGINT);
    }
    EXPECT_EQ(load.Wait(10 * kPatience), from_nothing ? 130 : 0)
        << load.Stderr();
    Json json = Json::parse(ReadFile(results));
    EXPECT_EQ(json["composites"]["count"], composites_);
    EXPECT_EQ(json["composites"]["ready"], composites_);
    EXPECT_EQ(json["composites"]["deleted"], 0);
    EXPECT_GT(json["pipelines"]["count"], 0);
    for (const Json& call : json["calls"]) EXPECT_EQ(call["errors"], 0);
    return json;
  }

  // The load, behind a daemon with each setting; prints a line of the table.
  void Compare(const std::string& title,
               const std::function<Json(bool vary)>& load, double least) {
    std::string line = absl::StrCat("| ", title);
    for (const bool vary : {false, true}) {
      StartDaemon(vary ? "on" : "off");
      const Json results = load(vary);
      const double rate = results["hit_rate"];
      absl::StrAppendFormat(&line, " | %.1f | %d", 100 * rate,
                            results["function_runs"].get<int>());
      if (vary) {
        EXPECT_GE(rate, least) << title;
        absl::StrAppendFormat(&line, " | %d |\n",
                              results["pipelines"]["count"].get<int>());
      }
    }
    std::cout << line << std::flush;
  }

  const TempDir dir_;
  const int composites_ = ShortOrLong(25, 1000);
  std::atomic<int> runs_{0};
  std::unique_ptr<fn::Server> server_;
  std::unique_ptr<Process> daemon_;
  std::string target_;
};

const std::vector<std::string> kAllChurn = {
    "--ready-after=3s", "--churn=noop=1200", "--churn=status=600",
    "--churn=composed=1200"};

TEST_F(VaryLoadHeavyTest, FromNothingToReadyNothingIsDeleted) {
  Serve(Bucket);
  const Json results = Load("photos", kAllChurn, true);
  std::cout << composites_ << " composites from nothing to Ready: "
            << results["pipelines"]["count"] << " pipelines, " << runs_
            << " runs, deleted " << results["composites"]["deleted"] << "\n";
}

TEST_F(VaryLoadHeavyTest, SettledCompositesHitWithoutAMask) {
  const auto settled = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--start=steady",
                             ShortOrLong("--duration=3s", "--duration=30s")});
    return [this, more](bool) { return Load("photos", more); };
  };
  const std::string rate = ShortOrLong("3600", "360");
  std::cout << "| | `vary: off`: hits | runs | `vary: on`: hits | runs | "
               "reconciles |\n";
  Serve(Bucket);
  Compare(
      "from nothing to Ready, with writes of all kinds",
      [&](bool) { return Load("photos", kAllChurn, true); }, 0);
  Compare("settled: writes that change versions only",
          settled({"--churn=noop=" + rate}), 0.98);
  Compare("settled: heartbeats of providers",
          settled({"--churn=composed=" + rate}), 0.98);
  Compare("settled: another writer's status of the composite",
          settled({"--churn=status=" + rate}), 0.98);
  Serve(Bucket, ShortOrLong(absl::Seconds(1), absl::Seconds(10)));
  // The first timer comes within a TTL: an entry may be younger than that.
  Compare("settled: timers only",
          settled({ShortOrLong("--warmup=1100ms", "--warmup=11s")}), 0.98);
  Serve(Located);
  int first = 0;
  Compare(
      "as many again with equal specs, a function that reads only the spec",
      [&](bool vary) {
        const int none = runs_;
        Load("first", {"--seed=1", "--ready-after=1s"}, true);
        first = runs_ - none;
        const int before = runs_;
        Json second = Load("second", {"--seed=2", "--ready-after=1s"}, true);
        // The end of the load may cancel calls that are counted here.
        EXPECT_LE(second["function_runs"].get<int>(), runs_ - before);
        if (vary) {
          EXPECT_EQ(runs_, before);
          EXPECT_EQ(second["hit_rate"], 1);
        }
        return second;
      },
      1);
  std::cout << "with `vary: on` the first of them needed " << first
            << " runs\n";
}

// The observed state of a request.
struct Observed {
  std::string location = "US";
  std::string versioning = "true";
  std::string acl = "private";
  std::string external = "photos-1";
  std::string ready = "True";
  std::string unread = "1";
};

pb::RunFunctionRequest RequestOf(const Observed& of) {
  const auto metadata = [&](absl::string_view more) {
    return absl::StrCat("metadata: {name: n", of.unread, ", uid: u", of.unread,
                        ", resourceVersion: '", of.unread,
                        "', managedFields: [{time: '", of.unread, "'}]", more,
                        "}, ");
  };
  const auto status = [&](absl::string_view ready) {
    return absl::StrCat("status: {atProvider: {lastChecked: '", of.unread,
                        "'}, conditions: [{type: Ready, status: '", ready,
                        "', lastTransitionTime: '", of.unread, "'}]}");
  };
  ft::Call call(Bucket);
  call.composite(absl::StrCat("{", metadata(""), status(of.unread),
                              ", spec: {parameters: {location: ", of.location,
                              ", versioning: ", of.versioning,
                              ", acl: ", of.acl, "}}}"))
      .observed(
          "bucket",
          absl::StrCat("{",
                       metadata(absl::StrCat(
                           ", annotations: {crossplane.io/external-name: ",
                           of.external, ", seen: '", of.unread, "'}")),
                       status(of.ready), "}"))
      .observed("acl", absl::StrCat("{", metadata(""), status("True"), "}"));
  pb::RunFunctionRequest request = ft::Request(call.state());
  request.mutable_meta()->set_tag(absl::StrCat("tag", of.unread));
  return request;
}

TEST_F(VaryLoadHeavyTest, AChangeOfAReadFieldIsAMissAtOnce) {
  Serve(Bucket);
  StartDaemon("on");
  grpc::ChannelArguments channel;
  channel.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto stub =
      pb::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
          target_, grpc::InsecureChannelCredentials(), channel));
  ft::CallState own = ft::Call(Bucket).state();
  own.options.ttl = absl::Hours(1);
  // The cache-status after "fncache; ", and how often the function ran. The
  // response must be the function's own.
  const auto call = [&](const Observed& of) {
    const pb::RunFunctionRequest request = RequestOf(of);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    pb::RunFunctionResponse response;
    const int before = runs_;
    const grpc::Status status = stub->RunFunction(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.meta().tag(), request.meta().tag());
    const auto run = ft::Run(own, request.SerializeAsString());
    EXPECT_EQ(ft::Difference(response, run->response), "");
    const auto& headers = context.GetServerInitialMetadata();
    const auto header = headers.find("cache-status");
    const absl::string_view text(header->second.data(), header->second.size());
    return std::make_pair(std::string(text.substr(9)), runs_ - before);
  };
  int unread = 0;
  const auto expect_hit = [&](Observed of) {
    of.unread = absl::StrCat(++unread);
    const auto [status, runs] = call(of);
    EXPECT_THAT(status, StartsWith("hit; "));
    EXPECT_TRUE(absl::EndsWith(status, "; detail=hint")) << status;
    EXPECT_EQ(runs, 0);
  };
  const Observed base;
  EXPECT_EQ(call(base).second, 1);
  expect_hit(base);
  std::vector<Observed> changed(6);
  changed[0].location = "EU";
  changed[1].versioning = "false";
  changed[2].acl = "publicRead";
  changed[3].external = "photos-2";
  changed[4].external = "null";
  changed[5].ready = "False";
  for (const Observed& of : changed) {
    const auto [status, runs] = call(of);
    EXPECT_THAT(status, StartsWith("fwd=miss"));
    EXPECT_EQ(runs, 1);
    expect_hit(of);
    expect_hit(base);
  }
  std::cout << changed.size() << " changes of read fields were misses at once, "
            << unread << " changes of unread fields were hits\n";
}

}  // namespace
}  // namespace fncache::testing
