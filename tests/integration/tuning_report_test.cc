// SPDX-License-Identifier: Apache-2.0
// The reports of tuning by a real daemon: metrics, log lines, fncache admin
// tune and the status page, for a function that first reads no times and then
// does.
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/eventually.h"
#include "tests/common/http_get.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::Struct;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A value that no report may show.
constexpr char kSecret[] = "hunter2";

Struct* Child(Struct* object, const std::string& name) {
  return (*object->mutable_fields())[name].mutable_struct_value();
}
void Set(Struct* object, const std::string& name, const std::string& text) {
  (*object->mutable_fields())[name].set_string_value(text);
}

// The request of a composite whose resource was synced at this time.
fn::RunFunctionRequest Request(const std::string& name, int64_t tick) {
  fn::RunFunctionRequest request;
  request.mutable_meta()->set_tag(absl::StrFormat("%064x", tick));
  Set(request.mutable_input(), "kind", "GoTemplate");
  Set(request.mutable_input(), "template", kSecret);
  Struct* const composite =
      request.mutable_observed()->mutable_composite()->mutable_resource();
  Set(composite, "apiVersion", "example.org/v1");
  Set(composite, "kind", "Bucket");
  Set(Child(composite, "metadata"), "namespace", "team-a");
  Set(Child(composite, "metadata"), "name", name);
  Struct* const object =
      (*request.mutable_observed()->mutable_resources())["bucket"]
          .mutable_resource();
  Set(Child(object, "metadata"), "resourceVersion",
      absl::StrCat(100'000 + 7 * tick));
  Set(Child(object, "status"), "lastSync",
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                       absl::FromUnixSeconds(2'200'000'000 + 30 * tick),
                       absl::UTCTimeZone()));
  return request;
}

class Function final : public fn::FunctionRunnerService::Service {
 public:
  Function() {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Function() override { server_->Shutdown(); }

  grpc::Status RunFunction(grpc::ServerContext* /*context*/,
                           const fn::RunFunctionRequest* request,
                           fn::RunFunctionResponse* response) override {
    ++runs;
    Struct* const object =
        (*response->mutable_desired()->mutable_resources())["bucket"]
            .mutable_resource();
    Set(Child(object, "spec"), "password", kSecret);
    const auto& observed =
        request->observed().resources().at("bucket").resource().fields();
    if (reads_times) {
      Set(Child(object, "spec"), "synced",
          observed.at("status")
              .struct_value()
              .fields()
              .at("lastSync")
              .string_value());
    }
    if (varies) Set(Child(object, "spec"), "nonce", absl::StrCat(runs.load()));
    response->mutable_meta()->set_tag(request->meta().tag());
    response->mutable_meta()->mutable_ttl()->set_seconds(3600);
    return grpc::Status::OK;
  }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  std::atomic<bool> reads_times{false};
  std::atomic<bool> varies{false};
  std::atomic<int> runs{0};

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class TuningReportTest : public ::testing::Test {
 protected:
  void Start(const std::string& settings) {
    WriteFile(file_,
              absl::StrCat("insecure: true\nlisten: \"127.0.0.1:0\"\nupstream: "
                           "\"",
                           function_.target(),
                           "\"\nfunction: function-a\nadmin: \"127.0.0.1:0\"\n"
                           "drain: 1s\n",
                           settings));
    daemon_ = std::make_unique<Process>(std::vector<std::string>{
        "serve", "--config", file_, "--admin-socket", socket_});
    ASSERT_TRUE(daemon_->WaitForStderr("(admin:")) << daemon_->Stderr();
    grpc::ChannelArguments channel;
    channel.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub_ = fn::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
        daemon_->Listening()[0], grpc::InsecureChannelCredentials(), channel));
  }

  void Call(const std::string& name) { Call(Request(name, ++tick_)); }
  void Call(const fn::RunFunctionRequest& request) {
    grpc::ClientContext context;
    fn::RunFunctionResponse response;
    ASSERT_TRUE(stub_->RunFunction(&context, request, &response).ok());
  }
  // The same with a number that a provider counts, which is no drift.
  void Poll(int polls) {
    fn::RunFunctionRequest request = Request("logs", ++tick_);
    Struct* const object =
        (*request.mutable_observed()->mutable_resources())["bucket"]
            .mutable_resource();
    (*Child(object, "status")->mutable_fields())["polls"].set_number_value(
        polls);
    Call(request);
  }

  std::string Get(const std::string& path) {
    const std::vector<std::string> parts =
        absl::StrSplit(daemon_->Listening()[1], ':');
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(parts.back(), &port));
    const std::string answer = HttpGet(port, path);
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }
  // The value of fncache_tune_NAME, -1 if there is none.
  double Metric(const std::string& name, const std::string& label = "") {
    const std::string series = absl::StrCat(
        "fncache_", name, "{function_name=\"function-a\"", label, "} ");
    const std::string all = Get("/metrics");
    double value = -1;
    for (const absl::string_view line : absl::StrSplit(all, '\n')) {
      if (line.substr(0, series.size()) != series) continue;
      EXPECT_TRUE(absl::SimpleAtod(line.substr(series.size()), &value));
    }
    return value;
  }
  bool Becomes(const std::string& name, const std::string& label,
               double value) {
    return Eventually([&] { return Metric(name, label) == value; });
  }

  std::string Admin(std::vector<std::string> arguments, int code = 0) {
    arguments.insert(arguments.begin(), {"admin", "--socket", socket_});
    Process admin(arguments);
    EXPECT_EQ(admin.Wait(), code) << admin.Stderr();
    return code == 0 ? admin.Stdout() : admin.Stderr();
  }

  // Calls until the figure has this value. A call may end the questions about
  // the answer before, so it comes after them.
  bool CallUntil(const std::string& name, const std::string& figure,
                 const std::string& label, double value) {
    return Eventually([&] {
      Call(name);
      for (int still = 0, before = -1; still < 3;) {
        const int runs = function_.runs;
        still = runs == before ? still + 1 : 0;
        before = runs;
        absl::SleepFor(absl::Milliseconds(5));
      }
      return Metric(figure, label) == value;
    });
  }
  void Prove(const std::string& name) {
    ASSERT_TRUE(CallUntil(name, "tune_proofs_total", ",result=\"proven\"", 1));
  }

  TempDir dir_;
  const std::string file_ = dir_.File("fncache.yaml");
  const std::string socket_ = dir_.File("admin.sock");
  Function function_;
  std::unique_ptr<Process> daemon_;
  std::unique_ptr<fn::FunctionRunnerService::Stub> stub_;
  int64_t tick_ = 0;
};

TEST_F(TuningReportTest, HitsQuestionsAndKeysAreReported) {
  Start("tune: on\ntune_share: 1\n");
  EXPECT_EQ(Metric("tune_revoked_hits_total"), 0);
  EXPECT_EQ(Metric("tune_hits_total"), 0);
  Prove("logs");
  const double misses = Metric("misses_total", ",reason=\"drift\"");
  EXPECT_GE(misses, 2);
  const double hits = Metric("tune_hits_total");
  for (int i = 0; i < 5; ++i) Call("logs");
  EXPECT_TRUE(Becomes("tune_hits_total", "", hits + 5));
  EXPECT_EQ(Metric("misses_total", ",reason=\"drift\""), misses);
  EXPECT_GE(Metric("tune_questions_total", ",answer=\"same\""), 4);
  EXPECT_EQ(Metric("tune_questions_total", ",answer=\"differs\""), 0);
  // The numbers of keys follow within 100 ms.
  EXPECT_TRUE(Becomes("tune_keys", ",state=\"proven\"", 1));
  EXPECT_EQ(Metric("tune_keys", ",state=\"repeating\""), 0);
  EXPECT_GT(Metric("tune_question_seconds_total"), 0);
  EXPECT_GT(Metric("tune_saved_seconds_total"), 0);
  // The function ran for callers and for questions.
  EXPECT_EQ(Metric("upstream_requests_total", ",code=\"OK\""),
            function_.runs.load());

  const std::string text = Admin({"tune"});
  EXPECT_THAT(text, HasSubstr("function-a: tune: on\n"));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("hits across drift  ", hits + 5)));
  EXPECT_THAT(text, HasSubstr(" same, 0 differs, 0 none\n"));
  EXPECT_THAT(text, HasSubstr("1 proven, 0 repeating\n"));
  EXPECT_THAT(text, Not(HasSubstr("seen at")));
  const json all = json::parse(Admin({"tune", "--json"}));
  EXPECT_EQ(all["functions"][0]["hits_across_drift"], hits + 5);
  EXPECT_LT(all["since_unix_seconds"],
            absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
  EXPECT_GT(all["since_unix_seconds"],
            absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()) - 600);

  const json page = json::parse(Get("/statusz?format=json"));
  EXPECT_EQ(page["functions"][0]["tuning"]["hits_across_drift"], hits + 5);
  EXPECT_EQ(page["functions"][0]["tuning"]["keys_proven"], 1);
  EXPECT_THAT(Get("/statusz"),
              HasSubstr(absl::StrCat("<dt>tuning<dd>", hits + 5,
                                     " hits across drift")));
}

