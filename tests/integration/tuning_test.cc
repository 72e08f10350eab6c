// SPDX-License-Identifier: Apache-2.0
// Tuning with a real daemon, real calls, and functions that read what a cache
// may not expect. Each answer is compared with the function's answer to that
// very request.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/message_differencer.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/eventually.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fn = apiextensions::fn::proto::v1;
namespace pb = google::protobuf;

using Request = fn::RunFunctionRequest;
using Response = fn::RunFunctionResponse;

// ---------------------------------------------------------- What it is asked

pb::Value& At(pb::Struct* object, const std::vector<std::string>& path) {
  pb::Struct* within = object;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    within = (*within->mutable_fields())[path[i]].mutable_struct_value();
  }
  return (*within->mutable_fields())[path.back()];
}

// The text at a path, "" if there is none.
std::string Text(const pb::Struct& object,
                 const std::vector<std::string>& path) {
  const pb::Struct* within = &object;
  for (size_t i = 0; i < path.size(); ++i) {
    const auto found = within->fields().find(path[i]);
    if (found == within->fields().end()) return "";
    if (i + 1 == path.size()) return found->second.string_value();
    within = &found->second.struct_value();
  }
  return "";
}

std::string Time(int64_t seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                          absl::FromUnixSeconds(1'795'000'000 + seconds),
                          absl::UTCTimeZone());
}

// A cluster of one composite with two resources and a required object, whose
// versions and heartbeats tick with each request.
struct Cluster {
  int64_t tick = 0;        // heartbeats and versions
  int64_t transition = 0;  // of the condition
  std::string ready = "True";
  std::string tier = "silver";
  std::string name = "logs";

  Request Make() const {
    Request request;
    request.mutable_meta()->set_tag(absl::StrFormat("%064x", tick));
    pb::Struct* const composite =
        request.mutable_observed()->mutable_composite()->mutable_resource();
    At(composite, {"apiVersion"}).set_string_value("example.org/v1");
    At(composite, {"kind"}).set_string_value("Bucket");
    At(composite, {"metadata", "name"}).set_string_value(name);
    At(composite, {"metadata", "resourceVersion"})
        .set_string_value(std::to_string(100000 + 7 * tick));
    At(composite, {"spec", "tier"}).set_string_value(tier);
    for (const std::string which : {"a", "b"}) {
      pb::Struct* const object =
          (*request.mutable_observed()->mutable_resources())[which]
              .mutable_resource();
      const int64_t own = which == "a" ? tick : tick / 2;
      At(object, {"metadata", "name"}).set_string_value(which);
      At(object, {"metadata", "resourceVersion"})
          .set_string_value(std::to_string(200000 + 5 * own));
      pb::Struct* const writer = At(object, {"metadata", "managedFields"})
                                     .mutable_list_value()
                                     ->add_values()
                                     ->mutable_struct_value();
      At(writer, {"manager"}).set_string_value("provider");
      At(writer, {"time"}).set_string_value(Time(30 * own));
      At(object, {"status", "atProvider", "lastSync"})
          .set_string_value(Time(30 * own));
      pb::Struct* const condition = At(object, {"status", "conditions"})
                                        .mutable_list_value()
                                        ->add_values()
                                        ->mutable_struct_value();
      At(condition, {"type"}).set_string_value("Ready");
      At(condition, {"status"}).set_string_value(ready);
      At(condition, {"lastTransitionTime"}).set_string_value(Time(transition));
    }
    pb::Struct* const required =
        (*request.mutable_required_resources())["config"]
            .add_items()
            ->mutable_resource();
    At(required, {"metadata", "resourceVersion"})
        .set_string_value(std::to_string(300000 + 3 * tick));
    At(required, {"data", "color"}).set_string_value("blue");
    return request;
  }
};

const pb::Struct& Resource(const Request& request, const std::string& name) {
  return request.observed().resources().at(name).resource();
}
const pb::Struct& Composite(const Request& request) {
  return request.observed().composite().resource();
}
std::string Sync(const Request& request, const std::string& name) {
  return Text(Resource(request, name), {"status", "atProvider", "lastSync"});
}
std::string Version(const pb::Struct& object) {
  return Text(object, {"metadata", "resourceVersion"});
}

// ------------------------------------------------------------- The functions

// What a function makes of a request: the text of its answer.
using Behaviour = std::function<std::string(const Request&)>;

