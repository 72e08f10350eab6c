// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/probe.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "cache/key/alteration.h"
#include "common/mutex.h"
#include "proto/function_v1.pb.h"
#include "runner/client/function_caller.h"
#include "runner/probe/answer.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::probe {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;

// A different answer is believed if the unchanged request got its usual answer
// recently: within this number of calls, and this time.
constexpr int kTrustedCalls = 20;
constexpr absl::Duration kTrustedFor = absl::Seconds(1);
// The most restarts of a search because the answer was unstable.
constexpr int kMostRestarts = 5;

// The most made-up requests that are asked about: those that are ready, and
// those that a search led to. Each costs as much as one that was sent.
constexpr size_t kMostReady = 2;
constexpr size_t kMostLedTo = 6;
// The most searches, each from the results of the one before.
constexpr int kMostSearches = 3;

class Prober {
 public:
  Prober(const ProbeOptions& options, client::FunctionCaller* caller)
      : options_(options), caller_(caller) {}

  absl::StatusOr<ProbeResult> Run(std::vector<RunFunctionRequest> requests,
                                  const Variation& variation,
                                  const Knowledge& knowledge) {
    requests_ = std::move(requests);
    sent_ = requests_.size();
    absl::Status status = Begin(knowledge);
    if (!status.ok()) return status;
    ProbeResult result;
    absl::optional<Search> search;
    for (int searches = 1;; ++searches) {
      const std::vector<std::string> read = ReadIn(search);
      fields_ = std::make_unique<RequestFields>(
          requests_, AdditionsFor(Sent(), knowledge), requests_.size() - sent_);
      status = SearchIn(variation, read, &search, &result.restarts);
      if (!status.ok()) return status;
      if (varied_ || !search->guesses_complete() || searches == kMostSearches ||
          !FollowWhatWasFound(*search)) {
        break;
      }
    }
    result.fields = fields_->fields();
    for (size_t i = 0; i < result.fields.size(); ++i) {
      result.results.push_back(search->ResultOf(static_cast<int>(i)));
    }
    result.complete = search->complete() && !varied_;
    result.guesses_complete = search->guesses_complete() && !varied_;
    std::set<std::string> unstable;
    for (const Original& original : originals_) {
      unstable.insert(original.unstable().begin(), original.unstable().end());
    }
    result.unstable.assign(unstable.begin(), unstable.end());
    std::set_difference(wanted_.begin(), wanted_.end(), observed_.begin(),
                        observed_.end(), std::back_inserter(result.not_probed));
    result.failing.assign(failing_.begin(), failing_.end());
    result.requests = static_cast<int>(sent_);
    result.calls = calls_;
    result.masks = ProposeMasks(result.fields, result.results, variation,
                                result.not_probed.empty());
    result.hint = CompareHints(hints_, result.fields, result.results);
    result.hint.unnamed.assign(unnamed_.begin(), unnamed_.end());
    result.hint.trusted = options_.trust_hint;
    result.hint.calls_saved = calls_saved_;
    return result;
  }

 private:
  // The answers to the requests, and to those in which all is ready.
  absl::Status Begin(const Knowledge& knowledge) {
    wanted_ = knowledge.seen.Resources();
    for (const RunFunctionRequest& request : requests_) {
      client::CallResult first = Call(request);
      if (!first.status.ok()) return first.status;
      const std::string fatal = FatalMessage(first.response);
      if (!fatal.empty()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the function's answer to the request is FATAL: ", fatal));
      }
      AddNames(request, &observed_);
      AddWanted(first.response);
      known_.insert(text::DeterministicBytes(request));
      hints_.emplace_back(first.hint);
      originals_.emplace_back(std::move(first.response));
    }
    for (size_t i = 0; i < sent_; ++i) {
      if (requests_.size() == sent_ + kMostReady) break;
      MakeUp(MadeReady(requests_[i]), nullptr);
    }
    return absl::OkStatus();
  }

  std::vector<RunFunctionRequest> Sent() const {
    return {requests_.begin(),
            requests_.begin() + static_cast<std::ptrdiff_t>(sent_)};
  }

  // The masks of the fields that were found to be read.
  std::vector<std::string> ReadIn(const absl::optional<Search>& search) const {
    std::vector<std::string> read;
    if (!search) return read;
    const std::vector<Field>& fields = fields_->fields();
    for (size_t i = 0; i < fields.size(); ++i) {
      if (search->ResultOf(static_cast<int>(i)) == Search::Result::kRead) {
        read.push_back(fields[i].mask);
      }
    }
    std::sort(read.begin(), read.end());
    return read;
  }

