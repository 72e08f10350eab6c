// SPDX-License-Identifier: Apache-2.0
#include "tests/sdk/compose/caller.h"

#include "nlohmann/json.hpp"
#include "text/kubernetes_yaml.h"

namespace fncache::sdk {

google::protobuf::Struct FromYaml(absl::string_view yaml) {
  const auto json = text::ParseKubernetesYaml(yaml);
  EXPECT_TRUE(json.ok()) << json.status() << yaml;
  return json.ok() ? text::ToStruct(*json) : google::protobuf::Struct();
}

}  // namespace fncache::sdk
