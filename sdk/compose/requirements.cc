// SPDX-License-Identifier: Apache-2.0
// Required resources and schemas: requests, and the runner's answers.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/field_path.h"
#include "fncache/function/context.h"
#include "sdk/compose/bounded_text.h"
#include "sdk/compose/call.h"
#include "sdk/compose/extra_resources.h"
#include "sdk/schema/input.h"
#include "sdk/schema/validate.h"
#include "text/deterministic_bytes.h"

namespace fncache::function {

using internal::Presence;
using sdk::Call;
using sdk::Requirement;
using sdk::SchemaRequirement;
namespace lazy = sdk::lazy;

namespace {

constexpr char kWatched[] = "ops.crossplane.io/watched-resource";

absl::string_view Absl(std::string_view text) {
  return {text.data(), text.size()};
}

// Fills in what a selector of one call needs. An awaited value makes it
// `awaited`, and names it in `identity`.
class SelectorBuilder {
 public:
  SelectorBuilder(Call* call, std::string path)
      : call_(call), path_(std::move(path)) {}

  // A value that the selector cannot do without.
  std::string Needed(const Observable<std::string>& value,
                     absl::string_view what) {
    if (!IsAwaited(value) && (!value.has_value() || value.raw().empty())) {
      call_->Fatal(absl::StrCat(path_, ": ", what, " is needed"));
    }
    return Optional(value, what);
  }
  std::string Optional(const Observable<std::string>& value,
                       absl::string_view what) {
    if (!value.origin().error.empty()) {
      call_->Fatal(absl::StrCat(path_, ": ", what, " ", value.origin().error));
    }
    if (IsAwaited(value)) {
      for (const std::string& source : value.sources()) {
        absl::StrAppend(&awaited_, what, "=", source, "\n");
      }
      for (const internal::Ref& source : value.origin().sources) {
        // A value that was computed has sources that are there, too.
        if (sdk::Peek(source.get()) != nullptr) continue;
        sources_.insert(sdk::SourceName(source.get()));
        coming_ = coming_ || CanCome(source.get()->document);
      }
      return "";
    }
    return Text(value.raw(), what);
  }
  // A text of the author.
  std::string Text(std::string_view text, absl::string_view what) {
    const bool accepted =
        call_->CheckText(Absl(text), absl::StrCat(path_, ": ", what));
    return accepted ? std::string(text) : "";
  }
  const std::string& awaited() const { return awaited_; }
  // The sources that are awaited. Whether one can come before the next
  // reconcile, or with a resource that is not observed yet.
  const std::set<std::string>& sources() const { return sources_; }
  bool coming() const { return coming_; }

 private:
  bool CanCome(const sdk::Document* source) const {
    if (source->section != sdk::Section::kRequired) return !source->present();
    const auto found = call_->requirements.find(source->name);
    return found != call_->requirements.end() &&
           found->second->state == State::kPending && found->second->coming;
  }
  static bool IsAwaited(const Observable<std::string>& value) {
    return value.origin().presence == Presence::kAwaited &&
           !value.origin().optional;
  }

