// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/call.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/grpc_status.h"
#include "common/log.h"
#include "sdk/compose/run.h"
#include "sdk/serve/inflate.h"
#include "sdk/serve/wire.h"

namespace fncache::sdk::serve {
namespace {

using function::Continuation;

absl::Time DeadlineOf(const grpc::ServerContextBase& context) {
  const gpr_timespec raw = context.raw_deadline();
  if (gpr_time_cmp(raw, gpr_inf_future(raw.clock_type)) == 0) {
    return absl::InfiniteFuture();
  }
  // Its std::chrono form ends in the year 2262.
  const gpr_timespec at = gpr_convert_clock_type(raw, GPR_CLOCK_REALTIME);
  return absl::FromUnixSeconds(at.tv_sec) + absl::Nanoseconds(at.tv_nsec);
}

absl::string_view View(grpc::string_ref text) {
  return {text.data(), text.size()};
}

// The response as gRPC sends it, without a copy.
grpc::ByteBuffer BufferOf(std::string text) {
  auto* const owned = new std::string(std::move(text));
  ReleaseTo(owned);
  const grpc::Slice slice(
      owned->data(), owned->size(),
      [](void* string) {
        AcquireFrom(string);
        delete static_cast<std::string*>(string);
      },
      owned);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

Call::Call(Core* core, Method method, Stream* stream)
    : Reactor(stream), core_(core), method_(method), started_(absl::Now()) {
  core_->metrics.Started(method_);
  core_->live.Add(this, context()->peer());
  if (core_->options.interceptor) {
    Intercept();
  } else {
    Read();
  }
}

void Call::Intercept() {
  // Not a member's use after the interceptor: the call may be gone by then.
  const auto call =
      std::make_shared<Continuation::Call>([this](const absl::Status& status) {
        if (status.ok()) {
          Read();
        } else {
          End(status);
        }
      });
  intercepted_ = call;
  function::Metadata metadata;
  for (const auto& [name, value] : context()->client_metadata()) {
    metadata.emplace(std::string_view(name.data(), name.size()),
                     std::string_view(value.data(), value.size()));
  }
  // Its last copy takes this along.
  std::shared_ptr<Continuation::Call> handle(
      call.get(), [call](Continuation::Call*) {
        call->Decide(absl::InternalError("the interceptor dropped the call"));
      });
  core_->options.interceptor(context()->method(), metadata,
                             Continuation(std::move(handle)));
}

void Call::Read() {
  WaitsForPeer();
  StartRead(&bytes_);
}

void Call::OnReadDone(bool ok) {
  WaitsNoMore();
  if (!ok) {
    End(LostBeforeMessage()
            ? absl::CancelledError("the call ended before its request")
            : absl::InvalidArgumentError("the call has no request"));
    return;
  }
  ThreadPool::Work work = [this](bool run) {
    if (run) {
      RunFunction();
    } else {
      End(absl::UnavailableError("the server has stopped"));
    }
  };
  if (!core_->pool.Submit(&work)) {
    End(absl::ResourceExhaustedError(
        absl::StrCat(kMostWaiting, " calls wait for a thread")));
  }
}

void Call::OnCancel() {
  if (intercepted_ != nullptr && intercepted_->Withdraw()) {
    End(absl::CancelledError("the caller cancelled the call"));
  }
}

void Call::OnDone() {
  core_->live.Remove(this);
  delete this;
}

// Why the function need not run any more.
absl::Status Call::Late() const {
  if (DeadlineOf(*context()) <= absl::Now()) {
    return absl::DeadlineExceededError(
        "the deadline passed while the call waited for a thread");
  }
  if (context()->IsCancelled()) {
    return absl::CancelledError("the caller cancelled the call");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Call::TakeRequest() {
  std::vector<grpc::Slice> slices;
  if (!bytes_.Dump(&slices).ok()) {
    return absl::InternalError("the request cannot be read");
  }
  std::string request;
  request.reserve(bytes_.Length());
  bytes_.Clear();
  // Each one is freed once it is copied, so that a large request is never in
  // memory twice.
  for (grpc::Slice& slice : slices) {
    request.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    slice = grpc::Slice();
  }
  if (!MayBeCompressed(request)) return request;
  absl::StatusOr<std::string> inflated = Inflate(request, core_->most_bytes());
  // Run has the words for bytes in no format.
  return absl::IsInternal(inflated.status()) ? request : inflated;
}

bool Call::WantsHint() const {
  if (core_->options.depends != function::Depends::kAuto) {
    return core_->options.depends == function::Depends::kAlways;
  }
  // A list of members (RFC 8586), in one or several fields.
  const auto [first, last] =
      context()->client_metadata().equal_range("cdn-loop");
  for (auto field = first; field != last; ++field) {
    for (const absl::string_view member :
         absl::StrSplit(View(field->second), ',')) {
      if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(member),
                           "fncache-")) {
        return true;
      }
    }
  }
  return false;
}

void Call::RunFunction() {
  absl::Status late = Late();
  if (!late.ok()) return End(late);
  absl::StatusOr<std::string> request = TakeRequest();
  if (!request.ok()) return End(request.status());
  if (intercepted_ != nullptr && intercepted_->watched()) {
    constexpr uint32_t kMeta = 1;
    constexpr uint32_t kTag = 1;
    tag_ = std::string(LastText(LastText(*request, kMeta), kTag));
  }
  CallInfo info;
  info.deadline = DeadlineOf(*context());
  info.cancelled = [this] { return context()->IsCancelled(); };
  info.depends = WantsHint();
  CallResult result = Run(core_->function, core_->options.function_options,
                          *std::move(request), info);
  if (!result.status.ok()) return End(result.status);
  core_->metrics.Composed(result.held, result.kept);
  if (!result.depends.empty()) {
    context()->AddTrailingMetadata("fncache-depends", result.depends);
  }
  End(absl::OkStatus(), std::move(result.response));
}

void Call::End(const absl::Status& status, std::string response) {
  const absl::Duration duration = absl::Now() - started_;
  core_->metrics.Handled(method_, status.code(), duration);
  Log(LogLevel::kDebug, "call",
      {{"method", MethodName(method_)},
       {"code", static_cast<int>(status.code())},
       {"ms", absl::ToInt64Milliseconds(duration)}});
  if (intercepted_ != nullptr) {
    intercepted_->Ended({status.code(), duration, std::move(tag_)});
  }
  WaitsForPeer();
  if (status.ok()) {
    bytes_ = BufferOf(std::move(response));
    StartWriteAndFinish(bytes_, grpc::Status::OK);
  } else {
    bytes_.Clear();
    Finish(ToGrpcStatus(status));
  }
}

}  // namespace fncache::sdk::serve
