// SPDX-License-Identifier: Apache-2.0
// Call: one call of a function. It has the request's documents by name, and
// collects what the function sets. emission.h makes the response of it.
//
// Owns everything that handles point to, except the nodes of documents, which
// live as long as the last handle. Not thread-safe: a call belongs to one
// thread.
#ifndef FNCACHE_SDK_COMPOSE_CALL_H_
#define FNCACHE_SDK_COMPOSE_CALL_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "fncache/function/context.h"
#include "google/protobuf/arena.h"
#include "proto/function_lazy.pb.h"
#include "sdk/compose/run.h"
#include "sdk/model/node.h"

namespace fncache::sdk {

struct Requirement;

// The composite, a composed resource, or an item of a requirement.
struct ComposedResource {
  enum class Role { kComposed, kComposite, kRequired };

  Call* call = nullptr;
  Role role = Role::kComposed;
  std::string name;               // in the composition
  bool named = false;             // Context::resource desires it
  bool removed = false;           // Context::remove
  std::string api_version, kind;  // where it is named
  Document* desired = nullptr;    // null of an item
  Document* observed = nullptr;   // absent where nothing is observed
  // The desired one of earlier steps, and the observed one; null: there is
  // none.
  const lazy::Resource* before = nullptr;
  const lazy::Resource* seen = nullptr;
  const Requirement* requirement = nullptr;  // of an item

  absl::optional<function::Ready> ready;
  absl::optional<function::OnLost> on_lost;
  std::vector<std::pair<ComposedResource*, function::Until>> depends_on;
  std::map<std::string, function::Observable<std::string>> connection_details;

  // Emission. Whether the response has it, and what it waits for.
  std::vector<Wait> waits;
  bool held = false;
  bool desires() const { return !removed && (named || before != nullptr); }
};

struct Requirement {
  Call* call = nullptr;
  std::string name;
  function::State state = function::State::kPending;
  const lazy::Resources* answer = nullptr;  // where it is kFound
  bool extra = false;  // the answer is one of `extra_resources`
  // The request; nothing while a value of it is awaited.
  absl::optional<lazy::ResourceSelector> selector;
  std::string identity;  // of the selector, awaited values included
  // Without a selector: what it waits for, and whether that can still come,
  // because the runner has yet to answer or a resource is not there yet.
  std::set<std::string> awaited;
  bool coming = false;
  std::map<size_t, std::unique_ptr<ComposedResource>> items;
};

struct SchemaRequirement {
  Call* call = nullptr;
  std::string name;
  function::State state = function::State::kPending;
  absl::optional<lazy::SchemaSelector> selector;
  std::string identity;
  Document* schema = nullptr;
};

class Call final : public Reporter {
 public:
  Call(const function::Options& options, const CallInfo& info);
  ~Call() override;

  // False where `request` is no message.
  bool Parse(absl::string_view request);

  // Notes a mistake. The first one is reported.
  void Fatal(std::string text) override;
  bool fatal() const { return author_fatal || !error.empty(); }
  // Whether `text` is UTF-8; if not, `what` is FATAL.
  bool CheckText(absl::string_view text, absl::string_view what);
  // Whether it is a TTL; if not, it is FATAL.
  bool CheckTtl(absl::Duration ttl);

  // A document of the request. Without pieces it is absent.
  Document* Read(Section section, absl::string_view name,
                 const google::protobuf::RepeatedPtrField<std::string>* pieces);
  // A document of the response, on top of `base`.
  Document* Write(Section section, absl::string_view name, Document* base);
  // The context as this call sets it.
  Node* ContextRoot();
  ComposedResource* Composite();
  ComposedResource* Composed(absl::string_view name);
  // An item of a requirement, also one that is not there.
  ComposedResource* Item(Requirement* requirement, size_t index);
  // Secrets by key; null: there are none. `path` makes a node that is absent,
  // which names the source of those that are.
  static function::Secrets SecretsOf(
      const google::protobuf::Map<std::string, std::string>* data,
      const std::function<Node*()>& path);
  // The schema of a broken requirement.
  SchemaRequirement* NoSchema();

  // The response becomes this message, with the request's tag and what else the
  // call sets: nothing passes through, and the TTL is the message's.
  void Answer(std::string message);

  bool Advertises() const;
  bool Has(lazy::Capability capability) const;

  const function::Options& options;
  const CallInfo& info;
  google::protobuf::Arena messages;
  lazy::RunFunctionRequest* const request;
  lazy::RunFunctionResponse* const response;
  Arena* const arena;
  std::vector<Document*> documents;  // of the request, those accessed

  std::unique_ptr<ComposedResource> composite;
  std::map<std::string, std::unique_ptr<ComposedResource>, std::less<>>
      composed;
  // By name. Those of the Composition's step have selectors of their own.
  std::map<std::string, std::unique_ptr<Requirement>, std::less<>> requirements,
      bootstraps;
  std::map<std::string, std::unique_ptr<SchemaRequirement>, std::less<>>
      schemas, bootstrap_schemas;
  // Handles that a function gets for names that cannot be.
  Requirement no_requirement;
  SchemaRequirement no_schema;
  std::unique_ptr<ComposedResource> no_resource;
  Document* input = nullptr;
  Document* context = nullptr;  // the response's, on top of the request's
  Document* output = nullptr;

  bool auto_ready = false;
  bool impure = false;  // the function saw the time, or was cancelled
  bool raw = false;     // the function took the messages
  std::string raw_request;
  std::vector<std::string> raw_responses;
  bool no_ttl = false;  // the response has none but that of a message
  absl::optional<absl::Duration> ttl;
  absl::Duration ttl_at_most = absl::InfiniteDuration();
  absl::Status failed;
  bool author_fatal = false;
  std::string error;  // the SDK's FATAL result; empty: none

 private:
  void Describe(ComposedResource* resource, Section desired, Section observed,
                const lazy::Resource* before, const lazy::Resource* seen);
};

// The observed condition of this type; null where there is none. Notes as read
// what it compares. A status of another form has no conditions.
Node* ConditionOf(Document* document, absl::string_view type);
// The text of an object's field; empty where it is none. Notes it as read.
absl::string_view TextAt(Node* object, absl::string_view key);
// The status of a condition: True, False, Unknown; empty where there is none.
absl::string_view StatusOf(Node* condition);
// Readiness as the observed condition `Ready` says.
lazy::Ready ObservedReady(Document* observed);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_COMPOSE_CALL_H_