  Call* const call_;
  const std::string path_;
  std::string awaited_;
  std::set<std::string> sources_;
  bool coming_ = false;
};

// The name of a requirement, in messages.
std::string PathOfRequirement(absl::string_view name) {
  return absl::StrCat("required.", SpellKey(name));
}

bool CheckName(Call* call, absl::string_view name) {
  if (name.empty()) call->Fatal("a requirement needs a name");
  return !name.empty() && call->CheckText(name, "the name of a requirement");
}

// Finds the runner's answer. A runner that advertises nothing may answer either
// field.
void Answer(Call* call, Requirement* requirement) {
  const auto& request = *call->request;
  for (const auto* all :
       {&request.required_resources(), &sdk::ExtraResources(request)}) {
    const auto found = all->find(requirement->name);
    if (found == all->end()) continue;
    const bool empty = found->second.items().empty();
    requirement->state = empty ? State::kMissing : State::kFound;
    requirement->answer = empty ? nullptr : &found->second;
    requirement->extra = all != &request.required_resources();
    return;
  }
}

bool Unsupported(const Call* call, lazy::Capability capability) {
  return call->Advertises() && !call->Has(capability);
}

void AnswerSchema(Call* call, SchemaRequirement* requirement) {
  const auto& all = call->request->required_schemas();
  const auto found = all.find(requirement->name);
  const lazy::Schema* schema = found == all.end() ? nullptr : &found->second;
  if (schema != nullptr) {
    requirement->state =
        schema->openapi_v3().empty() ? State::kMissing : State::kFound;
  }
  requirement->schema =
      call->Read(sdk::Section::kSchema, requirement->name,
                 schema == nullptr ? nullptr : &schema->openapi_v3());
}

// The requirement of this name, made by `make` where it is new. FATAL if it is
// another one than before.
template <class R, class M>
R* Once(Call* call, absl::string_view name, const std::string& identity,
        std::map<std::string, std::unique_ptr<R>, std::less<>>* all, M make) {
  std::unique_ptr<R>& known = (*all)[std::string(name)];
  if (known == nullptr) {
    known = std::make_unique<R>();
    known->call = call;
    known->name = std::string(name);
    known->identity = identity;
    make(known.get());
  } else if (known->identity != identity) {
    call->Fatal(absl::StrCat(PathOfRequirement(name),
                             ": is required twice, with other selectors"));
  }
  return known.get();
}

}  // namespace

Selector MatchName(const Observable<std::string>& name) {
  Selector selector;
  selector.by_name = true;
  selector.name = name;
  return selector;
}

Selector MatchLabels(
    std::initializer_list<std::pair<std::string, Observable<std::string>>>
        labels) {
  Selector selector;
  selector.labels = labels;
  return selector;
}

Requirement* Context::Require(std::string_view name,
                              std::string_view api_version,
                              std::string_view kind, const Selector& selector) {
  if (!CheckName(call_, Absl(name))) return &call_->no_requirement;
  SelectorBuilder builder(call_, PathOfRequirement(Absl(name)));
  lazy::ResourceSelector wanted;
  wanted.set_api_version(
      builder.Needed(std::string(api_version), "apiVersion"));
  wanted.set_kind(builder.Needed(std::string(kind), "kind"));
  if (selector.by_name) {
    wanted.set_match_name(builder.Needed(selector.name, "the name to match"));
  } else {
    auto& labels = *wanted.mutable_match_labels()->mutable_labels();
    for (const auto& [key, value] : selector.labels) {
      const std::string label = builder.Text(key, "the key of a label");
      const std::string what = absl::StrCat("the label ", SpellKey(label));
      // Without a label, the selector would match more.
      labels[label] = value.has_value() ? builder.Optional(value, what)
                                        : builder.Needed(value, what);
    }
  }
  if (selector.name_space_.has_value()) {
    // Without a namespace, labels would match in all of them.
    const std::string name_space =
        selector.by_name
            ? builder.Optional(*selector.name_space_, "the namespace")
            : builder.Needed(*selector.name_space_, "the namespace");
    if (selector.name_space_->has_value()) wanted.set_namespace_(name_space);
  }
  return Once(call_, Absl(name),
              absl::StrCat(fncache::text::DeterministicBytes(wanted),
                           builder.awaited()),
              &call_->requirements, [&](Requirement* made) {
                if (Unsupported(call_, lazy::CAPABILITY_REQUIRED_RESOURCES)) {
                  made->state = State::kUnsupported;
                } else if (builder.awaited().empty()) {
                  made->selector = std::move(wanted);
                  made->coming = true;
                  Answer(call_, made);
                } else {
                  made->awaited = builder.sources();
                  made->coming = builder.coming();
                }
              });
}

Requirement* Context::Bootstrap(std::string_view name) {
  if (!CheckName(call_, Absl(name))) return &call_->no_requirement;
  return Once(call_, Absl(name), "", &call_->bootstraps,
              [&](Requirement* made) {
                if (Unsupported(call_, lazy::CAPABILITY_REQUIRED_RESOURCES)) {
                  made->state = State::kUnsupported;
                }
                Answer(call_, made);
              });
}

Resource Context::watched() { return internal::ItemOf(Bootstrap(kWatched), 0); }

RequiredSchema Context::require_schema(std::string_view name,
                                       std::string_view api_version,
                                       std::string_view kind) {
  if (!CheckName(call_, Absl(name))) return RequiredSchema(call_->NoSchema());
  SelectorBuilder builder(call_, PathOfRequirement(Absl(name)));
  lazy::SchemaSelector wanted;
  wanted.set_api_version(
      builder.Needed(std::string(api_version), "apiVersion"));
  wanted.set_kind(builder.Needed(std::string(kind), "kind"));
  return RequiredSchema(
      Once(call_, Absl(name), fncache::text::DeterministicBytes(wanted),
           &call_->schemas, [&](SchemaRequirement* made) {
             AnswerSchema(call_, made);
             if (Unsupported(call_, lazy::CAPABILITY_REQUIRED_SCHEMAS)) {
               made->state = State::kUnsupported;
             } else {
               made->selector = std::move(wanted);
             }
           }));
}

RequiredSchema Context::bootstrap_schema(std::string_view name) {
  if (!CheckName(call_, Absl(name))) return RequiredSchema(call_->NoSchema());
  return RequiredSchema(
      Once(call_, Absl(name), "", &call_->bootstrap_schemas,
           [&](SchemaRequirement* made) {
             if (Unsupported(call_, lazy::CAPABILITY_REQUIRED_SCHEMAS)) {
               made->state = State::kUnsupported;
             }
             AnswerSchema(call_, made);
           }));
}

void Context::CheckInput(std::string_view schema) {
  std::vector<std::string> messages;
  for (const Problem& problem :
       sdk::schema::CheckInput(Absl(schema), input().ref().get())) {
    messages.push_back(sdk::schema::InputMessage(problem));
  }
  if (!messages.empty()) call_->Fatal(sdk::Bounded("", messages, "; "));
}

State RequiredSchema::state() const { return requirement_->state; }

Value RequiredSchema::schema() const {
  return Value(internal::Ref(requirement_->schema->root()));
}

std::vector<Problem> RequiredSchema::Validate(const Value& object) const {
  if (requirement_->state != State::kFound) return {};
  return sdk::schema::Validate(requirement_->schema->root(),
                               object.ref().get());
}

namespace internal {

State StateOf(const Requirement* requirement) { return requirement->state; }

size_t SizeOf(const Requirement* requirement) {
  return requirement->answer == nullptr ? 0 : requirement->answer->items_size();
}

Resource ItemOf(Requirement* requirement, size_t index) {
  sdk::ComposedResource* item = requirement->call->Item(requirement, index);
  return Resource(Ref(item->observed->root()), item);
}

void RequireAtLeast(Requirement* requirement, size_t count) {
  const size_t size = SizeOf(requirement);
  if (size >= count) return;
  const std::string needed = absl::StrCat(PathOfRequirement(requirement->name),
                                          ": ", count, " items are needed, ");
  if (requirement->state != State::kPending) {
    requirement->call->Fatal(absl::StrCat(needed, "there are ", size));
  } else if (!requirement->awaited.empty() && !requirement->coming) {
    // An empty list would delete, and nothing fills it in this reconcile.
    requirement->call->Fatal(
        absl::StrCat(needed, "the selector waits for ",
                     absl::StrJoin(requirement->awaited, ", ")));
  } else if (!requirement->coming) {
    requirement->call->Fatal(
        absl::StrCat(needed, "the Composition's step requests no such name"));
  }
}

}  // namespace internal
}  // namespace fncache::function
