// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/probe.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "common/mutex.h"
#include "proto/function_v1.pb.h"
#include "runner/client/function_caller.h"
#include "runner/probe/answer.h"

namespace fncache::runner::probe {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;

// An answer that differs is believed if the request as it is was answered as
// ever not long before: in so many calls, and so much time.
constexpr int kTrustedCalls = 20;
constexpr absl::Duration kTrustedFor = absl::Seconds(1);
// How often a search begins anew because the answer varied by itself.
constexpr int kMostRestarts = 5;

class Prober {
 public:
  Prober(std::vector<RunFunctionRequest> requests, const ProbeOptions& options,
         client::FunctionCaller* caller)
      : options_(options), caller_(caller), fields_(std::move(requests)) {}

  absl::StatusOr<ProbeResult> Run(const Variation& variation) {
    for (size_t i = 0; i < fields_.requests(); ++i) {
      client::CallResult first = Call(fields_.request(i));
      if (!first.status.ok()) return first.status;
      const std::string fatal = FatalMessage(first.response);
      if (!fatal.empty()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the function's answer to the request is FATAL: ", fatal));
      }
      originals_.emplace_back(std::move(first.response));
    }
    if (!AskAllAgain()) return Failure();
    varied_ = false;
    ProbeResult result;
    result.fields = fields_.fields();
    const std::vector<int> groups = variation.GroupsOf(result.fields);
    absl::optional<Search> search;
    for (;;) {
      search.emplace(fields_.fields(), groups, options_.seed,
                     [this](const std::vector<Change>& changes, uint64_t seed) {
                       return Ask(changes, seed);
                     });
      search->Run();
      if (!failure_.ok()) return Failure();
      // Once more, for what varied too late to be seen in between.
      if (!varied_ && calls_ < options_.calls && !AskAllAgain()) {
        return Failure();
      }
      if (!varied_ || result.restarts >= kMostRestarts ||
          calls_ >= options_.calls) {
        break;
      }
      varied_ = false;
      ++result.restarts;
    }
    for (size_t i = 0; i < result.fields.size(); ++i) {
      result.results.push_back(search->ResultOf(static_cast<int>(i)));
    }
    result.complete = search->complete() && !varied_;
    std::set<std::string> unstable;
    for (const Original& original : originals_) {
      unstable.insert(original.unstable().begin(), original.unstable().end());
    }
    result.unstable.assign(unstable.begin(), unstable.end());
    result.requests = static_cast<int>(fields_.requests());
    result.calls = calls_;
    result.masks = ProposeMasks(result.fields, result.results, variation);
    return result;
  }

 private:
  client::CallResult Call(const RunFunctionRequest& request) {
    ++calls_;
    client::CallResult result;
    absl::Notification done;
    caller_->Call(options_.function, request, absl::Now() + options_.timeout,
                  [&](client::CallResult answer) {
                    result = std::move(answer);
                    ReleaseTo(&done);
                    done.Notify();
                  });
    done.WaitForNotification();
    AcquireFrom(&done);
    return result;
  }

  absl::Status Failure() const {
    return absl::Status(
        failure_.code(),
        absl::StrCat("the function answers the request no longer: ",
                     failure_.message()));
  }

  // The request as it is. False if that fails, with failure_.
  bool AskAgain(size_t request) {
    client::CallResult answer = Call(fields_.request(request));
    failure_ = answer.status;
    if (!failure_.ok()) return false;
    if (originals_[request].Learn(std::move(answer.response))) varied_ = true;
    asked_at_ = absl::Now();
    asked_call_ = calls_;
    return true;
  }

  bool AskAllAgain() {
    for (size_t i = 0; i < originals_.size(); ++i) {
      if (!AskAgain(i)) return false;
    }
    return true;
  }

  // Of all requests: the answer differs if that to one of them does.
  Verdict Ask(const std::vector<Change>& changes, uint64_t seed) {
    for (size_t i = 0; i < originals_.size(); ++i) {
      if (!fields_.HasAny(i, changes)) continue;
      const Verdict verdict = AskOne(i, changes, seed);
      if (verdict != Verdict::kSame) return verdict;
    }
    return Verdict::kSame;
  }

  Verdict AskOne(size_t request, const std::vector<Change>& changes,
                 uint64_t seed) {
    if (varied_ || calls_ >= options_.calls) return Verdict::kEnd;
    const client::CallResult answer =
        Call(fields_.Changed(request, changes, seed));
    if (originals_[request].IsSame(answer)) return Verdict::kSame;
    // Is it the request that made the difference, or the time that passed, or a
    // function that is gone?
    const bool gone = absl::IsUnavailable(answer.status) ||
                      absl::IsDeadlineExceeded(answer.status);
    const bool trusted = !gone && calls_ - asked_call_ <= kTrustedCalls &&
                         absl::Now() - asked_at_ <= kTrustedFor;
    if (trusted) return Verdict::kDiffers;
    if (calls_ >= options_.calls || !AskAgain(request)) return Verdict::kEnd;
    // What was found so far may have been no finding: the search begins anew.
    return varied_ ? Verdict::kEnd : Verdict::kDiffers;
  }

  const ProbeOptions& options_;
  client::FunctionCaller* const caller_;
  const RequestFields fields_;
  std::vector<Original> originals_;  // of each request
  int calls_ = 0;
  int asked_call_ = 0;
  absl::Time asked_at_;
  bool varied_ = false;  // since the search began
  absl::Status failure_;
};

}  // namespace

absl::StatusOr<ProbeResult> RunProbe(std::vector<RunFunctionRequest> requests,
                                     const Variation& variation,
                                     const ProbeOptions& options,
                                     client::FunctionCaller* caller) {
  return Prober(std::move(requests), options, caller).Run(variation);
}

}  // namespace fncache::runner::probe
