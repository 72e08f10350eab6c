// SPDX-License-Identifier: Apache-2.0
// SimulatedDaemon: a whole daemon whose cache lives in simulated time, with
// settings as people write them, and a caller for each of its functions.
//
// For one thread, like its clock.
#ifndef FNCACHE_TESTS_PROXY_SIMULATED_DAEMON_H_
#define FNCACHE_TESTS_PROXY_SIMULATED_DAEMON_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/yaml.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proxy/daemon.h"
#include "proxy/settings/check.h"
#include "proxy/settings/settings.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/start_daemon.h"

namespace fncache::proxy {

class SimulatedDaemon {
 public:
  using Request = apiextensions::fn::proto::v1::RunFunctionRequest;
  using Response = apiextensions::fn::proto::v1::RunFunctionResponse;
  using Stub = apiextensions::fn::proto::v1::FunctionRunnerService::Stub;

  // `settings`: YAML of policy settings, for all functions alike, which are all
  // behind `upstream`.
  SimulatedDaemon(const std::string& settings, const std::string& upstream,
                  const std::vector<std::string>& functions = {"function"})
      : start_(absl::FromUnixSeconds(1'900'000'000)), clock_(start_) {
    Daemon::Extras extras;
    extras.clock = &clock_;
    auto daemon =
        StartDaemon(Options(settings, upstream, functions), std::move(extras));
    if (!daemon.ok()) {
      ADD_FAILURE() << daemon.status();
      std::abort();
    }
    daemon_ = *std::move(daemon);
    for (size_t i = 0; i < functions.size(); ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
      const auto channel = grpc::CreateCustomChannel(
          daemon_->addresses()[i], grpc::InsecureChannelCredentials(),
          arguments);
      channels_[functions[i]] = channel;
      stubs_[functions[i]] =
          apiextensions::fn::proto::v1::FunctionRunnerService::NewStub(channel);
    }
  }
  ~SimulatedDaemon() { daemon_->Drain(); }

  // Time of the cache since the start.
  void SetTime(absl::Duration since) { clock_.Set(start_ + since); }

  struct Answer {
    bool hit = false;
    std::string status;  // cache-status
    Response response;
  };
  // Calls, with more metadata.
  Answer Call(const std::string& function, const Request& request,
              const std::map<std::string, std::string>& metadata = {}) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    Answer answer;
    const grpc::Status status =
        stubs_[function]->RunFunction(&context, request, &answer.response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto& headers = context.GetServerInitialMetadata();
    const auto header = headers.find("cache-status");
    EXPECT_NE(header, headers.end()) << "no cache-status";
    if (header != headers.end()) {
      answer.status.assign(header->second.data(), header->second.size());
    }
    answer.hit = absl::StartsWith(answer.status, "fncache; hit");
    return answer;
  }

  // Calls, and returns what became of it.
  grpc::StatusCode Status(const std::string& function, const Request& request,
                          const std::map<std::string, std::string>& metadata) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    Response response;
    return stubs_[function]
        ->RunFunction(&context, request, &response)
        .error_code();
  }

  // Calls with any bytes, and returns the cache-status.
  std::string CallBytes(const std::string& function, const std::string& bytes,
                        const char* method = kRunFunctionV1) {
    auto caller = std::make_shared<serving::Caller>();
    caller->context.set_deadline(
        absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    caller->Start(channels_[function], method, bytes);
    caller->Wait();
    return caller->cache_status();
  }

 private:
  static settings::DaemonOptions Options(
      const std::string& settings, const std::string& upstream,
      const std::vector<std::string>& functions) {
    SettingsInput input;
    input.file_name = "test.yaml";
    const auto yaml =
        ParseYaml(absl::StrCat("insecure: true\nadmin: \"\"\nadmin_socket: "
                               "\"\"\nlisten: \"127.0.0.1:0\"\n",
                               "upstream: \"", upstream, "\"\n", settings),
                  input.file_name);
    EXPECT_TRUE(yaml.ok()) << yaml.status();
    input.file = *yaml;
    auto resolved = settings::ServeSettings().Resolve(input);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    auto made = settings::MakeServeOptions(&*resolved);
    EXPECT_TRUE(made.ok()) << made.status();
    settings::DaemonOptions options = made->daemon;
    const settings::FunctionOptions like = options.functions[0];
    options.functions.assign(functions.size(), like);
    for (size_t i = 0; i < functions.size(); ++i) {
      options.functions[i].name = functions[i];
    }
    return options;
  }

  const absl::Time start_;
  SimulatedClock clock_;
  std::unique_ptr<Daemon> daemon_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
  std::map<std::string, std::unique_ptr<Stub>> stubs_;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_TESTS_PROXY_SIMULATED_DAEMON_H_
