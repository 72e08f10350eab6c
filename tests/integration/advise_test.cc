// SPDX-License-Identifier: Apache-2.0
// The tools that propose masks, on one trace of a real daemon: a template whose
// subnets wait for the identifier of their VPC, which no request has yet.
#include <signal.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using apiextensions::fn::proto::v1::FunctionRunnerService;
using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;
using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using Texts = std::vector<std::string>;

constexpr char kVpcId[] =
    "observed.resources.vpc.resource.status.atProvider.vpcId";
constexpr char kChecked[] =
    "observed.resources.vpc.resource.status.atProvider.lastChecked";
constexpr char kChecks[] =
    "observed.resources.vpc.resource.status.atProvider.checks";
constexpr char kVpcVersion[] =
    "observed.resources.vpc.resource.metadata.resourceVersion";
constexpr char kVpcManagers[] =
    "observed.resources.vpc.resource.metadata.managedFields";
// Both resources have one, and nothing else is desired.
constexpr char kEveryVersion[] =
    "observed.resources.*.resource.metadata.resourceVersion";
constexpr char kCompositeVersion[] =
    "observed.composite.resource.metadata.resourceVersion";

struct Ended {
  int code = -1;
  std::string out, err;
};

Ended Fncache(const Texts& arguments) {
  Process process(arguments);
  Ended ended;
  ended.code = process.Wait();
  ended.out = process.Stdout();
  ended.err = process.Stderr();
  return ended;
}

json FncacheJson(Texts arguments) {
  arguments.emplace_back("--json");
  const Ended ended = Fncache(arguments);
  EXPECT_EQ(ended.code, 0) << ended.err;
  return json::parse(ended.out, nullptr, false);
}

std::set<std::string> MasksOf(const json& list) {
  std::set<std::string> masks;
  for (const json& one : list) {
    masks.insert(one.is_string() ? one.get<std::string>()
                                 : one["mask"].get<std::string>());
  }
  return masks;
}

class AdviseTest : public ::testing::Test {
 protected:
  AdviseTest()
      : function_({"function", "--listen", "127.0.0.1:0", "--insecure", "--ttl",
                   "1h"}) {
    EXPECT_TRUE(function_.WaitForStderr("listening on "));
  }

  std::string Target() const {
    return absl::StrCat("network=", function_.Listening().at(0));
  }

  void StartDaemon(const Texts& more) {
    Texts arguments = {"serve",          "--insecure",
                       "--listen",       "127.0.0.1:0",
                       "--admin",        "",
                       "--upstream",     function_.Listening().at(0),
                       "--function",     "network",
                       "--admin-socket", socket_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    daemon_ = std::make_unique<Process>(arguments);
    ASSERT_TRUE(daemon_->WaitForStderr("serving fncache admin on " + socket_));
    address_ = daemon_->Listening().at(0);
  }
  void StopDaemon() {
    daemon_->Signal(SIGTERM);
    EXPECT_EQ(daemon_->Wait(), 0);
  }

  // Sends the runner's request for a composite. Without `version` its resources
  // do not exist yet; with `id` the VPC has its identifier.
  RunFunctionResponse Call(const std::string& name, int version, int beat,
                           const std::string& id = "") {
    std::string observed;
    if (version > 0) {
      observed = absl::StrCat(
          R"(, "resources": {"vpc": {"resource": {"apiVersion": "e.org/v1",
          "kind": "VPC", "metadata": {"name": ")",
          name, R"(-vpc", "resourceVersion": ")", 100 + version,
          R"(", "managedFields": [{"manager": "provider", "time": "2026-01-01T)",
          10 + version % 10, R"(:00:00Z"}]}, "status": {"atProvider": {
          "lastChecked": "2026-01-01T)",
          10 + beat, R"(:00:00Z")",
          id.empty() ? "" : absl::StrCat(R"(, "vpcId": ")", id, "\""),
          checks_ == 0 ? "" : absl::StrCat(R"(, "checks": )", checks_),
          R"(}}}}, "subnet": {"resource": {"apiVersion": "e.org/v1",
          "kind": "Subnet", "metadata": {"name": ")",
          name, R"(-subnet", "resourceVersion": "7"}}}})");
    }
    RunFunctionRequest request;
    const auto status = google::protobuf::util::JsonStringToMessage(
        absl::StrCat(
            R"({"meta": {"tag": "t"}, "input": {
            "apiVersion": "function.fncache.dev/v1alpha1", "kind": "Template",
            "spec": {"resources": [
              {"name": "vpc", "base": {"apiVersion": "e.org/v1", "kind": "VPC",
                "spec": {"region":
                  "${observed.composite.resource.spec.region}"}}},
              {"name": "subnet", "base": {"apiVersion": "e.org/v1",
                "kind": "Subnet", "spec": {"vpcId": "${)",
            kVpcId, R"(|pending}"}}}]}},
            "observed": {"composite": {"resource": {"apiVersion": "e.org/v1",
              "kind": "XNetwork", "metadata": {"name": ")",
            name, R"(", "uid": "uid-of-)", name, R"(", "resourceVersion": ")",
            ++version_, R"("}, "spec": {"region": "eu"}}})", observed, "}}"),
        &request);
    EXPECT_TRUE(status.ok()) << status.ToString();
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    const auto stub = FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
        address_, grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    RunFunctionResponse response;
    const grpc::Status called = stub->RunFunction(&context, request, &response);
    EXPECT_TRUE(called.ok()) << called.error_message();
    return response;
  }

  // Three composites are created, and their VPCs are written to and looked at
  // while nothing else happens.
  void Happen() {
    for (const char* name : {"a", "b", "c"}) {
      Call(name, 0, 0);
      Call(name, 1, 1);
    }
    for (int i = 2; i < 5; ++i) {
      for (const char* name : {"a", "b", "c"}) {
        Call(name, i, 1);          // a version
        Call(name, i, i);          // a heartbeat
        Call(name, i, i);          // nothing: a hit, under the mask
        Call(name, i + 1, i + 1);  // both at once
      }
    }
  }

  static std::string SubnetsVpc(const RunFunctionResponse& response) {
    return response.desired()
        .resources()
        .at("subnet")
        .resource()
        .fields()
        .at("spec")
        .struct_value()
        .fields()
        .at("vpcId")
        .string_value();
  }

  const TempDir dir_;
  const std::string trace_ = dir_.File("trace");
  const std::string socket_ = dir_.File("s");
  Process function_;
  std::unique_ptr<Process> daemon_;
  std::string address_;
  int version_ = 0;  // of composites
  int checks_ = 0;   // the VPC counts them, unless it is 0
};

