#include "runner/schemas.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/mutex.h"
#include "runner/engine/schema_document.h"
#include "runner/render/openapi_client.h"

namespace fncache::runner {
namespace {

class DocumentSchemas : public SchemaSource {
 public:
  explicit DocumentSchemas(std::vector<text::Json> documents) {
    for (text::Json& json : documents) {
      const auto document =
          std::make_shared<engine::SchemaDocument>(std::move(json));
      for (const engine::GroupVersion& served : document->group_versions()) {
        documents_.emplace(served, document);  // the first keeps it
      }
    }
  }

  void Find(const std::string& api_version, const std::string& kind, absl::Time,
            std::function<void(Found)> done) override {
    const auto group_version = engine::ParseGroupVersion(api_version);
    if (!group_version.ok()) return done(group_version.status());
    const auto document = documents_.find(*group_version);
    if (document == documents_.end()) {
      return done(absl::optional<google::protobuf::Struct>());
    }
    done(document->second->Find(*group_version, kind));
  }

 private:
  std::map<engine::GroupVersion, std::shared_ptr<engine::SchemaDocument>>
      documents_;
};

// Documents of an API server. One thread fetches, one document after the other;
// who asks for one that is on its way waits with the others.
class ServerSchemas : public SchemaSource {
 public:
  explicit ServerSchemas(std::unique_ptr<render::OpenApiClient> client)
      : client_(std::move(client)), thread_([this] { Work(); }) {}

  // Answers what is left with CANCELLED.
  ~ServerSchemas() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.SignalAll();
    }
    client_->Stop();
    thread_.join();
  }

  void Find(const std::string& api_version, const std::string& kind,
            absl::Time deadline, std::function<void(Found)> done) override {
    const auto group_version = engine::ParseGroupVersion(api_version);
    if (!group_version.ok()) return done(group_version.status());
    Question question{kind, deadline, std::move(done)};
    std::shared_ptr<engine::SchemaDocument> document;
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
    std::function<void(Found)> done;
  };

  // `document` is null where the server has none.
  static void Answer(const std::shared_ptr<engine::SchemaDocument>& document,
                     const engine::GroupVersion& group_version,
                     const Question& question) {
    if (document == nullptr) {
      return question.done(absl::optional<google::protobuf::Struct>());
    }
    question.done(document->Find(group_version, question.kind));
  }

  void Work() {
    while (true) {
      engine::GroupVersion wanted;
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
                        : client_->Get(PathOf(wanted), deadline));
    }
  }

  static std::string PathOf(const engine::GroupVersion& group_version) {
    return group_version.group.empty()
               ? absl::StrCat("api/", group_version.version)
               : absl::StrCat("apis/", group_version.group, "/",
                              group_version.version);
  }

  void Serve(const engine::GroupVersion& group_version,
             absl::StatusOr<absl::optional<text::Json>> got) {
    std::shared_ptr<engine::SchemaDocument> document;
    if (got.ok() && got->has_value()) {
      document = std::make_shared<engine::SchemaDocument>(std::move(**got));
    }
    std::vector<Question> questions;
    {
      MutexLock lock(&mutex_);
      // What failed is tried again when it is asked for again.
      if (got.ok()) known_[group_version] = document;
      const auto waiting = waiting_.find(group_version);
      questions = std::move(waiting->second);
      // The first to run out of time ended the fetch; the others still have
      // some, and theirs begins anew.
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

  const std::unique_ptr<render::OpenApiClient> client_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<engine::GroupVersion> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<engine::GroupVersion, std::vector<Question>> waiting_
      ABSL_GUARDED_BY(mutex_);
  std::map<engine::GroupVersion, std::shared_ptr<engine::SchemaDocument>> known_
      ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

std::unique_ptr<SchemaSource> MakeDocumentSchemas(
    std::vector<text::Json> documents) {
  return std::make_unique<DocumentSchemas>(std::move(documents));
}

absl::StatusOr<std::unique_ptr<SchemaSource>> MakeOpenApiSchemas(
    OpenApiServer server) {
  auto client = render::OpenApiClient::Create(std::move(server));
  if (!client.ok()) return client.status();
  return std::make_unique<ServerSchemas>(*std::move(client));
}

}  // namespace fncache::runner