  // Until the answers did not vary by themselves meanwhile.
  absl::Status SearchIn(const Variation& variation,
                        const std::vector<std::string>& read,
                        absl::optional<Search>* search, int* restarts) {
    const std::vector<Field>& fields = fields_->fields();
    std::vector<bool> known;
    for (const Field& field : fields) {
      known.push_back(std::binary_search(read.begin(), read.end(), field.mask));
    }
    std::vector<int> groups = variation.GroupsOf(fields);
    if (options_.trust_hint) LastWhatHintsDecide(&groups);
    if (!AskAllAgain()) return Failure();
    varied_ = false;
    for (;;) {
      unnamed_here_.emplace(fields);
      search->emplace(fields, groups, known, options_.seed,
                      [this](const std::vector<Change>& changes,
                             uint64_t seed) { return Ask(changes, seed); });
      (*search)->Run();
      if (!failure_.ok()) return Failure();
      // Once more, for what varied too late to be seen in between.
      const int again = calls_ + static_cast<int>(originals_.size());
      if (!varied_ && again <= options_.calls && !AskAllAgain()) {
        return Failure();
      }
      if (!varied_) unnamed_.merge(unnamed_here_->Masks());
      if (!varied_ || *restarts >= kMostRestarts || calls_ >= options_.calls) {
        return absl::OkStatus();
      }
      varied_ = false;
      ++*restarts;
    }
  }

  // Puts the fields that no hint has count behind the others, so that questions
  // are about one kind or the other.
  void LastWhatHintsDecide(std::vector<int>* groups) const {
    const std::vector<Field>& fields = fields_->fields();
    for (size_t i = 0; i < fields.size(); ++i) {
      if (absl::c_any_of(hints_, [&](const ReceivedHint& hint) {
            return hint.Counts(fields[i].mask);
          })) {
        continue;
      }
      (*groups)[i] += static_cast<int>(fields.size());
    }
  }

  // Adds what requests would be with the values and additions that made a
  // difference: all of them, and single ones. There the function may read what
  // it does not read otherwise. Whether any was added.
  bool FollowWhatWasFound(const Search& search) {
    std::vector<Search::Found> found;
    for (Search::Found one : search.found()) {
      const bool turned =
          one.change == Change::kAlter && fields_->fields()[one.field].boolean;
      if ((one.change == Change::kSet || turned) && IsAnswered(&one)) {
        found.push_back(one);
      }
    }
    const size_t before = requests_.size();
    const auto follow = [&](size_t from, size_t count, size_t request) {
      if (requests_.size() >= sent_ + kMostReady + kMostLedTo) return;
      RunFunctionRequest changed = requests_[request];
      for (size_t i = from; i < from + count; ++i) {
        changed = fields_->Changed(std::move(changed), ChangesOf(found[i]),
                                   found[i].seed);
      }
      MakeUp(std::move(changed), &originals_[request]);
    };
    if (found.empty()) return false;
    for (size_t request = 0; request < before; ++request) {
      follow(0, found.size(), request);
    }
    for (size_t i = 0; found.size() > 1 && i < found.size(); ++i) {
      follow(i, 1, 0);
    }
    return requests_.size() > before;
  }

  std::vector<Change> ChangesOf(const Search::Found& one) const {
    std::vector<Change> changes(fields_->fields().size(), Change::kKeep);
    changes[one.field] = one.change;
    return changes;
  }

  static bool Fails(const client::CallResult& answer) {
    return !answer.status.ok() || !FatalMessage(answer.response).empty();
  }

  // Whether the function answers with the value that was found. A value of the
  // wrong type makes it fail, and a failure hides what it reads otherwise. So
  // `one` gets another value of the field then. Where all of them fail, the
  // field is added to failing_. False also where the calls end before that.
  bool IsAnswered(Search::Found* one) {
    const Field& field = fields_->fields()[one->field];
    const std::vector<Change> changes = ChangesOf(*one);
    size_t request = 0;
    while (request < requests_.size() && !fields_->HasAny(request, changes)) {
      ++request;
    }
    if (request == requests_.size()) return true;
    // The seed of a value that is set is its number, modulo how many there are.
    const int values = one->change == Change::kSet ? field.likely : 1;
    for (int i = 0; i < values; ++i, ++one->seed) {
      if (calls_ >= options_.calls) return false;
      if (!Fails(Call(fields_->Changed(request, changes, one->seed)))) {
        return true;
      }
    }
    failing_.insert(field.mask);
    return false;
  }

