// SPDX-License-Identifier: Apache-2.0
// `fncache probe` as people run it, against a function of ours.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.grpc.pb.h"
#include "proto/function_v1.pb.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kXr[] = FNCACHE_SOURCE_DIR "/examples/xr.yaml";
constexpr char kComposition[] = FNCACHE_SOURCE_DIR "/examples/composition.yaml";

struct Ended {
  int code;
  std::string out;
  std::string err;
};

class ProbeTest : public ::testing::Test {
 protected:
  std::string StartFunction(std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"function", "--insecure", "--listen", "127.0.0.1:0"});
    function_ = std::make_unique<Process>(std::move(more));
    EXPECT_TRUE(function_->WaitForStderr("listening on"));
    return function_->Listening().at(0);
  }

  static Ended Probe(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "probe");
    Process process(std::move(arguments));
    const int code = process.Wait();
    return {code, process.Stdout(), process.Stderr()};
  }

  static json ProbeJson(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const Ended ended = Probe(std::move(arguments));
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    return json::parse(ended.out, nullptr, false);
  }

  TempDir dir_;
  std::unique_ptr<Process> function_;
};

TEST_F(ProbeTest, FindsWhatATemplateReads) {
  const json found = ProbeJson(
      {kXr, kComposition, "--function", "function-buckets=" + StartFunction()});
  EXPECT_THAT(found["read"],
              ElementsAre("observed.composite.resource.spec.buckets",
                          "observed.composite.resource.spec.region"));
  EXPECT_THAT(found["untried"], IsEmpty());
  EXPECT_THAT(found["unstable"], IsEmpty());
  EXPECT_EQ(found["complete"], true);
  EXPECT_LT(found["calls"], 150);
  std::vector<std::string> masks;
  for (const auto& mask : found["masks"]) masks.push_back(mask["mask"]);
  EXPECT_THAT(masks, Contains("observed.composite.resource.metadata.uid"));
  EXPECT_THAT(masks, Not(Contains("@versions")));
  EXPECT_THAT(masks, Not(Contains("observed.composite.resource.spec.region")));
}

TEST_F(ProbeTest, AHintThatIsTrustedSavesCalls) {
  const std::string address = StartFunction();
  const auto probe = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {kXr, kComposition, "--function",
                               "function-buckets=" + address});
    return ProbeJson(std::move(more));
  };
  const json asked = probe({});
  const json trusted = probe({"--trust-hint"});
  EXPECT_EQ(trusted["read"], asked["read"]);
  EXPECT_EQ(trusted["masks"], asked["masks"]);
  EXPECT_LT(trusted["calls"], asked["calls"]);
  EXPECT_GT(trusted["hint"]["calls_saved"], 0);
  for (const json& one : {asked, trusted}) {
    EXPECT_EQ(one["hint"]["hints"], one["hint"]["answers"]);
    EXPECT_EQ(one["hint"]["paths"][0],
              json({{"path", "observed.composite.resource.spec.buckets"},
                    {"read", true}}));
    EXPECT_THAT(one["hint"]["unnamed"], IsEmpty());
  }
}

TEST_F(ProbeTest, AHintThatLeavesOutWhatIsReadIsABug) {
  class Liar final
      : public apiextensions::fn::proto::v1::FunctionRunnerService::Service {
    grpc::Status RunFunction(
        grpc::ServerContext* context,
        const apiextensions::fn::proto::v1::RunFunctionRequest* request,
        apiextensions::fn::proto::v1::RunFunctionResponse* response) override {
      context->AddTrailingMetadata("fncache-depends", "reads=()");
      const auto& fields = request->observed().composite().resource().fields();
      const auto spec = fields.find("spec");
      if (spec == fields.end()) return grpc::Status::OK;
      const auto& all = spec->second.struct_value().fields();
      const auto region = all.find("region");
      if (region != all.end()) {
        response->add_results()->set_message(region->second.string_value());
      }
      return grpc::Status::OK;
    }
  };
  Liar liar;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&liar);
  const auto server = builder.BuildAndStart();
  const Ended ended =
      Probe({kXr, kComposition, "--function",
             absl::StrCat("function-buckets=127.0.0.1:", port)});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err,
            "fncache probe: function-buckets: its hint leaves out what it "
            "reads (1 path)\n");
  EXPECT_THAT(ended.out,
              HasSubstr("\nBUG of the function: its hint says that these do "
                        "not decide the answer, and they do: 1 path\n"
                        "  observed.composite.resource.spec.region\n"));
}

TEST_F(ProbeTest, TheTextSaysHowSureItIs) {
  const Ended ended =
      Probe({kXr, kComposition, "--step", "policy", "--function",
             "function-policy=" + StartFunction(), "--function",
             "function-buckets=" + function_->Listening().at(0)});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("  context.buckets\n"));
  EXPECT_THAT(ended.out, HasSubstr("not proof"));
  EXPECT_THAT(ended.out, HasSubstr("mode: shadow"));
}

