// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/metrics.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/http_get.h"
#include "tests/common/loopback_socket.h"
#include "tests/sdk/serve/serving.h"

namespace fncache::sdk::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kV1[] =
    "grpc_method=\"RunFunction\",grpc_service=\"apiextensions.fn.proto.v1."
    "FunctionRunnerService\",grpc_type=\"unary\"";

TEST(MetricsTest, EverySeriesIsThereFromTheStart) {
  const std::string text = Metrics().Expose();
  for (const char* code : {"OK", "Canceled", "DeadlineExceeded", "Internal",
                           "Unavailable", "Unauthenticated"}) {
    EXPECT_THAT(text,
                HasSubstr(absl::StrCat("grpc_server_handled_total{grpc_code=\"",
                                       code, "\",", kV1, "} 0\n")));
  }
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_started_total{", kV1,
                                           "} 0\n")));
  EXPECT_THAT(text, HasSubstr(".v1beta1."));
  EXPECT_THAT(text, HasSubstr("fncache_function_held 0\n"));
  EXPECT_THAT(text, HasSubstr("fncache_function_kept_total 0\n"));
}

TEST(MetricsTest, DurationsFallIntoGosBuckets) {
  Metrics metrics;
  for (const double seconds : {0.005, 0.006, 3.0, 20.0}) {
    metrics.Handled(Method::kV1, absl::StatusCode::kInternal,
                    absl::Seconds(seconds));
  }
  const std::string text = metrics.Expose();
  const auto bucket = [](const char* bound, int count) {
    return HasSubstr(absl::StrCat("grpc_server_handling_seconds_bucket{", kV1,
                                  ",le=\"", bound, "\"} ", count, "\n"));
  };
  EXPECT_THAT(text, bucket("0.005", 1));
  EXPECT_THAT(text, bucket("0.01", 2));
  EXPECT_THAT(text, bucket("2.5", 2));
  EXPECT_THAT(text, bucket("5", 3));
  EXPECT_THAT(text, bucket("10", 3));
  EXPECT_THAT(text, bucket("+Inf", 4));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("_sum{", kV1, "} 23.011\n")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("_count{", kV1, "} 4\n")));
}

class ServedMetricsTest : public ::testing::Test, public Serving {
 protected:
  ServedMetricsTest() { options.metrics_address = "127.0.0.1:0"; }
  std::string Get(const std::string& path) {
    return testing::WholeHttpGet(server->metrics_address(), path);
  }
};

TEST_F(ServedMetricsTest, CallsAreCounted) {
  Start();
  ASSERT_TRUE(Call().ok());
  std::string bytes = "\xff";
  ASSERT_FALSE(CallBytes(kRunFunctionV1beta1, &bytes).ok());
  const std::string text = Get("/metrics");
  EXPECT_THAT(text, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_started_total{", kV1,
                                           "} 1\n")));
  EXPECT_THAT(
      text, HasSubstr(absl::StrCat(
                "grpc_server_handled_total{grpc_code=\"OK\",", kV1, "} 1\n")));
  EXPECT_THAT(text,
              HasSubstr("grpc_server_handled_total{grpc_code=\"Internal\",grpc_"
                        "method=\"RunFunction\",grpc_service=\"apiextensions."
                        "fn.proto.v1beta1.FunctionRunnerService\",grpc_type="
                        "\"unary\"} 1\n"));
}

TEST_F(ServedMetricsTest, OtherMethodsAreNotCounted) {
  Start();
  const std::string before = Get("/metrics");
  std::string bytes;
  ASSERT_FALSE(CallBytes("/some.Service/Method", &bytes).ok());
  ASSERT_TRUE(CallBytes("/grpc.health.v1.Health/Check", &bytes).ok());
  EXPECT_EQ(Get("/metrics"), before);
}

TEST_F(ServedMetricsTest, OtherPathsAreNotFound) {
  Start();
  EXPECT_THAT(Get("/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("/metricsx"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("/metrics?x=y"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServedMetricsTest, TakenAddressIsOneWarning) {
  const testing::LoopbackSocket other;
  other.Listen(1);
  options.metrics_address = other.target();
  ::testing::internal::CaptureStderr();
  Start();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log,
              HasSubstr(absl::StrCat("cannot listen on ", other.target())));
  EXPECT_EQ(server->metrics_address(), "");
  EXPECT_TRUE(Call().ok());
}

// Connections that send nothing, half a request, or read nothing.
TEST_F(ServedMetricsTest, CallersThatSendNothingDelayNoOther) {
  Start();
  const std::string address = server->metrics_address();
  std::vector<int> sockets;
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(
      static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  for (int i = 0; i < 300; ++i) {
    sockets.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(
        connect(sockets.back(), reinterpret_cast<sockaddr*>(&to), sizeof to),
        0);
    const std::string half = i % 2 == 0 ? "GET /metrics HT" : "";
    (void)!send(sockets.back(), half.data(), half.size(), MSG_NOSIGNAL);
  }
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 "));
  for (const int fd : sockets) close(fd);
}

}  // namespace
}  // namespace fncache::sdk::serve