class Function final : public fn::FunctionRunnerService::Service {
 public:
  explicit Function(Behaviour behaviour) : behaviour_(std::move(behaviour)) {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Function() override { server_->Shutdown(); }

  static void Answer(const std::string& text, Response* response) {
    (*response->mutable_desired()->mutable_resources())["bucket"]
        .mutable_resource()
        ->CopyFrom([&] {
          pb::Struct object;
          At(&object, {"spec", "text"}).set_string_value(text);
          return object;
        }());
    response->mutable_meta()->mutable_ttl()->set_seconds(3600);
  }

  grpc::Status RunFunction(grpc::ServerContext* context, const Request* request,
                           Response* response) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tags_.insert(request->meta().tag());
      ++runs_;
      most_ = std::max(most_, ++running_);
      for (const auto& [key, value] : context->client_metadata()) {
        if (key == "cache-control" && value == "no-store") ++questions_;
      }
    }
    const std::string text = behaviour_(*request);
    const std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    if (text == "error") {
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no");
    }
    response->mutable_meta()->set_tag(request->meta().tag());
    Answer(text, response);
    return grpc::Status::OK;
  }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }
  std::string TextFor(const Request& request) { return behaviour_(request); }
  int questions() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return questions_;
  }
  int runs() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return runs_;
  }
  int running() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return running_;
  }
  int most() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return most_;
  }
  size_t tags() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return tags_.size();
  }

 private:
  const Behaviour behaviour_;
  mutable std::mutex mutex_;
  std::set<std::string> tags_;
  int runs_ = 0;
  int questions_ = 0;
  int running_ = 0;
  int most_ = 0;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// ------------------------------------------------------------------ The test

class TuningTest : public ::testing::Test {
 protected:
  void Start(Behaviour behaviour, const std::string& settings = "") {
    function_ = std::make_unique<Function>(std::move(behaviour));
    WriteFile(
        file_,
        absl::StrCat("insecure: true\nlisten: \"127.0.0.1:0\"\nupstream: \"",
                     function_->target(),
                     "\"\nadmin: \"127.0.0.1:0\"\ndrain: 1s\n"
                     "tune: on\ntune_share: 1\n",
                     settings));
    daemon_ = std::make_unique<Process>(std::vector<std::string>{
        "serve", "--config", file_, "--admin-socket", dir_.File("admin.sock")});
    ASSERT_TRUE(daemon_->WaitForStderr("(admin:")) << daemon_->Stderr();
    grpc::ChannelArguments channel;
    channel.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub_ = fn::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
        daemon_->Listening()[0], grpc::InsecureChannelCredentials(), channel));
  }

  // Calls with this request. The answer must be the function's own, if it has
  // one that depends on the request alone.
  std::string Call(const Request& request, bool compare = true) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
    Response response;
    const grpc::Status status =
        stub_->RunFunction(&context, request, &response);
    ++calls_;
    std::string cache_status;
    for (const auto& [key, value] : context.GetServerInitialMetadata()) {
      if (key == "cache-status") {
        cache_status = std::string(value.data(), value.size());
      }
    }
    if (!status.ok()) return absl::StrCat("error; ", cache_status);
    EXPECT_EQ(response.meta().tag(), request.meta().tag());
    const std::string text =
        Text(response.desired().resources().at("bucket").resource(),
             {"spec", "text"});
    if (compare) {
      const std::string own = function_->TextFor(request);
      EXPECT_EQ(text, own) << cache_status;
      if (text != own) ++wrong_;
    }
    if (absl::EndsWith(cache_status, "detail=drift")) ++hits_;
    return cache_status;
  }

  // Waits until the function has been asked all that it will be asked now.
  void WaitForQuestions() {
    for (int still = 0, before = -1; still < 3;) {
      const int runs = function_->runs();
      still = runs == before && function_->running() == 0 ? still + 1 : 0;
      before = runs;
      absl::SleepFor(absl::Milliseconds(5));
    }
  }

  // Lets everything tick this often, with a call for each.
  std::map<std::string, int> Tick(int times, bool compare = true) {
    std::map<std::string, int> statuses;
    for (int i = 0; i < times; ++i) {
      ++cluster_.tick;
      std::string status = Call(cluster_.Make(), compare);
      const size_t ttl = status.find("ttl=");
      if (ttl != status.npos) {
        status.erase(ttl, status.find(';', ttl) - ttl);
      }
      ++statuses[status];
      WaitForQuestions();
    }
    return statuses;
  }

  // Prints a row of the closing table.
  void Report(const std::string& name, const std::string& verdict) {
    std::printf(
        "%-12s %5d calls %5d hits across drift %4d questions %s, %d "
        "wrong\n",
        name.c_str(), calls_, hits_, function_->questions(), verdict.c_str(),
        wrong_);
  }

  TempDir dir_;
  const std::string file_ = dir_.File("fncache.yaml");
  std::unique_ptr<Function> function_;
  std::unique_ptr<Process> daemon_;
  std::unique_ptr<fn::FunctionRunnerService::Stub> stub_;
  Cluster cluster_;
  int calls_ = 0;
  int hits_ = 0;
  int wrong_ = 0;
};