TEST_F(ProbeTest, ATraceSaysWhatVaries) {
  const std::string address = StartFunction();
  const std::string trace = dir_.path() + "/trace";
  Process load({"load", kXr, kComposition, "--function",
                "function-buckets=" + address, "--function",
                "function-policy=" + address, "--composites", "2", "--start",
                "steady", "--churn", "noop=3600", "--duration", "3s", "--trace",
                trace, "--trace-level", "full"});
  ASSERT_EQ(load.Wait(), 0) << load.Stderr();
  const json found =
      ProbeJson({trace, "--function", "function-buckets=" + address});
  EXPECT_THAT(found["read"],
              Contains("observed.composite.resource.spec.region"));
  EXPECT_THAT(found["untried"], IsEmpty());
  ASSERT_FALSE(found["masks"].empty());
  EXPECT_THAT(found["masks"][0]["mask"].get<std::string>(),
              HasSubstr(".metadata."));
  EXPECT_GT(found["masks"][0]["varied"], 0);

  EXPECT_THAT(Probe({trace, "--function", "function-bucket=" + address}).err,
              HasSubstr("did you mean function-buckets?; there are: "
                        "function-buckets, function-policy"));
  EXPECT_THAT(
      Probe({trace, "--function", "function-buckets=" + address, "--step", "x"})
          .err,
      HasSubstr("there are: buckets"));
}

TEST_F(ProbeTest, ATraceWithoutMessagesSaysSo) {
  const std::string address = StartFunction();
  const std::string trace = dir_.path() + "/trace";
  Process load({"load", kXr, kComposition, "--function",
                "function-buckets=" + address, "--function",
                "function-policy=" + address, "--duration", "1s", "--trace",
                trace});
  ASSERT_EQ(load.Wait(), 0) << load.Stderr();
  const Ended ended =
      Probe({trace, "--function", "function-buckets=" + address});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("at level full only"));
}

TEST_F(ProbeTest, ARequestOfAnOperationIsProbed) {
  const std::string file = dir_.File("request");
  // The request has no observed state: an input, and what is watched.
  apiextensions::fn::proto::v1::RunFunctionRequest request;
  const auto status = google::protobuf::util::JsonStringToMessage(
      R"({"input": {"apiVersion": "function.fncache.dev/v1alpha1",
          "kind": "Template", "spec": {"resources": [{"name": "copy", "base": {
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"size":
            "${required_resources.watched.items.0.resource.spec.size}"}}}]}},
          "requiredResources": {"watched": {"items": [{"resource": {
            "apiVersion": "example.org/v1", "kind": "XApp",
            "metadata": {"name": "app", "resourceVersion": "7"},
            "spec": {"size": "large", "note": "unread"}}}]}}})",
      &request);
  ASSERT_TRUE(status.ok()) << status.ToString();
  WriteFile(file, request.SerializeAsString());
  const Ended ended = Probe({file, "--function", "f=" + StartFunction()});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("for an operation"));
  EXPECT_THAT(ended.out, HasSubstr("spec.size"));
}

TEST_F(ProbeTest, BadInputIsOneLine) {
  const std::string nothing = "f=127.0.0.1:1";
  const std::string garbage = dir_.path() + "/garbage";
  WriteFile(garbage, "\x0a\xff\xff\xff\xff\x0f garbage");
  const std::string empty = dir_.path() + "/empty";
  WriteFile(empty, "");
  const struct {
    std::vector<std::string> arguments;
    int code;
    std::string says;
  } kCases[] = {
      {{}, 2, "FILE"},
      {{garbage}, 2, "--function NAME=TARGET is needed"},
      {{garbage, "--function", "f"}, 2, "expected NAME=TARGET"},
      {{garbage, "--function", nothing}, 1, "neither a RunFunctionRequest"},
      {{empty, "--function", nothing}, 1, "neither a RunFunctionRequest"},
      {{kXr, "--function", nothing}, 1, "neither a RunFunctionRequest"},
      {{dir_.path() + "/none", "--function", nothing}, 1, "No such file"},
      {{dir_.path(), "--function", nothing}, 1, dir_.path()},
      {{garbage, "--calls", "4"}, 2, "--calls"},
      {{garbage, "--timeout", "soon", "--function", nothing}, 2, "--timeout"},
      {{garbage, "--step", "s", "--function", nothing}, 2, "--step"},
      {{garbage, "--calks", "4"}, 2, "--calls"},
      {{kXr, kComposition, FNCACHE_SOURCE_DIR "/examples/functions.yaml",
        "--step", "bucket"},
       1,
       "there are: buckets, policy"},
      {{kXr, kComposition}, 2, "--function NAME=TARGET or --step"},
      // A file that is not there, whatever else is wrong.
      {{dir_.path() + "/none"}, 1, "/none: No such file or directory\n"},
      {{kXr, dir_.path() + "/none", "--function", nothing},
       1,
       "/none: No such file or directory\n"},
      {{kXr, kComposition, "--xrd", dir_.path() + "/none", "--function",
        "function-buckets=127.0.0.1:1"},
       1,
       "/none: no such file or directory\n"},
      {{kXr, kComposition, "--function", "function-buckets=127.0.0.1:1",
        "--timeout", "1s"},
       1,
       "no connection in time"},
  };
  for (const auto& one : kCases) {
    const Ended ended = Probe(one.arguments);
    SCOPED_TRACE(ended.err);
    EXPECT_EQ(ended.code, one.code);
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err, HasSubstr(one.says));
    EXPECT_EQ(ended.err.find('\n'), ended.err.size() - 1);
    const size_t missing = ended.err.find("/none");
    if (missing != std::string::npos) {
      EXPECT_EQ(ended.err.find("/none", missing + 1), std::string::npos)
          << "the file is named twice";
    }
  }
}

TEST_F(ProbeTest, AFatalAnswerIsNoneToCompare) {
  const Ended ended =
      Probe({kXr, kComposition, "--function",
             "function-buckets=" + StartFunction({"--fatal", "no\nway"})});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("FATAL"));
  EXPECT_EQ(ended.err.find('\n'), ended.err.size() - 1);
}

}  // namespace
}  // namespace fncache::testing
