// SPDX-License-Identifier: Apache-2.0
// Real pipelines, as the reference runner ran them: the functions answer from
// recordings, and every request that the engine sends must be one of those that
// were recorded.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "cache/key/mask.h"
#include "common/clock.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.pb.h"
#include "runner/client/function_caller.h"
#include "runner/engine/composition.h"
#include "runner/engine/engine.h"
#include "runner/function/recordings.h"
#include "runner/render/loader.h"
#include "tests/common/test_data.h"
#include "tests/runner/function/respond.h"
#include "text/json.h"
#include "text/object.h"

namespace fncache::testing {
namespace {

namespace client = runner::client;
namespace engine = runner::engine;
namespace fs = std::filesystem;
namespace function = runner::function;
namespace render = runner::render;

using apiextensions::fn::proto::v1::RunFunctionRequest;
using google::protobuf::Struct;
using google::protobuf::Value;

// The runner stamps conditions of the composite with the time of its run.
constexpr char kTimes[] =
    "observed.composite.resource.status.conditions.*.lastTransitionTime";

class RecordedFunctions : public client::FunctionCaller {
 public:
  explicit RecordedFunctions(const function::Recordings* recordings)
      : function_(recordings->Function()) {}

  void Call(const std::string& function, const RunFunctionRequest& request,
            absl::Time deadline, Done done) override {
    asked.push_back(request);
    client::CallResult result;
    auto response = function::TryRespond(function_, request);
    result.status = response.status();
    if (response.ok()) result.response = *std::move(response);
    done(std::move(result));
  }

  std::vector<RunFunctionRequest> asked;

 private:
  const ::fncache::function::Function function_;
};

std::vector<RunFunctionRequest> Recorded(const fs::path& folder) {
  std::vector<RunFunctionRequest> requests;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (!absl::EndsWith(file.path().string(), ".req.bin")) continue;
    std::ifstream in(file.path(), std::ios::binary);
    EXPECT_TRUE(requests.emplace_back().ParseFromIstream(&in)) << file.path();
  }
  return requests;
}

// The composite of a request as text, without what differs from run to run.
std::string ComposedFor(const RunFunctionRequest& request) {
  Struct composite = request.observed().composite().resource();
  Value* const conditions = text::Ensure(&composite, {"status", "conditions"});
  for (Value& condition : *conditions->mutable_list_value()->mutable_values()) {
    text::Remove(condition.mutable_struct_value(), {"lastTransitionTime"});
  }
  return text::FromStruct(composite).dump();
}

engine::EngineInput::Objects Load(const std::vector<std::string>& paths) {
  auto loaded = render::LoadResources(paths);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  auto objects = std::make_shared<std::vector<Struct>>();
  if (!loaded.ok()) return objects;
  for (const render::LoadedObject& object : *loaded) {
    objects->push_back(text::ToStruct(*object.object));
  }
  return objects;
}

// The folder's case as its `args` name it; nullopt if it has none.
absl::optional<engine::EngineInput> LoadCase(const fs::path& folder) {
  std::ifstream args(folder / "args");
  std::string word;
  std::vector<std::string> observed;
  std::vector<std::string> required;
  std::vector<std::string> credentials;
  std::vector<std::string> files;
  while (args >> word) {
    std::vector<std::string>* const list = word == "-o"   ? &observed
                                           : word == "-e" ? &required
                                           : word == "--function-credentials"
                                               ? &credentials
                                               : nullptr;
    if (list != nullptr) {
      args >> word;
      list->push_back((folder / word).string());
    } else if (!absl::StartsWith(word, "-")) {
      files.push_back((folder / word).string());
    }
  }
  if (files.size() < 2) return absl::nullopt;
  engine::EngineInput input;
  const auto composite = render::LoadComposite(files[0]);
  const auto loaded = render::LoadComposition(files[1]);
  EXPECT_TRUE(composite.ok()) << composite.status();
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!composite.ok() || !loaded.ok()) return absl::nullopt;
  auto composition = engine::ParseComposition(text::ToStruct(*loaded->object));
  EXPECT_TRUE(composition.ok()) << composition.status();
  if (!composition.ok()) return absl::nullopt;
  input.composite = text::ToStruct(*composite->object);
  input.composition =
      std::make_shared<const engine::Composition>(*std::move(composition));
  input.observed = Load(observed);
  input.required = Load(required);
  input.credentials = Load(credentials);
  return input;
}

void Play(const fs::path& folder) {
  SCOPED_TRACE(folder.string());
  absl::optional<engine::EngineInput> input = LoadCase(folder);
  ASSERT_TRUE(input.has_value());
  auto masks = cache::key::MaskSet::Parse({kTimes});
  ASSERT_TRUE(masks.ok()) << masks.status();
  const auto recordings = function::Recordings::Load(
      {(folder / "calls").string()}, *masks, absl::nullopt);
  ASSERT_TRUE(recordings.ok()) << recordings.status();

  RecordedFunctions functions(recordings->get());
  SimulatedClock clock(absl::FromUnixSeconds(1700000000));
  engine::EngineOutcome outcome;
  engine::Render(
      *std::move(input), engine::EngineOptions(), &functions, &clock, nullptr,
      [&outcome](engine::EngineOutcome done) { outcome = std::move(done); });

  std::vector<std::string> wanted;
  for (const RunFunctionRequest& request : Recorded(folder / "calls")) {
    wanted.push_back(ComposedFor(request));
  }
  std::vector<std::string> sent;
  for (const RunFunctionRequest& request : functions.asked) {
    sent.push_back(ComposedFor(request));
  }
  EXPECT_THAT(sent, ::testing::UnorderedElementsAreArray(wanted));

  int code = 0;
  ASSERT_TRUE(std::ifstream(folder / "want.rc") >> code);
  EXPECT_EQ(outcome.status.ok(), code == 0) << outcome.status;
  if (code == 0) return;
  std::ifstream errors(folder / "want.err");
  const std::string all{std::istreambuf_iterator<char>(errors), {}};
  const std::vector<std::string> parts =
      absl::StrSplit(all, "crossplane: error: ");
  EXPECT_TRUE(
      absl::StartsWith(parts.back(), std::string(outcome.status.message())))
      << parts.back() << "\n"
      << outcome.status;
}

TEST(RecordedPipelinesTest, EveryRequestIsOneThatTheReferenceRunnerSent) {
  std::vector<fs::path> roots = DataFolders({"recorded", "examples"});
  roots.push_back(OwnRecordings());
  int cases = 0;
  for (const fs::path& root : roots) {
    for (const auto& folder : fs::directory_iterator(root)) {
      if (!fs::exists(folder.path() / "args")) continue;
      Play(folder.path());
      ++cases;
    }
  }
  EXPECT_GE(cases, 7);
}

}  // namespace
}  // namespace fncache::testing
