// SPDX-License-Identifier: Apache-2.0
// A function of the SDK that listens on a free port of loopback.
#ifndef FNCACHE_TESTS_RUNNER_FUNCTION_SERVED_H_
#define FNCACHE_TESTS_RUNNER_FUNCTION_SERVED_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "fncache/function/serve.h"
#include "gtest/gtest.h"
#include "runner/function/costly_calls.h"
#include "runner/function/template_function.h"

namespace fncache::runner::function {

// In plaintext, or with the certificates of `tls_dir`. Null if it cannot start,
// which is a failure of the test.
inline std::unique_ptr<::fncache::function::Server> Serve(
    ::fncache::function::Function function = TemplateFunction({}),
    const std::string& tls_dir = "",
    ::fncache::function::Interceptor interceptor = nullptr) {
  ::fncache::function::ServerOptions options;
  options.address = "127.0.0.1:0";
  options.insecure = tls_dir.empty();
  options.tls_certs_dir = tls_dir;
  options.function_options = FunctionOptions();
  options.interceptor = std::move(interceptor);
  auto server = ::fncache::function::Server::Start(std::move(options),
                                                   std::move(function));
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

// A function whose calls sleep.
struct SlowFunction {
  explicit SlowFunction(absl::Duration sleep)
      : calls(CostOptions{{sleep}}),
        server(Serve(TemplateFunction({}), "", calls.Interceptor())) {}

  CostlyCalls calls;
  const std::unique_ptr<::fncache::function::Server> server;
};

}  // namespace fncache::runner::function

#endif  // FNCACHE_TESTS_RUNNER_FUNCTION_SERVED_H_
