// SPDX-License-Identifier: Apache-2.0
#include "tests/sdk/serve/process.h"

#include "nlohmann/json.hpp"

namespace fncache::sdk::serve {

nlohmann::json Process::Line(const std::string& message) const {
  const std::string log = Err();
  for (const auto line : absl::StrSplit(log, '\n')) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.value("msg", "") == message) return json;
  }
  return nullptr;
}

std::string Process::Field(const std::string& message,
                           const std::string& name) const {
  const nlohmann::json line = Line(message);
  return line.is_object() ? line.value(name, "") : "";
}

}  // namespace fncache::sdk::serve