TEST_F(TuningReportTest, AStepThatReadsTimesIsReportedEverywhere) {
  Start("tune: on\ntune_share: 1\n");
  Prove("logs");
  for (int i = 0; i < 5; ++i) Call("logs");
  const double hits = Metric("tune_hits_total");
  EXPECT_GE(hits, 5);
  function_.reads_times = true;
  ASSERT_TRUE(CallUntil("other", "tune_proofs_total", ",result=\"read\"", 1));
  EXPECT_TRUE(Becomes("tune_steps", ",state=\"reads\"", 1));
  EXPECT_EQ(Metric("tune_revoked_hits_total"), hits);
  EXPECT_GE(Metric("tune_questions_total", ",answer=\"differs\""), 2);

  ASSERT_TRUE(daemon_->WaitForStderr("tune: the function reads drift that"));
  const std::string log = daemon_->Stderr();
  EXPECT_THAT(log, HasSubstr("info tune: the function reads drift: "));
  EXPECT_THAT(log, HasSubstr("function=function-a composite=\"Bucket "
                             "team-a/other\" reads=times "
                             "paths=desired.resources.bucket.resource.spec."
                             "synced"));
  EXPECT_THAT(
      log,
      HasSubstr(absl::StrCat("error tune: the function reads drift that ")));
  EXPECT_THAT(log, HasSubstr(absl::StrCat(" hits=", hits)));

  const std::string text = Admin({"tune", "--function", "function-a"});
  EXPECT_THAT(text, HasSubstr(absl::StrCat(", ", hits, " of them revoked")));
  EXPECT_THAT(text, AllOf(HasSubstr("\n  GoTemplate "),
                          HasSubstr("  example.org/v1 Bucket  times  "),
                          HasSubstr("  Bucket team-a/other\n")));
  const json step =
      json::parse(Admin({"tune", "--json"}))["functions"][0]["steps"][0];
  EXPECT_EQ(step["input_kind"], "GoTemplate");
  EXPECT_EQ(step["input_digest"].get<std::string>().size(), 8u);
  EXPECT_EQ(step["reads"], "times");
  EXPECT_EQ(step["varies"], false);
  const std::string page = Get("/statusz");
  EXPECT_THAT(page, HasSubstr("1 step reads drift"));
  EXPECT_THAT(page, HasSubstr(absl::StrCat(hits, " revoked")));
  EXPECT_EQ(
      json::parse(Get(
          "/statusz?format=json"))["functions"][0]["tuning"]["revoked_hits"],
      hits);
  for (const std::string& shown :
       {log, text, page, Admin({"tune", "--json"}), Get("/metrics")}) {
    EXPECT_THAT(shown, Not(HasSubstr(kSecret)));
    EXPECT_THAT(shown, Not(HasSubstr("2039-09-1")));  // a time of requests
  }
}

