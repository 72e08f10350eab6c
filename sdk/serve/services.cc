// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/services.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "common/mutex.h"
#include "grpcpp/support/byte_buffer.h"
#include "sdk/serve/reflection.h"
#include "sdk/serve/wire.h"

namespace fncache::sdk::serve {
namespace {

enum class Kind { kCheck, kWatch, kReflection, kUnknown };

// Values of HealthCheckResponse.ServingStatus.
enum Health { kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

std::string Text(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!bytes.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

Health HealthOf(absl::string_view service, bool stopping) {
  if (!service.empty() &&
      service != "apiextensions.fn.proto.v1.FunctionRunnerService" &&
      service != "apiextensions.fn.proto.v1beta1.FunctionRunnerService") {
    return kServiceUnknown;
  }
  return stopping ? kNotServing : kServing;
}

// One call of these services: reads a message and answers it, again and again
// for reflection. A call of another one ends with UNIMPLEMENTED.
class ServiceCall final : public Reactor, public LiveCall {
 public:
  ServiceCall(Core* core, Kind kind, Stream* stream)
      : Reactor(stream), core_(core), kind_(kind) {
    core_->live.Add(this, context()->peer());
    MutexLock lock(&mutex_);
    if (ended_) return;
    if (kind_ == Kind::kUnknown) {
      End({grpc::StatusCode::UNIMPLEMENTED, ""});
      return;
    }
    reading_ = true;
    StartRead(&bytes_);
  }

  void OnReadDone(bool ok) override {
    MutexLock lock(&mutex_);
    reading_ = false;
    if (ended_) return;
    if (!ok) {
      End(kind_ == Kind::kReflection
              ? grpc::Status::OK
              : grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                             "the call has no request"));
      return;
    }
    const std::string request = Text(bytes_);
    if (kind_ == Kind::kReflection) {
      Write(Reflect(request));
      return;
    }
    constexpr uint32_t kService = 1;
    const Health health =
        HealthOf(LastText(request, kService), core_->stopping);
    if (kind_ == Kind::kCheck && health == kServiceUnknown) {
      End({grpc::StatusCode::NOT_FOUND, "unknown service"});
    } else {
      Write(HealthMessage(health));
    }
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    WaitsNoMore();
    if (ended_) return;
    if (!ok) {
      End(grpc::Status::CANCELLED);
    } else if (kind_ == Kind::kCheck) {
      End(grpc::Status::OK);
    } else if (stops_) {
      EndByStop();
    } else if (kind_ == Kind::kReflection) {
      reading_ = true;
      StartRead(&bytes_);
    }
  }

  void OnCancel() override {
    MutexLock lock(&mutex_);
    if (!ended_) End(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    core_->live.Remove(this);
    delete this;
  }

  void Cancel() override { context()->TryCancel(); }

  void OnStop() override {
    if (kind_ == Kind::kCheck) return;
    MutexLock lock(&mutex_);
    stops_ = true;
    if (!writing_ && !ended_) EndByStop();
  }

 private:
  static std::string HealthMessage(Health health) {
    std::string message;
    AppendVarint(1, health, &message);
    return message;
  }

  void Write(const std::string& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const grpc::Slice slice(message);
    bytes_ = grpc::ByteBuffer(&slice, 1);
    writing_ = true;
    WaitsForPeer();
    StartWrite(bytes_);
  }

  // A watcher learns that the server serves no more.
  void EndByStop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const grpc::Status status(grpc::StatusCode::UNAVAILABLE,
                              "the server is stopping");
    if (kind_ != Kind::kWatch || reading_) return End(status);
    ended_ = true;
    const grpc::Slice slice(HealthMessage(kNotServing));
    bytes_ = grpc::ByteBuffer(&slice, 1);
    WaitsForPeer();
    StartWriteAndFinish(bytes_, status);
  }

  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ended_ = true;
    Finish(status);
  }

  Core* const core_;
  const Kind kind_;
  grpc::ByteBuffer bytes_;
  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

Reactor* NewServiceCall(Core* core, Stream* stream) {
  static constexpr std::pair<const char*, Kind> kMethods[] = {
      {"/grpc.health.v1.Health/Check", Kind::kCheck},
      {"/grpc.health.v1.Health/Watch", Kind::kWatch},
      {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
       Kind::kReflection},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
       Kind::kReflection},
  };
  for (const auto& [method, kind] : kMethods) {
    if (MethodOf(*stream) == method) {
      return new ServiceCall(core, kind, stream);
    }
  }
  return new ServiceCall(core, Kind::kUnknown, stream);
}

}  // namespace fncache::sdk::serve