TEST_F(AdviseTest, TheToolsThatDoNotAskAgreeAndAddToTheMasksInForce) {
  StartDaemon({"--trace-dir", trace_, "--trace-level", "full", "--mask",
               kCompositeVersion});
  Happen();
  const json told =
      FncacheJson({"admin", "--socket", socket_, "explain"})["functions"][0];
  StopDaemon();
  const json explained = FncacheJson({"explain", trace_});
  const json replayed = FncacheJson({"replay", trace_, "--suggest-masks"});

  EXPECT_GT(explained["hits"], 0);
  EXPECT_THAT(MasksOf(explained["masks"]),
              UnorderedElementsAre(kVpcVersion, kVpcManagers, kChecked));
  EXPECT_EQ(MasksOf(replayed["suggested_masks"]), MasksOf(explained["masks"]));
  EXPECT_EQ(MasksOf(told["masks"]), MasksOf(explained["masks"]));
  for (const json& mask : explained["masks"]) {
    EXPECT_EQ(mask["function_asked"], false);
  }
  for (const json& mask : told["masks"]) {
    EXPECT_EQ(mask["function_asked"], false);
  }
  // As often as the daemon says why.
  for (const json& reason : told["reasons"]) {
    for (const json& one : explained["reasons"]) {
      if (one["name"] == reason["reason"]) {
        EXPECT_EQ(one["misses"], reason["count"]);
      }
    }
  }
  // The composite's version stays masked: without it nothing would hit.
  const json& last = replayed["settings"].back();
  EXPECT_THAT(last["what_if"]["mask"].get<std::string>(),
              HasSubstr(kCompositeVersion));
  EXPECT_GT(last["hit_rate"], 0.7);
  // Nothing in it came of a timer.
  EXPECT_EQ(explained["too_short_for_timers"], true);
  EXPECT_THAT(replayed["notes"].dump(), HasSubstr("too short for timers"));
  const Ended text = Fncache({"replay", trace_, "--suggest-masks"});
  EXPECT_THAT(text.out, HasSubstr("was not asked"));
}

