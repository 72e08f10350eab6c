// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/internal_render.h"

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runner/render/loader.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {

namespace fs = std::filesystem;
namespace render = runner::render;
using crossplane::render::v1alpha1::CompositeInput;
using crossplane::render::v1alpha1::RenderRequest;
using text::Json;
using text::ToStruct;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Ended Shell(const std::string& command, const std::string& input) {
  const TempDir dir;
  const std::string file = dir.path() + "/input";
  std::ofstream(file, std::ios::binary) << input;
  Process process({"-c", command, FNCACHE_BINARY, file}, {}, "/bin/sh");
  Ended ended;
  ended.exit_code = process.Wait();
  ended.out = process.Stdout();
  ended.err = process.Stderr();
  return ended;
}

Ended InternalRender(const RenderRequest& request, const std::string& flags) {
  return Shell(absl::StrCat("exec \"$0\" internal render ", flags, " <\"$1\""),
               request.SerializeAsString());
}

Json LoadFile(const fs::path& path) {
  const auto loaded = render::LoadObject(path.string());
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *loaded->object : Json::object();
}

// Its context steps aside.
RenderRequest CaseRequest(
    const fs::path& folder,
    const std::function<std::string(const std::string& name)>& address) {
  RenderRequest request;
  request.mutable_meta();
  CompositeInput* const input = request.mutable_composite();
  *input->mutable_composite_resource() = ToStruct(LoadFile(folder / "xr.yaml"));
  const Json composition = LoadFile(folder / "composition.yaml");
  *input->mutable_composition() = ToStruct(composition);
  for (const Json& step : composition["spec"]["pipeline"]) {
    auto* const function = input->add_functions();
    function->set_name(step["functionRef"]["name"].get<std::string>());
    function->set_address(address(function->name()));
  }
  const auto load = [&](const char* file, auto* into) {
    if (!fs::exists(folder / file)) return;
    const auto loaded = render::LoadResources({(folder / file).string()});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    for (const auto& object : *loaded) *into->Add() = ToStruct(*object.object);
  };
  load("observed.yaml", input->mutable_observed_resources());
  load("required.yaml", input->mutable_required_resources());
  load("credentials.yaml", input->mutable_credentials());
  if (fs::exists(folder / "schemas")) {
    const auto schemas = render::LoadSchemas((folder / "schemas").string());
    EXPECT_TRUE(schemas.ok()) << schemas.status();
    for (const Json& one : *schemas) {
      *input->add_required_schemas() = ToStruct(one);
    }
  }
  return request;
}

void FixTimes(Json* object) {
  if (!object->contains("status")) return;
  Json& status = (*object)["status"];
  if (!status.is_object() || !status.contains("conditions")) return;
  for (Json& condition : status["conditions"]) {
    condition["lastTransitionTime"] = "2024-01-01T00:00:00Z";
  }
}

}  // namespace fncache::testing
