// SPDX-License-Identifier: Apache-2.0
// A function of examples/sdk as its author's process.
#ifndef FNCACHE_TESTS_INTEGRATION_EXAMPLE_FUNCTION_H_
#define FNCACHE_TESTS_INTEGRATION_EXAMPLE_FUNCTION_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace fncache::testing {

class ExampleFunction : public Process {
 public:
  explicit ExampleFunction(const std::string& name,
                           const std::string& address = "127.0.0.1:0",
                           std::vector<std::string> more = {})
      : Process(WithAddress(std::move(more), address), {},
                absl::StrCat(FNCACHE_EXAMPLES "/example_", name)) {
    EXPECT_TRUE(WaitForStderr("\"msg\":\"listening\""));
    const std::string field = "\"address\":\"";
    const std::string log = Stderr();
    const size_t at = log.find(field);
    if (at == std::string::npos) return;
    const size_t from = at + field.size();
    address_ = log.substr(from, log.find('"', from) - from);
  }
  const std::string& address() const { return address_; }

 private:
  static std::vector<std::string> WithAddress(std::vector<std::string> flags,
                                              const std::string& address) {
    flags.insert(flags.end(), {"--insecure", "--log-format=json", "--address",
                               address, "--metrics-address="});
    return flags;
  }

  std::string address_;
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_INTEGRATION_EXAMPLE_FUNCTION_H_
