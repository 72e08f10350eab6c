// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/fetched_schemas.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/mutex.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "sdk/schema/group_version.h"
#include "sdk/schema/schema_document.h"

namespace fncache::runner::engine {
namespace {

using sdk::schema::GroupVersion;
using sdk::schema::ParseGroupVersion;
using sdk::schema::SchemaDocument;

// One thread fetches, one document after the other. All callers that ask for a
// document during its fetch wait for the same fetch.
class FetchedSchemas : public SchemaSource {
 public:
  explicit FetchedSchemas(std::unique_ptr<OpenApiFetcher> fetcher)
      : fetcher_(std::move(fetcher)), thread_([this] { Work(); }) {}

  ~FetchedSchemas() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.SignalAll();
    }
    fetcher_->Stop();
    thread_.join();
  }

  void Find(const std::string& api_version, const std::string& kind,
            absl::Time deadline,
            std::function<void(FoundSchema)> done) override {
    const auto group_version = ParseGroupVersion(api_version);
    if (!group_version.ok()) return done(group_version.status());
    Question question{kind, deadline, std::move(done)};
    std::shared_ptr<SchemaDocument> document;
    {
      MutexLock lock(&mutex_);
      const auto known = known_.find(*group_version);
      if (known == known_.end()) {
        std::vector<Question>& questions = waiting_[*group_version];
        if (questions.empty()) {
          queue_.push_back(*group_version);
          changed_.SignalAll();
        }
        questions.push_back(std::move(question));
        return;
      }
      document = known->second;
    }
    Answer(document, *group_version, question);
  }

 private:
  struct Question {
    std::string kind;
    absl::Time deadline;
    std::function<void(FoundSchema)> done;
  };

  // `document` is null where there is none.
  static void Answer(const std::shared_ptr<SchemaDocument>& document,
                     const GroupVersion& group_version,
                     const Question& question) {
    if (document == nullptr) {
      return question.done(absl::optional<google::protobuf::Struct>());
    }
    question.done(document->Find(group_version, question.kind));
  }

  void Work() {
    while (true) {
      GroupVersion wanted;
      absl::Time deadline = absl::InfiniteFuture();
      bool stopping;
      {
        MutexLock lock(&mutex_);
        while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
        if (queue_.empty()) return;
        wanted = std::move(queue_.front());
        queue_.pop_front();
        for (const Question& question : waiting_[wanted]) {
          deadline = std::min(deadline, question.deadline);
        }
        stopping = stopping_;
      }
      Serve(wanted, stopping
                        ? absl::CancelledError("schemas are no longer needed")
                        : fetcher_->Get(PathOf(wanted), deadline));
    }
  }

  static std::string PathOf(const GroupVersion& group_version) {
    return group_version.group.empty()
               ? absl::StrCat("api/", group_version.version)
               : absl::StrCat("apis/", group_version.group, "/",
                              group_version.version);
  }

  void Serve(const GroupVersion& group_version,
             absl::StatusOr<absl::optional<text::Json>> got) {
    std::shared_ptr<SchemaDocument> document;
    if (got.ok() && got->has_value()) {
      document = std::make_shared<SchemaDocument>(std::move(**got));
    }
    std::vector<Question> questions;
    {
      MutexLock lock(&mutex_);
      // A fetch that failed leaves nothing, so that the next question tries it
      // again.
      if (got.ok()) known_[group_version] = document;
      const auto waiting = waiting_.find(group_version);
      questions = std::move(waiting->second);
      // The earliest deadline ended the fetch. It begins anew for the callers
      // that still have time.
      const auto over =
          std::stable_partition(questions.begin(), questions.end(),
                                [now = absl::Now()](const Question& question) {
                                  return question.deadline <= now;
                                });
      if (absl::IsDeadlineExceeded(got.status()) && over != questions.begin() &&
          over != questions.end()) {
        waiting->second.assign(std::make_move_iterator(over),
                               std::make_move_iterator(questions.end()));
        questions.erase(over, questions.end());
        queue_.push_back(group_version);
      } else {
        waiting_.erase(waiting);
      }
    }
    for (const Question& question : questions) {
      if (got.ok()) {
        Answer(document, group_version, question);
      } else {
        question.done(got.status());
      }
    }
  }

  const std::unique_ptr<OpenApiFetcher> fetcher_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<GroupVersion> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<GroupVersion, std::vector<Question>> waiting_
      ABSL_GUARDED_BY(mutex_);
  std::map<GroupVersion, std::shared_ptr<SchemaDocument>> known_
      ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

std::unique_ptr<SchemaSource> MakeFetchedSchemas(
    std::unique_ptr<OpenApiFetcher> fetcher) {
  return std::make_unique<FetchedSchemas>(std::move(fetcher));
}

}  // namespace fncache::runner::engine
