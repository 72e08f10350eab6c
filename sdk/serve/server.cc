// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/listen_address.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/threads.h"
#include "fncache/function/serve.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/resource_quota.h"
#include "sdk/serve/address.h"
#include "sdk/serve/call.h"
#include "sdk/serve/core.h"
#include "sdk/serve/credentials.h"
#include "sdk/serve/metrics_endpoint.h"
#include "sdk/serve/services.h"
#include "sdk/serve/streams.h"

namespace fncache::function {
namespace {

using sdk::serve::Core;

// Limit of a request's metadata, in bytes. gRPC's default of 8 KiB is little
// for the tokens that meshes add. Callers can make the server keep it for each
// stream.
constexpr int kMaxMetadataBytes = 16 << 10;
// gRPC compares a request's size with the limit once all of it is there, and
// keeps what arrives until then, up to 4 GiB. So its memory has a limit, too:
// two of the largest requests and this, in bytes. Beyond it gRPC resets
// streams.
constexpr size_t kOtherMemory = 128 << 20;
// A peer that does not answer a ping in kPingTimeout, e.g. because it reads
// nothing, loses its connection.
constexpr absl::Duration kPing = absl::Minutes(1);
constexpr absl::Duration kPingTimeout = absl::Seconds(20);

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

absl::Status Validate(const ServerOptions& options) {
  const std::string why = sdk::serve::WhyNoAddress(options.address);
  if (!why.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("address: ", why));
  }
  const std::string why_not =
      sdk::serve::WhyNoMetricsAddress(options.metrics_address);
  if (!why_not.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics_address: ", why_not));
  }
  if (options.max_recv_message_mb < 1 || options.max_recv_message_mb > 2047) {
    return absl::InvalidArgumentError(absl::StrCat("max_recv_message_mb is ",
                                                   options.max_recv_message_mb,
                                                   "; accepted: 1 to 2047"));
  }
  if (options.threads < 0 || options.threads > 1000) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", options.threads, "; accepted: 0 to 1000"));
  }
  if (!options.insecure && options.tls_certs_dir.empty()) {
    return absl::InvalidArgumentError("insecure or tls_certs_dir is needed");
  }
  return absl::OkStatus();
}

sdk::serve::Reactor* NewCall(Core* core, sdk::serve::Stream* stream) {
  const Method method = MethodOf(sdk::serve::MethodOf(*stream));
  if (method == Method::kOther) {
    return sdk::serve::NewServiceCall(core, stream);
  }
  return new sdk::serve::Call(core, method, stream);
}

}  // namespace

struct Server::Impl {
  Impl(ServerOptions options, Function function, int threads)
      : core(std::move(options), std::move(function), threads),
        streams([this](sdk::serve::Stream* stream) {
          return NewCall(&core, stream);
        }) {}

  Core core;
  sdk::serve::Streams streams;
  std::shared_ptr<grpc::ServerCredentials> credentials;
  std::string address;
  std::string metrics_address;
  std::unique_ptr<sdk::serve::MetricsEndpoint> metrics;
  Mutex stopping;  // held by Stop
  std::unique_ptr<grpc::Server> server;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options,
                                                      Function function) {
  const absl::Status valid = Validate(options);
  if (!valid.ok()) return valid;
  // Before gRPC makes its first ones, with the credentials.
  const int threads =
      options.threads > 0 ? options.threads : std::max(8, 4 * UsableCores());
  const absl::Status enough = CheckThreads(GrpcThreads() + threads + 12);
  if (!enough.ok()) return enough;
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (options.insecure) {
    credentials = grpc::InsecureServerCredentials();
  } else {
    auto tls = sdk::serve::TlsCredentials(options.tls_certs_dir);
    if (!tls.ok()) return tls.status();
    credentials = *std::move(tls);
  }
  const std::string address = WithHost(options.address);
  const absl::Status free = sdk::serve::CheckFree(address);
  if (!free.ok()) return free;

  auto impl =
      std::make_unique<Impl>(std::move(options), std::move(function), threads);
  impl->credentials = std::move(credentials);
  const ServerOptions& asked = impl->core.options;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(asked.max_recv_message_mb << 20);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             sdk::serve::kMostStreams);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kPing));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             Milliseconds(kPingTimeout));
  grpc::ResourceQuota quota("function");
  quota.Resize(2 * impl->core.most_bytes() + kOtherMemory);
  builder.SetResourceQuota(quota);
  // Call does it, up to the limit of a request's size.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  impl->streams.AddTo(&builder);
  int port = 0;
  builder.AddListeningPort(address, impl->credentials, &port);
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || port == 0) {
    return sdk::serve::CannotListen(address);
  }
  impl->streams.Start();
  impl->address = sdk::serve::WithPort(address, port);
  if (!asked.metrics_address.empty()) {
    auto server = sdk::serve::MetricsEndpoint::Start(
        asked.metrics_address,
        [&metrics = impl->core.metrics] { return metrics.Expose(); });
    if (server.ok()) {
      impl->metrics_address = (*server)->address();
      impl->metrics = *std::move(server);
    } else {
      fncache::Log(LogLevel::kWarning, "no metrics",
                   {{"error", server.status().message()}});
    }
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

const std::string& Server::address() const { return impl_->address; }

const std::string& Server::metrics_address() const {
  return impl_->metrics_address;
}

void Server::Stop(absl::Duration grace) {
  MutexLock lock(&impl_->stopping);
  if (impl_->server == nullptr) return;
  impl_->core.stopping = true;
  impl_->core.live.Stop();
  impl_->server->Shutdown(
      absl::ToChronoTime(absl::Now() + std::min(grace, absl::Hours(24 * 365))));
  impl_->server->Wait();
  impl_->streams.Stop();
  impl_->server.reset();
}

}  // namespace fncache::function
