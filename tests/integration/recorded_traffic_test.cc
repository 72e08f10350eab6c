// SPDX-License-Identifier: Apache-2.0
// The recorded traffic of real functions through the daemon: first as misses,
// then as hits, answer for answer what was recorded.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proto/function_v1.pb.h"
#include "tests/common/test_data.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fs = std::filesystem;
using apiextensions::fn::proto::v1::FunctionRunnerService;
using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;
using google::protobuf::util::MessageDifferencer;

struct Call {
  std::string name;
  RunFunctionRequest request;
  RunFunctionResponse response;
};

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Call> ReadCalls(const fs::path& dir) {
  std::vector<Call> calls;
  for (const auto& file : fs::recursive_directory_iterator(dir)) {
    const std::string path = file.path().string();
    if (!absl::EndsWith(path, ".req.bin")) continue;
    Call call;
    call.name = path;
    const std::string answer =
        path.substr(0, path.size() - strlen(".req.bin")) + ".rsp.bin";
    EXPECT_TRUE(call.request.ParseFromString(ReadAll(path))) << path;
    EXPECT_TRUE(call.response.ParseFromString(ReadAll(answer))) << answer;
    calls.push_back(std::move(call));
  }
  return calls;
}

bool IsFatal(const RunFunctionResponse& response) {
  for (const auto& result : response.results()) {
    if (result.severity() == apiextensions::fn::proto::v1::SEVERITY_FATAL) {
      return true;
    }
  }
  return false;
}

// The project's own copy, and the larger folder where it is present.
std::vector<fs::path> Folders() {
  std::vector<fs::path> folders = DataFolders({"recorded"});
  folders.insert(folders.begin(), OwnRecordings());
  return folders;
}

class RecordedTrafficTest : public ::testing::TestWithParam<bool> {};

TEST_P(RecordedTrafficTest, ComesBackEqualAsMissesThenAsHits) {
  const bool store_fatal = GetParam();
  for (const fs::path& folder : Folders()) {
    SCOPED_TRACE(folder.string());
    const std::vector<Call> calls = ReadCalls(folder);
    ASSERT_FALSE(calls.empty());
    Process function({"function", "--listen", "127.0.0.1:0", "--insecure",
                      "--recorded", folder.string()});
    ASSERT_TRUE(function.WaitForStderr("listening on "));
    std::vector<std::string> arguments = {
        "serve",   "--insecure", "--listen",   "127.0.0.1:0",
        "--admin", "",           "--upstream", function.Listening().at(0)};
    if (store_fatal) arguments.push_back("--store-fatal");
    Process daemon(arguments);
    ASSERT_TRUE(daemon.WaitForStderr("listening on "));
    auto stub = FunctionRunnerService::NewStub(grpc::CreateChannel(
        daemon.Listening().at(0), grpc::InsecureChannelCredentials()));

    int hits = 0;
    for (int round = 0; round < 3; ++round) {
      for (const Call& call : calls) {
        SCOPED_TRACE(absl::StrCat(call.name, ", round ", round));
        RunFunctionRequest request = call.request;
        request.mutable_meta()->set_tag(absl::StrCat("tag of round ", round));
        RunFunctionResponse response;
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() +
                             absl::ToChronoSeconds(kPatience));
        const grpc::Status status =
            stub->RunFunction(&context, request, &response);
        ASSERT_TRUE(status.ok()) << status.error_message();
        EXPECT_EQ(response.meta().tag(), request.meta().tag());
        const auto header =
            context.GetServerInitialMetadata().find("cache-status");
        ASSERT_NE(header, context.GetServerInitialMetadata().end());
        const std::string cache_status(header->second.data(),
                                       header->second.size());
        const auto& ttl = call.response.meta().ttl();
        const bool kept = (ttl.seconds() > 0 || ttl.nanos() > 0) &&
                          (store_fatal || !IsFatal(call.response));
        if (!kept) {
          EXPECT_TRUE(absl::StartsWith(
              cache_status, round > 0
                                ? "fncache; fwd=miss; detail=\"not-stored: "
                                : "fncache; fwd=miss; detail="))
              << cache_status;
        } else if (round > 0) {
          EXPECT_TRUE(absl::StartsWith(cache_status, "fncache; hit; ttl="))
              << cache_status;
          ++hits;
        }
        RunFunctionResponse got = response;
        RunFunctionResponse want = call.response;
        EXPECT_EQ(got.meta().has_ttl(), want.meta().has_ttl());
        got.clear_meta();
        want.clear_meta();
        EXPECT_TRUE(MessageDifferencer::Equals(got, want));
      }
    }
    EXPECT_GT(hits, 0);
    daemon.Signal(SIGTERM);
    EXPECT_EQ(daemon.Wait(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(StoreFatal, RecordedTrafficTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "WithStoreFatal" : "ByDefault";
                         });

}  // namespace
}  // namespace fncache::testing