TEST_F(AdviseTest, ItsAdviceKeepsATemplateRightThatWaits) {
  StartDaemon({"--trace-dir", trace_, "--trace-level", "full", "--mask",
               kCompositeVersion});
  Happen();
  // Something that is no drift changes, too.
  for (checks_ = 1; checks_ < 4; ++checks_) Call("a", 5, 5);
  checks_ = 0;
  const json told =
      FncacheJson({"admin", "--socket", socket_, "stats"})["functions"][0];
  StopDaemon();
  const json probed = FncacheJson({"probe", trace_, "--function", Target()});
  EXPECT_THAT(probed["read_if_added"], Contains(kVpcId));
  const json advice = FncacheJson({"advise", trace_, "--function", Target()});
  const json& network = advice["functions"][0];
  EXPECT_EQ(network["function_asked"], true);
  EXPECT_THAT(network["read_if_added"], Contains(kVpcId));
  // Most runs were over versions and times of the VPC.
  EXPECT_EQ(network["tune"], true);
  EXPECT_EQ(network["runs"], told["since_start"]["upstream_calls"]);
  EXPECT_GT(network["repeats"]["drift"], 15);
  EXPECT_EQ(network["repeats"]["time"], 0);
  // Tuning takes care of drift, so masks are over the rest.
  const std::set<std::string> masks = MasksOf(network["masks"]);
  EXPECT_THAT(masks, Contains(kChecks));
  for (const char* drift : {kChecked, kEveryVersion, kVpcManagers}) {
    EXPECT_THAT(masks, Not(Contains(drift)));
    EXPECT_THAT(network["drift_masks"], Contains(drift));
  }
  for (const std::string& mask : masks) {
    EXPECT_FALSE(absl::EndsWith(mask, "atProvider")) << mask;
    EXPECT_FALSE(absl::EndsWith(mask, "status")) << mask;
    EXPECT_NE(mask, "@versions");
    EXPECT_NE(mask, kCompositeVersion) << "is in force";
  }
  // The name and the uid are not read, and differ between composites.
  EXPECT_THAT(MasksOf(network["identity"]),
              IsSupersetOf({"observed.composite.resource.metadata.name",
                            "observed.composite.resource.metadata.uid"}));
  EXPECT_EQ(advice["share_between_composites"], true);
  double without = 0, with = 0;
  for (const json& one : advice["expected"]) {
    if (one["settings"] == "tune: on, these masks") {
      without = one["creation_hit_rate"];
    }
    if (one["settings"] == "tune: on, these masks, those of identity too") {
      with = one["creation_hit_rate"];
    }
  }
  EXPECT_GT(with, without + 0.05);
  EXPECT_THAT(advice["unknown"].dump(), HasSubstr("no question shows it"));
  EXPECT_THAT(advice["unknown"].dump(), HasSubstr("effects outside"));

  // The output can be pasted, and gives the right answers.
  const Ended text = Fncache({"advise", trace_, "--function", Target()});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(
      text.out,
      HasSubstr(absl::StrCat(
          "\ntune: on  # ", network["repeats"]["drift"].get<int>(), " of ",
          network["runs"].get<int>(), " runs gave the answer")));
  const std::string file = dir_.File("fncache.yaml");
  WriteFile(file, text.out);
  StartDaemon({"--config", file});
  EXPECT_EQ(SubnetsVpc(Call("d", 1, 1)), "pending");
  EXPECT_EQ(SubnetsVpc(Call("d", 2, 2)), "pending");
  EXPECT_EQ(SubnetsVpc(Call("d", 3, 3, "vpc-1")), "vpc-1");
  EXPECT_EQ(SubnetsVpc(Call("e", 4, 4, "vpc-2")), "vpc-2");
  EXPECT_EQ(SubnetsVpc(Call("e", 4, 5)), "pending");
  // The function proves its answer, and then nothing but drift is no reason to
  // call it.
  const auto hits = [this] {
    const json stats = FncacheJson({"admin", "--socket", socket_, "stats"});
    return stats["functions"][0]["since_start"]["calls_by_outcome"]["hit"]
        .get<int>();
  };
  const absl::Time end = absl::Now() + kPatience;
  for (int i = 1; hits() == 0 && absl::Now() < end; ++i) {
    EXPECT_EQ(SubnetsVpc(Call("d", i, i % 10)), "pending");
  }
  EXPECT_GT(hits(), 0);
  StopDaemon();
}