TEST_F(TuningReportTest, AStepThatVariesIsReported) {
  Start("tune: on\ntune_share: 1\n");
  function_.varies = true;
  // Another answer where drift alone differed is asked about at once.
  ASSERT_TRUE(CallUntil("logs", "tune_proofs_total", ",result=\"varies\"", 1));
  EXPECT_TRUE(Becomes("tune_steps", ",state=\"varies\"", 1));
  ASSERT_TRUE(daemon_->WaitForStderr("gave equal requests other answers"));
  EXPECT_THAT(daemon_->Stderr(),
              HasSubstr("composite=\"Bucket team-a/logs\" "
                        "paths=desired.resources.bucket.resource.spec.nonce"));
  EXPECT_THAT(Admin({"tune"}),
              AllOf(HasSubstr("varies, asked from "), HasSubstr("GoTemplate")));
  EXPECT_THAT(Get("/statusz"), HasSubstr("1 step varies"));
}

// The mask over the number that changed is named, and nothing of the drift that
// changed with it.
TEST_F(TuningReportTest, WhatElseChangedWithoutChangingAnswersIsNamed) {
  for (const std::string settings : {"tune: on\n", ""}) {
    Start(settings);
    for (int i = 0; i < 4; ++i) Poll(i);
    const std::string mask = "observed.resources.bucket.resource.status.polls";
    const std::string text = Admin({"tune", "--function", "function-a"});
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n  ", mask)));
    EXPECT_THAT(text, HasSubstr("     3  your promise\n"));
    EXPECT_THAT(text, HasSubstr("\nA mask is your promise that the function"));
    const json changed = json::parse(
        Admin({"tune", "--function", "function-a",
               "--json"}))["functions"][0]["changed_without_changing_answers"];
    EXPECT_EQ(changed, json::array({{{"path", mask},
                                     {"mask", mask},
                                     {"runs", 3},
                                     {"function_asked", false}}}));
    EXPECT_EQ(
        json::parse(
            Get("/statusz?format=json"))["functions"][0]["changed_in_repeats"],
        json::array({{{"path", mask}, {"mask", mask}, {"count", 3}}}));
  }
  // Answers that change with it make no mask.
  Start("tune: on\n");
  function_.varies = true;
  for (int i = 0; i < 4; ++i) Poll(i);
  EXPECT_THAT(Admin({"tune"}), Not(HasSubstr("your promise")));
}