TEST_F(TuningTest, AnEntryAnswersAcrossDriftOnceItIsProven) {
  Start([](const Request& request) {
    return Text(Composite(request), {"spec", "tier"});
  });
  EXPECT_EQ(Call(cluster_.Make()), "fncache; fwd=miss; stored; detail=new");
  // Equal drift needs no proof.
  EXPECT_EQ(Call(cluster_.Make()).substr(0, 13), "fncache; hit;");
  EXPECT_EQ(hits_, 0);
  cluster_.tick += 2;
  EXPECT_EQ(Call(cluster_.Make()),
            "fncache; fwd=miss; stored; detail=\"drift: unproven\"");
  cluster_.tick += 2;
  EXPECT_EQ(function_->questions(), 0);
  EXPECT_EQ(Call(cluster_.Make()),
            "fncache; fwd=miss; stored; detail=\"drift: unproven\"");
  EXPECT_TRUE(Eventually([&] { return function_->questions() == 4; }));
  WaitForQuestions();
  const int runs = function_->runs();
  for (int i = 0; i < 20; ++i) {
    ++cluster_.tick;
    const std::string status = Call(cluster_.Make());
    EXPECT_TRUE(absl::StartsWith(status, "fncache; hit; ttl=")) << status;
    EXPECT_TRUE(absl::EndsWith(status, "; detail=drift")) << status;
  }
  EXPECT_EQ(function_->runs(), runs);
  // Another word is another request.
  cluster_.tier = "gold";
  EXPECT_TRUE(absl::StartsWith(Call(cluster_.Make()), "fncache; fwd=miss"));
}

TEST_F(TuningTest, AKindThatMovesForTheFirstTimeCallsTheFunction) {
  Start([](const Request& request) {
    return Text(Composite(request), {"spec", "tier"});
  });
  Tick(8);
  EXPECT_GT(hits_, 0);
  ++cluster_.transition;
  EXPECT_EQ(Call(cluster_.Make()),
            "fncache; fwd=miss; stored; "
            "detail=\"drift: moved status lastTransitionTime\"");
}

struct Row {
  const char* name;
  const char* verdict;  // "proven", "read" or "versions"
  Behaviour behaviour;
};

class TuningRowTest : public TuningTest,
                      public ::testing::WithParamInterface<Row> {};

TEST_P(TuningRowTest, HasItsVerdictAndNoWrongAnswer) {
  const Row& row = GetParam();
  Start(row.behaviour);
  const auto statuses = Tick(30);
  Report(row.name, row.verdict);
  std::string all;
  for (const auto& [status, count] : statuses) {
    absl::StrAppend(&all, count, " ", status, "\n");
  }
  EXPECT_EQ(wrong_, 0);
  if (std::string(row.verdict) == "proven") {
    EXPECT_GE(hits_, 20) << all;
  } else {
    EXPECT_EQ(hits_, 0) << all;
    EXPECT_TRUE(absl::StrContains(all, "detail=\"drift: read\"")) << all;
  }
}

std::string Order(bool before) { return before ? "before" : "after"; }

INSTANTIATE_TEST_SUITE_P(
    Functions, TuningRowTest,
    ::testing::Values(
        Row{"plain", "proven",
            [](const Request& request) {
              return Text(Composite(request), {"spec", "tier"});
            }},
        Row{"required", "proven",
            [](const Request& request) {
              return Text(
                  request.required_resources().at("config").items(0).resource(),
                  {"data", "color"});
            }},
        Row{"pass", "read",
            [](const Request& request) { return Sync(request, "a"); }},
        Row{"newest", "read",
            [](const Request& request) {
              return Sync(request, "a") > Sync(request, "b") ? "a" : "b";
            }},
        Row{"equal", "read",
            [](const Request& request) {
              return Sync(request, "a") == Sync(request, "b") ? "same"
                                                              : "other";
            }},
        Row{"both", "read",
            [](const Request& request) {
              return Order(Sync(request, "a") < Sync(request, "b") &&
                           Version(Resource(request, "a")) <
                               Version(Resource(request, "b")));
            }},
        Row{"rollout", "read",
            [](const Request& request) {
              return Version(request.required_resources()
                                 .at("config")
                                 .items(0)
                                 .resource());
            }},
        Row{"digest", "read",
            [](const Request& request) {
              std::string all;
              for (const char* name : {"a", "b"}) {
                all += Resource(request, name).ShortDebugString();
              }
              return absl::StrFormat("%x", std::hash<std::string>()(all));
            }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(TuningTest, QuestionsHaveTheirOwnTagsAndComeAfterTheAnswer) {
  Start([](const Request& request) {
    return Text(Composite(request), {"spec", "tier"});
  });
  Tick(10);
  EXPECT_EQ(function_->tags(), static_cast<size_t>(function_->runs()));
  EXPECT_EQ(function_->questions(), 4);
  EXPECT_LE(function_->most(), 2);
}

TEST_F(TuningTest, WithoutAShareNothingIsAsked) {
  Start(
      [](const Request& request) {
        return Text(Composite(request), {"spec", "tier"});
      },
      "");
  WriteFile(file_, absl::StrCat(
                       "insecure: true\nlisten: \"127.0.0.1:0\"\nupstream: \"",
                       function_->target(),
                       "\"\nadmin: \"127.0.0.1:0\"\ndrain: 1s\n"
                       "tune: on\ntune_share: 0\n"));
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(daemon_->WaitForStderr("settings were reloaded"))
      << daemon_->Stderr();
  Tick(10);
  EXPECT_EQ(hits_, 0);
  EXPECT_EQ(function_->questions(), 0);
  EXPECT_EQ(function_->runs(), 10);
}

}  // namespace
}  // namespace fncache::testing