TEST_F(AdviseTest, TuningIsProposedOnlyWhereItSavesRuns) {
  StartDaemon({"--trace-dir", trace_, "--trace-level", "full"});
  // One of ten runs is over drift only: not more than a tenth.
  for (checks_ = 1; checks_ < 10; ++checks_) Call("a", 1, 1);
  checks_ = 9;
  Call("a", 2, 1);
  StopDaemon();
  // The composite's own version is drift as well.
  const json few = FncacheJson({"advise", trace_})["functions"][0];
  EXPECT_EQ(few["runs"], 10);
  EXPECT_EQ(few["repeats"]["drift"], 1);
  EXPECT_EQ(few["repeats"]["other"], 8);
  EXPECT_EQ(few["tune"], false);
  // Without a question to the function it is proposed, too.
  const std::string more = dir_.File("more");
  StartDaemon({"--trace-dir", more, "--trace-level", "full"});
  for (int i = 0; i < 3; ++i) Call("a", i + 1, 1);
  StopDaemon();
  const Ended text = Fncache({"advise", more});
  EXPECT_THAT(text.out,
              HasSubstr("\ntune: on  # 2 of 3 runs gave the answer of before "
                        "over drift only\n"));
  // Where it is on already, there is nothing to propose.
  const std::string tuned = dir_.File("tuned");
  StartDaemon({"--trace-dir", tuned, "--trace-level", "full", "--tune", "on"});
  for (int i = 0; i < 3; ++i) Call("a", i + 1, 1);
  StopDaemon();
  const json on = FncacheJson({"advise", tuned});
  EXPECT_EQ(on["functions"][0]["tune"], false);
  EXPECT_EQ(on["functions"][0]["tune_in_force"], true);
  // Its trace says which misses were over drift.
  const json explained = FncacheJson({"explain", tuned});
  EXPECT_EQ(explained["reasons"][0]["name"], "drift");
  EXPECT_EQ(explained["reasons"][0]["misses"], 2);
  EXPECT_TRUE(explained["masks"].empty()) << explained["masks"];
}

TEST_F(AdviseTest, AFunctionThatIsNotAskedGetsNoMasks) {
  StartDaemon({"--trace-dir", trace_, "--trace-level", "full"});
  Happen();
  StopDaemon();
  const json advice = FncacheJson({"advise", trace_});
  EXPECT_EQ(advice["functions"][0]["function_asked"], false);
  EXPECT_TRUE(advice["functions"][0]["masks"].empty());
  EXPECT_THAT(advice["unknown"].dump(), HasSubstr("was not asked"));
  const Ended other = Fncache({"advise", trace_, "--function", "net=h:1"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("there are: network"));
  // It does not listen.
  const json gone = FncacheJson({"advise", trace_, "--function",
                                 "network=127.0.0.1:1", "--timeout", "1s"});
  EXPECT_EQ(gone["functions"][0]["function_asked"], false);
  EXPECT_TRUE(gone["functions"][0]["masks"].empty());
}

TEST_F(AdviseTest, ALiveDaemonIsTracedAndItsFunctionAsked) {
  StartDaemon({});
  // Calls come as long as it is traced.
  Process advise(
      {"advise", "--live", "--socket", socket_, "--for", "2s", "--json"});
  ASSERT_TRUE(advise.WaitForStderr("tracing the daemon's calls for 2s"));
  std::thread calls([this] {
    const absl::Time end = absl::Now() + absl::Seconds(2);
    for (int i = 1; absl::Now() < end; ++i) {
      for (const char* name : {"a", "b"}) Call(name, i % 9 + 1, i % 9 + 1);
    }
  });
  const int code = advise.Wait();
  calls.join();
  ASSERT_EQ(code, 0) << advise.Stderr();
  const json advice = json::parse(advise.Stdout(), nullptr, false);
  const json& network = advice["functions"][0];
  EXPECT_EQ(network["function"], "network");
  EXPECT_EQ(network["function_asked"], true) << network["not_asked"];
  EXPECT_EQ(network["tune"], true);
  EXPECT_THAT(MasksOf(network["drift_masks"]),
              IsSupersetOf({kChecked, kEveryVersion, kVpcManagers}));
  StopDaemon();
}

TEST(AdviseCommand, BadInputIsOneLine) {
  const TempDir dir;
  const std::string none = dir.File("none");
  const struct {
    Texts arguments;
    int code;
    const char* says;
  } kCases[] = {
      {{}, 2, "TRACE or --live is needed"},
      {{"t", "--live"}, 2, "goes without TRACE"},
      {{"t", "--for", "1s"}, 2, "--for: goes with --live"},
      {{"t", "--socket", "s"}, 2, "--socket: goes with --live"},
      {{"t", "--calls", "1"}, 2, "--calls"},
      {{"t", "--timeout", "0s"}, 2, "--timeout: expected"},
      {{"--live", "--for", "never"}, 2, "--for: expected"},
      {{"--live", "--dir", "here"}, 2, "accepted: an absolute path"},
      {{"t", "--function", "f"}, 2, "expected NAME=TARGET"},
      {{none}, 1, "no such file or folder"},
      {{"--live", "--socket", none}, 1, "none"},
  };
  for (const auto& one : kCases) {
    Texts arguments = {"advise"};
    arguments.insert(arguments.end(), one.arguments.begin(),
                     one.arguments.end());
    const Ended ended = Fncache(arguments);
    SCOPED_TRACE(ended.err);
    EXPECT_EQ(ended.code, one.code);
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err, HasSubstr(one.says));
  }
}

}  // namespace
}  // namespace fncache::testing
