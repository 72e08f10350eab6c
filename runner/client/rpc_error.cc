// SPDX-License-Identifier: Apache-2.0
#include "runner/client/rpc_error.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/grpc_status.h"

namespace fncache::runner::client {
namespace {

// gRPC C++ itself says this; Go says something else instead.
constexpr char kTooLarge[] = "Received message larger than max (";

constexpr char kCannotConnect[] = ": Failed to connect to remote host: ";

// Pieces of what the reference runner says. They are put together below, and
// taken apart again by PlainRpcError.
constexpr char kCode[] = "rpc error: code = ";
constexpr char kDescription[] = " desc = ";
constexpr char kDeadline[] = "context deadline exceeded";
constexpr char kWaited[] =
    "context deadline exceeded while waiting for connections to become ready";
constexpr char kBalancer[] = "latest balancer error: ";
constexpr char kDialing[] =
    "connection error: desc = \"transport: Error while dialing: dial ";
constexpr char kConnect[] = ": connect: ";

// Words of fncache serve about a function that it has no connection to
// (proxy/transport/upstream.cc).
constexpr char kDaemonWaited[] =
    "Deadline Exceeded while waiting for a connection to the function at ";
constexpr char kDaemonGaveUp[] = "no connection to the function ";

std::string Description(const grpc::Status& status, size_t request_size) {
  const std::string& message = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      if (!IsLocalDeadline(status)) break;
      return kDeadline;
    case grpc::StatusCode::CANCELLED:
      if (message != "CANCELLED" && message != "Cancelled") break;
      return "context canceled";
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      if (!absl::StartsWith(message, kTooLarge) ||
          absl::StartsWith(message,
                           absl::StrCat(kTooLarge, request_size, " "))) {
        break;
      }
      return absl::StrCat("grpc: r", message.substr(1));
    case grpc::StatusCode::UNAVAILABLE:
      if (message != "Socket closed") break;
      return "error reading from server: EOF";
    default:
      break;
  }
  return message;
}

// `... ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused`
// in Go's words; anything else as it is.
std::string ConnectionError(absl::string_view message) {
  const size_t why = message.rfind(kCannotConnect);
  if (why == absl::string_view::npos) return std::string(message);
  absl::string_view address = message.substr(0, why);
  const size_t before = address.rfind(' ');
  if (before != absl::string_view::npos) address.remove_prefix(before + 1);
  const char* network = absl::ConsumePrefix(&address, "unix:") ? "unix" : "tcp";
  if (!absl::ConsumePrefix(&address, "ipv4:")) {
    absl::ConsumePrefix(&address, "ipv6:");
  }
  return absl::StrCat(
      kDialing, network, " ",
      absl::StrReplaceAll(address, {{"%5B", "["}, {"%5D", "]"}}), kConnect,
      absl::AsciiStrToLower(message.substr(why + sizeof kCannotConnect - 1)),
      "\"");
}

}  // namespace

absl::Status RpcError(int code, absl::string_view description) {
  return FromGrpcCode(
      code, absl::StrCat(kCode, GoCodeName(code), kDescription, description));
}

absl::Status RpcError(const grpc::Status& status, size_t request_size) {
  return RpcError(status.error_code(), Description(status, request_size));
}

bool IsLocalDeadline(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
         status.error_message() == "Deadline Exceeded";
}

absl::Status NotConnectedError(const grpc::Status& probe) {
  if (probe.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return RpcError(
        grpc::StatusCode::DEADLINE_EXCEEDED,
        absl::StrCat(kBalancer, ConnectionError(probe.error_message())));
  }
  return RpcError(grpc::StatusCode::DEADLINE_EXCEEDED, kWaited);
}

bool NeverReachedAFunction(const absl::Status& status) {
  absl::string_view text = status.message();
  if (status.ok() || !absl::ConsumePrefix(&text, kCode)) return false;
  const size_t end = text.find(kDescription);
  if (end == absl::string_view::npos) return false;
  text.remove_prefix(end + sizeof kDescription - 1);
  return text == kWaited || absl::StartsWith(text, kBalancer) ||
         absl::StartsWith(text, kDaemonWaited) ||
         absl::StartsWith(text, kDaemonGaveUp);
}

std::string PlainRpcError(const absl::Status& status) {
  absl::string_view text = status.message();
  if (!absl::ConsumePrefix(&text, kCode)) return std::string(text);
  const size_t end = text.find(kDescription);
  if (end == absl::string_view::npos) return std::string(status.message());
  const absl::string_view code = text.substr(0, end);
  text.remove_prefix(end + sizeof kDescription - 1);
  if (text == kDeadline) return "no answer in time";
  if (text == kWaited) return "no connection in time";
  if (!absl::ConsumePrefix(&text, kBalancer)) {
    return absl::StrCat(code, ": ", text);
  }
  if (const size_t why = text.find(kConnect);
      absl::StartsWith(text, kDialing) && why != absl::string_view::npos) {
    text.remove_prefix(why + sizeof kConnect - 1);
    absl::ConsumeSuffix(&text, "\"");
  }
  return absl::StrCat("no connection in time: ", text);
}

}  // namespace fncache::runner::client
