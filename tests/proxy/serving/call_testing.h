// SPDX-License-Identifier: Apache-2.0
// The tests of calls share this: real gRPC callers call the listener and
// handler under test, behind which is a scripted function.
#ifndef FNCACHE_TESTS_PROXY_SERVING_CALL_TESTING_H_
#define FNCACHE_TESTS_PROXY_SERVING_CALL_TESTING_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/proxy/serving/scripted.h"

namespace fncache::proxy::serving {

class CallTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (proxy_ == nullptr) return;
    // Nothing is left behind, whatever happened.
    EXPECT_TRUE(Eventually([&] { return proxy_->flights().empty(); }));
    proxy_->Stop();
    EXPECT_TRUE(proxy_->flights().empty());
    const telemetry::FunctionGauges now =
        proxy_->instruments.function(0).ReadGauges();
    EXPECT_EQ(now.in_flight, 0);
    EXPECT_EQ(now.flights, 0);
  }

  CachingProxy& Proxy() {
    if (proxy_ == nullptr) {
      store_ = std::make_unique<ScriptedStore>(has_lower_, memory_);
      proxy_ = std::make_unique<CachingProxy>(function_.target(), options_,
                                              store_.get(), /*workers=*/2,
                                              explains_, inflight_bytes_);
      channel_ = Connect(proxy_->target());
    }
    return *proxy_;
  }

  using Metadata = std::vector<std::pair<std::string, std::string>>;
  CallerPtr Send(const std::string& request, const Metadata& metadata = {},
                 absl::Duration timeout = absl::InfiniteDuration(),
                 const std::string& path = kRunFunctionV1) {
    Proxy();
    auto caller = std::make_shared<Caller>();
    for (const auto& [key, value] : metadata) {
      caller->context.AddMetadata(key, value);
    }
    if (timeout != absl::InfiniteDuration()) {
      caller->context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    }
    caller->Start(channel_, path, request);
    return caller;
  }
  // A call that the function answers so.
  CallerPtr Fill(const std::string& request,
                 const fnv1::RunFunctionResponse& response,
                 const Metadata& metadata = {}) {
    auto caller = Send(request, metadata);
    function_.Next()->Answer(response.SerializeAsString());
    EXPECT_TRUE(caller->Wait().ok());
    return caller;
  }
  // At once: a call is counted before its caller has the answer.
  telemetry::FunctionCounts Counted() {
    const telemetry::FunctionInstruments& function =
        Proxy().instruments.function(0);
    EXPECT_EQ(function.ReadGauges().in_flight, 0);
    return function.Read();
  }
  uint64_t Bypassed(cache::Reason reason) {
    return Counted().bypassed[telemetry::BypassReasonIndex(reason)];
  }
  void WaitForCallers(size_t n) {
    EXPECT_TRUE(Eventually([&] { return proxy_->flights().callers == n; }));
  }

  bool has_lower_ = false;
  bool explains_ = false;
  size_t inflight_bytes_ = 0;  // no bound
  cache::store::MemoryStoreOptions memory_;
  settings::FunctionOptions options_;
  ScriptedFunction function_;
  std::unique_ptr<ScriptedStore> store_;
  std::unique_ptr<CachingProxy> proxy_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_TESTS_PROXY_SERVING_CALL_TESTING_H_