  static void AddNames(const RunFunctionRequest& request,
                       std::set<std::string>* names) {
    for (const auto& one : request.observed().resources()) {
      names->insert(one.first);
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    for (const auto& one : request.extra_resources()) names->insert(one.first);
#pragma GCC diagnostic pop
    for (const auto& one : request.required_resources()) {
      names->insert(one.first);
    }
  }

  // Adds the names that the function desires or requires.
  void AddWanted(const RunFunctionResponse& response) {
    for (const auto& one : response.desired().resources()) {
      wanted_.insert(one.first);
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    for (const auto& one : response.requirements().extra_resources()) {
      wanted_.insert(one.first);
    }
#pragma GCC diagnostic pop
    for (const auto& one : response.requirements().resources()) {
      wanted_.insert(one.first);
    }
  }

  // From now on also asks about this made-up request, if the function answers
  // it, and (with `unlike`) if the answer differs from that one.
  void MakeUp(RunFunctionRequest request, const Original* unlike) {
    // It is asked about now, and again with all others.
    if (calls_ + static_cast<int>(originals_.size()) + 2 > options_.calls ||
        !known_.insert(text::DeterministicBytes(request)).second) {
      return;
    }
    client::CallResult first = Call(request);
    if (Fails(first) || (unlike != nullptr && unlike->IsSame(first))) {
      return;
    }
    AddWanted(first.response);
    hints_.emplace_back(first.hint);
    originals_.emplace_back(std::move(first.response));
    requests_.push_back(std::move(request));
  }

  // Each request gets its own tag, also one that is asked again: by the
  // protocol a function or a cache may take requests with equal tags for equal.
  client::CallResult Call(RunFunctionRequest request) {
    ++calls_;
    request.mutable_meta()->set_tag(cache::key::RandomTag());
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
    client::CallResult answer = Call(fields_->request(request));
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

  // Asks about all requests: the answer differs if that to one of them does.
  Verdict Ask(const std::vector<Change>& changes, uint64_t seed) {
    for (size_t i = 0; i < originals_.size(); ++i) {
      if (!fields_->HasAny(i, changes)) continue;
      const Verdict verdict = AskOne(i, changes, seed);
      if (verdict != Verdict::kSame) return verdict;
    }
    return Verdict::kSame;
  }

  Verdict AskOne(size_t request, const std::vector<Change>& changes,
                 uint64_t seed) {
    if (varied_ || calls_ >= options_.calls) return Verdict::kEnd;
    const RunFunctionRequest changed = fields_->Changed(request, changes, seed);
    const auto decides = [&](const ReceivedHint& hint) {
      return hint.SaysSame(fields_->request(request), changed);
    };
    if (options_.trust_hint && decides(hints_[request])) {
      ++calls_saved_;
      return Verdict::kSame;
    }
    const client::CallResult answer = Call(changed);
    if (originals_[request].IsSame(answer)) return Verdict::kSame;
    // With random values, the desired resources may be anything.
    const bool likely = absl::c_all_of(changes, [](Change change) {
      return change == Change::kKeep || change == Change::kSet;
    });
    if (likely && answer.status.ok()) AddWanted(answer.response);
    // Is it the request that made the difference, or the time that passed, or a
    // function that is gone?
    const bool gone = absl::IsUnavailable(answer.status) ||
                      absl::IsDeadlineExceeded(answer.status);
    const bool trusted = !gone && calls_ - asked_call_ <= kTrustedCalls &&
                         absl::Now() - asked_at_ <= kTrustedFor;
    if (!trusted) {
      if (calls_ >= options_.calls || !AskAgain(request)) return Verdict::kEnd;
      // Earlier findings may be wrong, so the search begins anew.
      if (varied_) return Verdict::kEnd;
    }
    // Either hint may be wrong: that of this answer, or that of the first one.
    // With these codes nothing is wrong with the request.
    const bool passes = gone || absl::IsResourceExhausted(answer.status) ||
                        absl::IsAborted(answer.status) ||
                        absl::IsCancelled(answer.status);
    if (!passes &&
        (decides(hints_[request]) || decides(ReceivedHint(answer.hint)))) {
      unnamed_here_->Add(changes);
    }
    return Verdict::kDiffers;
  }

  const ProbeOptions& options_;
  client::FunctionCaller* const caller_;
  std::vector<RunFunctionRequest> requests_;  // made-up ones at the end
  size_t sent_ = 0;                           // those that are not made up
  std::set<std::string> known_;               // bytes of requests
  // Names of resources that requests have, and that others of the trace have or
  // answers desire or require.
  std::set<std::string> observed_, wanted_;
  // Masks of fields with all values of which the function fails.
  std::set<std::string> failing_;
  std::unique_ptr<const RequestFields> fields_;
  std::vector<Original> originals_;  // of each request
  std::vector<ReceivedHint> hints_;  // likewise, of the first answer
  // Reads that a hint denies: of all searches, and of the one that runs.
  std::set<std::string> unnamed_;
  absl::optional<UnnamedReads> unnamed_here_;
  int calls_saved_ = 0;
  int calls_ = 0;
  int asked_call_ = 0;
  absl::Time asked_at_;
  bool varied_ = false;  // since the search began
  absl::Status failure_;
};

}  // namespace

absl::StatusOr<ProbeResult> RunProbe(std::vector<RunFunctionRequest> requests,
                                     const Variation& variation,
                                     const Knowledge& knowledge,
                                     const ProbeOptions& options,
                                     client::FunctionCaller* caller) {
  return Prober(options, caller).Run(std::move(requests), variation, knowledge);
}

}  // namespace fncache::runner::probe
