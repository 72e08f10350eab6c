// SPDX-License-Identifier: Apache-2.0
// Settings read again by a real process: signals, files as operators and
// Kubernetes change them, and what the process says of it.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/eventually.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fn = apiextensions::fn::proto::v1;
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class ReloadProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    function_ = std::make_unique<Process>(std::vector<std::string>{
        "function", "--insecure", "--listen", "127.0.0.1:0"});
    ASSERT_TRUE(function_->WaitForStderr("listening on"));
  }
  std::string Base() const {
    return absl::StrCat("insecure: true\nlisten: \"127.0.0.1:0\"\nupstream: \"",
                        function_->Listening()[0],
                        "\"\nadmin: \"127.0.0.1:0\"\ndrain: 1s\n");
  }
  void Start(const std::vector<std::string>& arguments,
             const Process::Environment& environment = {}) {
    std::vector<std::string> all = {"serve"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    daemon_ = std::make_unique<Process>(all, environment);
    ASSERT_TRUE(daemon_->WaitForStderr("(admin:")) << daemon_->Stderr();
    stub_ = fn::FunctionRunnerService::NewStub(grpc::CreateChannel(
        daemon_->Listening()[0], grpc::InsecureChannelCredentials()));
  }
  // Makes a call and returns its cache-status.
  std::string Call() {
    fn::RunFunctionRequest request;
    request.mutable_observed()->mutable_composite()->mutable_resource();
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    fn::RunFunctionResponse response;
    const grpc::Status status =
        stub_->RunFunction(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto& headers = context.GetServerInitialMetadata();
    const auto header = headers.find("cache-status");
    return header == headers.end()
               ? ""
               : std::string(header->second.data(), header->second.size());
  }
  std::string Page(const std::string& path) {
    return HttpGet(daemon_->Listening()[1], path);
  }
  // Metrics follow just behind the log's line.
  bool LastReloadBecomes(double value) {
    return Eventually([&] {
      return Sample(Page("/metrics"),
                    "fncache_config_last_reload_successful") == value;
    });
  }

  TempDir dir_;
  std::unique_ptr<Process> function_;
  std::unique_ptr<Process> daemon_;
  std::unique_ptr<fn::FunctionRunnerService::Stub> stub_;
};

TEST_F(ReloadProcessTest, ASignalHasTheFileReadAgain) {
  const std::string file = dir_.File("fncache.yaml");
  WriteFile(file, Base());
  Start({"--config", file});
  Call();
  EXPECT_THAT(Call(), HasSubstr("hit"));
  WriteFile(file, Base() + "mode: \"off\"\nworkers: 5\n");
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(daemon_->WaitForStderr("settings that take a restart"));
  EXPECT_EQ(Call(), "fncache; fwd=bypass");
  EXPECT_THAT(daemon_->Stderr(), HasSubstr("mode=\"on -> off\""));
  EXPECT_THAT(daemon_->Stderr(), HasSubstr("workers=\"unset -> 5\""));
  // The page has it when all is in force, just behind the log's line.
  EXPECT_TRUE(Eventually([this] {
    return absl::StrContains(Page("/statusz"), "workers: unset -&gt; 5");
  }));
  WriteFile(file, Base() + "mode: of\n");
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(daemon_->WaitForStderr("settings were not reloaded"));
  EXPECT_THAT(daemon_->Stderr(),
              HasSubstr(absl::StrCat("why=\"", file, ":6: mode: ")));
  EXPECT_THAT(daemon_->Stderr(), HasSubstr("accepted: on, off or shadow"));
  EXPECT_EQ(Call(), "fncache; fwd=bypass");
  EXPECT_TRUE(LastReloadBecomes(0));
  WriteFile(file, Base());
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(daemon_->WaitForStderr("settings were reloaded", 2));
  EXPECT_THAT(Call(), HasSubstr("hit"));
  EXPECT_TRUE(LastReloadBecomes(1));
  EXPECT_EQ(Sample(Page("/metrics"),
                   "fncache_config_reloads_total{result=\"failure\"}"),
            1);
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
}

TEST_F(ReloadProcessTest, AFileThatIsSwappedIsReadByItself) {
  const auto put = [this](const std::string& folder, const std::string& text) {
    fs::create_directory(dir_.File(folder));
    WriteFile(dir_.File(folder + "/fncache.yaml"), Base() + text);
    fs::create_directory_symlink(folder, dir_.File("..data_tmp"));
    fs::rename(dir_.File("..data_tmp"), dir_.File("..data"));
  };
  put("..1", "");
  fs::create_symlink("..data/fncache.yaml", dir_.File("fncache.yaml"));
  Start({}, {{"FNCACHE_CONFIG", dir_.File("fncache.yaml")},
             {"FNCACHE_TTL_MAX", "2h"}});
  put("..2", "ttl: {max: 1h}\nmode: \"off\"\n");
  ASSERT_TRUE(daemon_->WaitForStderr("settings were reloaded"));
  EXPECT_EQ(Call(), "fncache; fwd=bypass");
  EXPECT_THAT(daemon_->Stderr(), Not(HasSubstr("ttl.max")))
      << "the environment stands before the file";
}

TEST_F(ReloadProcessTest, WithoutAFileASignalSaysSo) {
  Start({"--insecure", "--listen", "127.0.0.1:0", "--upstream",
         function_->Listening()[0], "--admin", "127.0.0.1:0"});
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(daemon_->WaitForStderr("nothing was reloaded"));
  EXPECT_THAT(daemon_->Stderr(), HasSubstr("--config"));
  Call();
  EXPECT_THAT(Call(), HasSubstr("hit"));
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
}

// Signals in any number, at any time, are no harm.
TEST_F(ReloadProcessTest, ManySignalsAreNoHarm) {
  const std::string file = dir_.File("fncache.yaml");
  WriteFile(file, Base());
  Start({"--config", file});
  for (int i = 0; i < 300; ++i) {
    WriteFile(file + ".new",
              Base() + (i % 2 == 0 ? "mask: [\"@times\"]\n" : ""));
    fs::rename(file + ".new", file);
    daemon_->Signal(SIGHUP);
    if (i % 10 == 0) Call();
  }
  daemon_->Signal(SIGHUP);
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
  EXPECT_THAT(daemon_->Stderr(), Not(HasSubstr("not reloaded")));
}

TEST_F(ReloadProcessTest, TheCheckTellsWhatCanChange) {
  Process check(
      {"serve", "--insecure", "--upstream", "127.0.0.1:1", "--check"});
  EXPECT_EQ(check.Wait(), 0);
  const std::string out = check.Stdout();
  const size_t now = out.find("# Can change while it runs");
  const size_t restart = out.find("# Take a restart");
  ASSERT_NE(now, std::string::npos);
  ASSERT_NE(restart, std::string::npos);
  EXPECT_GT(out.find("cache.memory,", now), now);
  EXPECT_LT(out.find("cache.memory,", now), restart);
  EXPECT_NE(out.find("cache.dir,", restart), std::string::npos);
}

}  // namespace
}  // namespace fncache::testing
