// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/engine.h"

#include <string>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/composed_resources.h"
#include "runner/engine/composite_schema.h"
#include "runner/engine/composition_revision.h"
#include "runner/engine/metadata.h"
#include "runner/engine/object_store.h"
#include "runner/engine/observed.h"
#include "runner/engine/prepared_composite.h"
#include "runner/engine/rendered_composite.h"
#include "text/object.h"

namespace fncache::runner::engine {

namespace {

namespace fn = apiextensions::fn::proto::v1;

using crossplane::render::v1alpha1::CompositeOutput;

constexpr absl::string_view kCannotRender = "cannot render composite resource";
constexpr absl::string_view kCannotCompose = "cannot compose resources";

// The state of one render, from its input to the call of `done`.
struct Rendering {
  std::shared_ptr<const Composition> composition;
  CompositeSchema schema = CompositeSchema::kModern;
  std::shared_ptr<ObjectStore> objects;
  PreparedComposite prepared;
  // The composite before it was prepared; empty if all of it was written back.
  Struct stored;
  ObservedResources observed;
  Clock* clock = nullptr;
  std::function<void(EngineOutcome)> done;
};

// Says of a failure what the runner's reconciler says of it.
absl::Status ComposeFailure(const absl::Status& status) {
  return Prefixed(
      absl::StrCat(kCannotRender, ": reconcile failed: ", kCannotCompose),
      status);
}

EngineOutcome Failure(absl::Status status) {
  EngineOutcome outcome;
  outcome.status = std::move(status);
  return outcome;
}

absl::Status CheckType(const Composition& composition,
                       const Struct& composite) {
  const absl::Status status =
      CheckCompositeType("apiVersion", composition.composite_api_version,
                         text::FindText(composite, {"apiVersion"}));
  if (!status.ok()) return status;
  return CheckCompositeType("kind", composition.composite_kind,
                            text::FindText(composite, {"kind"}));
}

// Adds the credentials to the store. One without a kind is taken for a Secret.
void AddCredentials(const EngineInput::Objects& credentials,
                    ObjectStore* store) {
  if (credentials == nullptr) return;
  for (const Struct& credential : *credentials) {
    if (!text::FindText(credential, {"kind"}).empty()) {
      store->Add(credential);
      continue;
    }
    Struct secret = credential;
    text::SetText(&secret, {"apiVersion"}, "v1");
    text::SetText(&secret, {"kind"}, "Secret");
    store->Add(std::move(secret));
  }
}

// The selector as the reference engine reports it, in protobuf's JSON form.
Struct SelectorJson(const fn::ResourceSelector& selector) {
  Struct json;
  const auto set = [&json](absl::string_view field, const std::string& text) {
    if (!text.empty()) text::SetText(&json, {field}, text);
  };
  set("apiVersion", selector.api_version());
  set("kind", selector.kind());
  switch (selector.match_case()) {
    case fn::ResourceSelector::kMatchName:
      text::SetText(&json, {"matchName"}, selector.match_name());
      break;
    case fn::ResourceSelector::kMatchLabels: {
      Struct* const match = text::EnsureMap(&json, {"matchLabels"});
      for (const auto& [key, value] : selector.match_labels().labels()) {
        text::SetText(match, {"labels", key}, value);
      }
      break;
    }
    case fn::ResourceSelector::MATCH_NOT_SET:
      break;
  }
  if (selector.has_namespace_()) {
    text::SetText(&json, {"namespace"}, selector.namespace_());
  }
  return json;
}

Struct SelectorJson(const fn::SchemaSelector& selector) {
  Struct json;
  if (!selector.api_version().empty()) {
    text::SetText(&json, {"apiVersion"}, selector.api_version());
  }
  if (!selector.kind().empty()) text::SetText(&json, {"kind"}, selector.kind());
  return json;
}

void AddFetched(const PipelineOutcome& pipeline, CompositeOutput* output) {
  for (const fn::ResourceSelector& selector : pipeline.fetched_resources) {
    *output->add_required_resources() = SelectorJson(selector);
  }
  for (const fn::SchemaSelector& selector : pipeline.fetched_schemas) {
    *output->add_required_schemas() = SelectorJson(selector);
  }
}

void AddEvents(std::vector<Event> events, CompositeOutput* output) {
  for (Event& event : events) *output->add_events() = std::move(event);
}

EngineOutcome Unfinished(Rendering* rendering) {
  EngineOutcome outcome;
  *outcome.output.mutable_composite_resource() =
      WholeComposite(rendering->prepared, rendering->stored);
  AddEvents(std::move(rendering->prepared.events), &outcome.output);
  return outcome;
}

EngineOutcome Fatal(Rendering* rendering, const PipelineOutcome& pipeline) {
  EngineOutcome outcome;
  const absl::Status failure = Prefixed(kCannotCompose, pipeline.status);
  const std::string error(failure.message());
  outcome.status = Prefixed(kCannotRender, failure);
  outcome.fatal = true;

  const bool claimed = HasClaim(rendering->prepared.composite,
                                rendering->schema, *rendering->objects);
  AddEvents(std::move(rendering->prepared.events), &outcome.output);
  *outcome.output.add_events() = WarningEvent(kComposeReason, error);
  for (const PipelineResult& result : pipeline.results) {
    *outcome.output.add_events() = EventOf(result, /*detailed=*/true);
    if (claimed && result.result.target() == fn::TARGET_COMPOSITE_AND_CLAIM) {
      *outcome.output.add_events() = EventOf(result, /*detailed=*/false);
    }
  }

  SetFatalConditions(pipeline.conditions, rendering->schema, error,
                     rendering->clock->Now(), &rendering->prepared.composite);
  *outcome.output.mutable_composite_resource() =
      WholeComposite(rendering->prepared, rendering->stored);
  AddFetched(pipeline, &outcome.output);
  return outcome;
}

EngineOutcome Success(Rendering* rendering, PipelineOutcome pipeline) {
  RenderedComposite rendered;
  fn::Resource* const desired = pipeline.desired.mutable_composite();
  rendered.desired.Swap(desired->mutable_resource());
  rendered.ready = desired->ready();
  rendered.conditions = std::move(pipeline.conditions);

  absl::StatusOr<Composed> composed =
      Compose(rendering->prepared.composite, rendering->observed,
              std::move(pipeline.desired), [] { return absl::BitGen()(); });
  if (!composed.ok()) return Failure(ComposeFailure(composed.status()));

  EngineOutcome outcome;
  outcome.ttl = pipeline.ttl;
  CompositeOutput* const output = &outcome.output;
  AddEvents(std::move(rendering->prepared.events), output);
  for (const PipelineResult& result : pipeline.results) {
    *output->add_events() = EventOf(result, /*detailed=*/true);
  }
  AddEvents(std::move(composed->events), output);
  std::vector<Readiness> readiness;
  readiness.reserve(composed->resources.size());
  for (const ComposedResource& resource : composed->resources) {
    readiness.push_back({resource.name, resource.ready});
  }
  Unready unready = UnreadyOf(readiness);
  AddEvents(std::move(unready.events), output);

  rendered.references = std::move(composed->references);
  rendered.unready = std::move(unready.names);
  *output->mutable_composite_resource() =
      SuccessfulComposite(rendering->prepared, rendering->schema,
                          std::move(rendered), rendering->clock->Now());
  for (ComposedResource& resource : composed->resources) {
    output->add_composed_resources()->Swap(&resource.resource);
  }
  for (Struct& deleted : composed->deleted) {
    output->add_deleted_resources()->Swap(&deleted);
  }
  AddFetched(pipeline, output);
  return outcome;
}

EngineOutcome Conclude(Rendering* rendering, PipelineOutcome pipeline) {
  if (pipeline.fatal) return Fatal(rendering, pipeline);
  if (!pipeline.status.ok()) return Failure(ComposeFailure(pipeline.status));
  return Success(rendering, std::move(pipeline));
}

}  // namespace

absl::Status CheckComposite(const EngineInput& input) {
  const auto schema = SchemaOf(input.definition.get(), input.composite);
  if (!schema.ok()) return schema.status();
  Struct composite = input.composite;
  IdentifyComposite(&composite);
  return input.observed == nullptr ? absl::OkStatus()
                                   : CheckObserved(composite, *input.observed);
}

namespace {

// Fills the store, in the order in which a later object replaces an earlier
// one, and prepares the composite that is in it then.
absl::Status Begin(EngineInput* input, Rendering* rendering) {
  absl::StatusOr<CompositeSchema> schema =
      SchemaOf(input->definition.get(), input->composite);
  if (!schema.ok()) return schema.status();
  rendering->schema = *schema;
  absl::Status status = CheckType(*input->composition, input->composite);
  if (!status.ok()) return status;

  Struct& composite = input->composite;
  IdentifyComposite(&composite);
  if (input->observed != nullptr) {
    status = CheckObserved(composite, *input->observed);
    if (!status.ok()) return status;
    ReferToObserved(*input->observed, *schema, &composite);
  }
  const std::string api_version = text::FindText(composite, {"apiVersion"});
  const std::string kind = text::FindText(composite, {"kind"});
  const std::string own_namespace = NamespaceOf(composite);
  const std::string name = NameOf(composite);

  rendering->objects = std::make_shared<ObjectStore>();
  ObjectStore* const objects = rendering->objects.get();
  objects->Add(std::move(composite));
  objects->Add(
      CompositionRevision(*rendering->composition, rendering->clock->Now()));
  if (input->observed != nullptr) objects->Add(input->observed);
  if (input->required != nullptr) objects->Add(input->required);
  AddCredentials(input->credentials, objects);

  const Struct* const stored =
      objects->Get(api_version, kind, own_namespace, name);
  if (stored == nullptr) {
    return absl::InternalError("the composite is not among its objects");
  }
  rendering->prepared = PrepareComposite(
      *stored, *schema, *rendering->composition, rendering->clock->Now());
  if (rendering->prepared.updated) {
    objects->Add(rendering->prepared.composite);
  } else {
    rendering->stored = *stored;
  }
  return absl::OkStatus();
}

}  // namespace

void Render(EngineInput input, const EngineOptions& options,
            client::FunctionCaller* caller, Clock* clock,
            PipelineObserver* observer,
            std::function<void(EngineOutcome)> done) {
  const auto rendering = std::make_shared<Rendering>();
  rendering->composition = input.composition;
  rendering->clock = clock;
  rendering->done = std::move(done);
  const absl::Status status = Begin(&input, rendering.get());
  if (!status.ok()) {
    rendering->done(Failure(Prefixed(kCannotRender, status)));
    return;
  }
  if (rendering->prepared.finished) {
    rendering->done(Unfinished(rendering.get()));
    return;
  }
  absl::StatusOr<Observation> observation = Observe(
      rendering->prepared.composite, rendering->schema, *rendering->objects);
  if (!observation.ok()) {
    rendering->done(Failure(ComposeFailure(observation.status())));
    return;
  }
  rendering->observed = std::move(observation->resources);

  PipelineInput pipeline;
  pipeline.composition = std::move(input.composition);
  pipeline.observed = std::move(observation->state);
  pipeline.objects = rendering->objects;
  pipeline.schemas = std::move(input.schemas);
  pipeline.capabilities = options.capabilities;
  pipeline.deadline = options.deadline;
  pipeline.step_timeout = options.step_timeout;
  RunPipeline(std::move(pipeline), caller, clock, observer,
              [rendering](PipelineOutcome outcome) {
                rendering->done(Conclude(rendering.get(), std::move(outcome)));
              });
}

}  // namespace fncache::runner::engine