// fncache explain neither lists drift nor proposes masks for it.
TEST_F(TuningReportTest, ATraceNamesNoDriftAsWhatChanged) {
  for (const bool tunes : {true, false}) {
    const std::string trace = dir_.File(tunes ? "tuned" : "plain");
    Start(absl::StrCat(tunes ? "tune: on\n" : "", "trace:\n  dir: ", trace,
                       "\n"));
    for (int i = 0; i < 4; ++i) Poll(i);
    Admin({"trace", "stop"});
    Process explain({"explain", "--json", trace});
    ASSERT_EQ(explain.Wait(), 0) << explain.Stderr();
    const json all = json::parse(explain.Stdout());
    std::set<std::string> paths;
    for (const json& path : all["paths"]) paths.insert(path["path"]);
    std::set<std::string> masks;
    for (const json& mask : all["masks"]) masks.insert(mask["mask"]);
    const std::string object = "observed.resources.*.resource.";
    const std::string mask = "observed.resources.bucket.resource.status.polls";
    if (tunes) {
      EXPECT_THAT(paths, ElementsAre(object + "status.polls"));
      EXPECT_THAT(masks, ElementsAre(mask));
    } else {
      EXPECT_THAT(paths, ElementsAre(object + "metadata.resourceVersion",
                                     object + "status.lastSync",
                                     object + "status.polls"));
      EXPECT_THAT(masks, Contains(mask));
    }
  }
}

TEST_F(TuningReportTest, UnderAnotherModeTuningIsIdle) {
  Start("tune: on\nmode: shadow\n");
  Call("logs");
  EXPECT_THAT(Admin({"tune"}),
              HasSubstr("function-a: tune: idle, as mode is not on\n"));
  EXPECT_EQ(json::parse(Admin({"tune", "--json"}))["functions"][0]["state"],
            "idle");
  EXPECT_THAT(Get("/statusz"), Not(HasSubstr("<dt>tuning")));
}

TEST_F(TuningReportTest, WithoutTuningThereIsNothingToReport) {
  Start("");
  for (int i = 0; i < 4; ++i) Call("logs");
  EXPECT_EQ(Metric("tune_hits_total"), 0);
  EXPECT_EQ(Metric("tune_keys", ",state=\"repeating\""), 0);
  EXPECT_THAT(Admin({"tune"}), HasSubstr("\nNo function has tune: on.\n"));
  EXPECT_THAT(Admin({"tune", "--function", "function-a"}),
              HasSubstr("function-a: tune: off\n"));
  EXPECT_THAT(Admin({"tune", "--function", "b"}, 1),
              HasSubstr("no function is called \"b\"; there are: function-a"));
  EXPECT_THAT(Get("/statusz"), Not(HasSubstr("<dt>tuning")));
  EXPECT_TRUE(json::parse(Get("/statusz?format=json"))["functions"][0]["tuning"]
                  .is_null());
}

}  // namespace
}  // namespace fncache::testing
