// SPDX-License-Identifier: Apache-2.0
#include "runner/client/rpc_error.h"

#include "gtest/gtest.h"

namespace fncache::runner::client {
namespace {

std::string Said(const grpc::Status& status, size_t request_size = 10) {
  return std::string(RpcError(status, request_size).message());
}

TEST(RpcErrorTest, SaysCodesAsGoNamesThem) {
  EXPECT_EQ(RpcError(1, "d").message(), "rpc error: code = Canceled desc = d");
  EXPECT_EQ(RpcError(4, "d").message(),
            "rpc error: code = DeadlineExceeded desc = d");
  EXPECT_EQ(RpcError(8, "d").message(),
            "rpc error: code = ResourceExhausted desc = d");
  EXPECT_EQ(RpcError(12, "d").message(),
            "rpc error: code = Unimplemented desc = d");
  EXPECT_EQ(RpcError(16, "d").message(),
            "rpc error: code = Unauthenticated desc = d");
  EXPECT_EQ(RpcError(17, "d").message(), "rpc error: code = Code(17) desc = d");
  EXPECT_EQ(RpcError(-1, "d").message(), "rpc error: code = Code(-1) desc = d");
}

TEST(RpcErrorTest, KeepsTheCodeAndTheFunctionsOwnWords) {
  const absl::Status error = RpcError({grpc::StatusCode::INTERNAL, "boom"}, 10);
  EXPECT_EQ(error.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(error.message(), "rpc error: code = Internal desc = boom");
  EXPECT_EQ(Said({grpc::StatusCode::UNKNOWN, ""}),
            "rpc error: code = Unknown desc = ");
  EXPECT_EQ(Said({grpc::StatusCode::DEADLINE_EXCEEDED, "too slow"}),
            "rpc error: code = DeadlineExceeded desc = too slow");
}

TEST(RpcErrorTest, SaysWhatThisSidesGrpcSaysAsGoWould) {
  EXPECT_EQ(
      Said({grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"}),
      "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
  EXPECT_EQ(Said({grpc::StatusCode::CANCELLED, "CANCELLED"}),
            "rpc error: code = Canceled desc = context canceled");
  EXPECT_EQ(Said({grpc::StatusCode::UNAVAILABLE, "Socket closed"}),
            "rpc error: code = Unavailable desc = error reading from server: "
            "EOF");
}

TEST(RpcErrorTest, TellsALargeAnswerFromARequestTooLargeForTheFunction) {
  const grpc::Status status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                            "Received message larger than max (5000000 vs. "
                            "4194304)");
  EXPECT_EQ(Said(status, 10),
            "rpc error: code = ResourceExhausted desc = grpc: received message "
            "larger than max (5000000 vs. 4194304)");
  EXPECT_EQ(Said(status, 5000000),
            "rpc error: code = ResourceExhausted desc = Received message "
            "larger than max (5000000 vs. 4194304)");
}

TEST(RpcErrorTest, SaysWhyThereWasNoConnection) {
  EXPECT_EQ(
      NotConnectedError({grpc::StatusCode::UNAVAILABLE,
                         "failed to connect to all addresses; last error: "
                         "UNKNOWN: ipv4:127.0.0.1:81: Failed to connect to "
                         "remote host: Connection refused"})
          .message(),
      "rpc error: code = DeadlineExceeded desc = latest balancer error: "
      "connection error: desc = \"transport: Error while dialing: dial tcp "
      "127.0.0.1:81: connect: connection refused\"");
  EXPECT_EQ(
      NotConnectedError({grpc::StatusCode::UNAVAILABLE,
                         "UNKNOWN: ipv6:%5B::1%5D:81: Failed to connect to "
                         "remote host: Connection refused"})
          .message(),
      "rpc error: code = DeadlineExceeded desc = latest balancer error: "
      "connection error: desc = \"transport: Error while dialing: dial tcp "
      "[::1]:81: connect: connection refused\"");
  EXPECT_EQ(NotConnectedError({grpc::StatusCode::UNAVAILABLE,
                               "DNS resolution failed for nowhere:1"})
                .message(),
            "rpc error: code = DeadlineExceeded desc = latest balancer error: "
            "DNS resolution failed for nowhere:1");
  const absl::Status connecting = NotConnectedError(
      {grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"});
  EXPECT_EQ(connecting.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(connecting.message(),
            "rpc error: code = DeadlineExceeded desc = context deadline "
            "exceeded while waiting for connections to become ready");
}

TEST(RpcErrorTest, PlainWordsAreThoseThatEverybodyKnows) {
  EXPECT_EQ(PlainRpcError(RpcError(grpc::StatusCode::INTERNAL, "boom")),
            "Internal: boom");
  EXPECT_EQ(PlainRpcError(RpcError(
                {grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"}, 1)),
            "no answer in time");
  EXPECT_EQ(PlainRpcError(NotConnectedError(
                {grpc::StatusCode::UNAVAILABLE,
                 "failed to connect to all addresses; last error: UNKNOWN: "
                 "ipv4:127.0.0.1:81: Failed to connect to remote host: "
                 "Connection refused"})),
            "no connection in time: connection refused");
  EXPECT_EQ(
      PlainRpcError(NotConnectedError({grpc::StatusCode::UNAVAILABLE,
                                       "DNS resolution failed for nowhere:1"})),
      "no connection in time: DNS resolution failed for nowhere:1");
  EXPECT_EQ(PlainRpcError(NotConnectedError(
                {grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"})),
            "no connection in time");
  EXPECT_EQ(PlainRpcError(absl::NotFoundError("unknown function \"f\"")),
            "unknown function \"f\"");
}

TEST(RpcErrorTest, CallsWithoutAConnectionReachedNoFunction) {
  const auto unavailable = grpc::StatusCode::UNAVAILABLE;
  const auto exceeded = grpc::StatusCode::DEADLINE_EXCEEDED;
  EXPECT_TRUE(NeverReachedAFunction(
      NotConnectedError({unavailable, "DNS resolution failed for x:1"})));
  EXPECT_TRUE(NeverReachedAFunction(
      NotConnectedError({exceeded, "Deadline Exceeded"})));
  // As a daemon in front says it: TooLateAt and Connecting of
  // proxy/transport/upstream.cc.
  EXPECT_TRUE(NeverReachedAFunction(
      RpcError({exceeded,
                "Deadline Exceeded while waiting for a connection to the "
                "function at 127.0.0.1:1: connection refused"},
               1)));
  EXPECT_TRUE(NeverReachedAFunction(RpcError(
      {unavailable, "no connection to the function within 5s, at h:1"}, 1)));
  EXPECT_FALSE(NeverReachedAFunction(absl::OkStatus()));
  EXPECT_FALSE(NeverReachedAFunction(
      RpcError({grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"}, 1)));
  EXPECT_FALSE(NeverReachedAFunction(RpcError({unavailable, "busy"}, 1)));
  EXPECT_FALSE(NeverReachedAFunction(absl::NotFoundError("unknown")));
}

}  // namespace
}  // namespace fncache::runner::client
