// SPDX-License-Identifier: Apache-2.0
#include "runner/render/inputs.h"

#include <initializer_list>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "runner/engine/composite_defaults.h"
#include "runner/engine/document_schemas.h"
#include "runner/render/context_steps.h"
#include "runner/render/input_file.h"
#include "runner/render/loader.h"
#include "runner/render/operations.h"
#include "text/kubernetes_yaml.h"
#include "text/quoted.h"

namespace fncache::runner::render {
namespace {

using google::protobuf::Struct;
using Objects = std::vector<Struct>;

// `cannot load WHAT from "PATH": WHY`; the loader's own messages name the path
// too, which is not said twice.
absl::Status CannotLoad(absl::string_view what, const std::string& path,
                        const absl::Status& status) {
  absl::string_view why = status.message();
  const std::string named = absl::StrCat(path, ": ");
  if (absl::StartsWith(why, named)) why.remove_prefix(named.size());
  return Prefixed(
      absl::StrCat("cannot load ", what, " from ", text::Quoted(path)),
      absl::Status(status.code(), why));
}

// Whether both are the same object of a cluster.
bool IsSame(const text::Json& a, const text::Json& b) {
  for (const text::JsonPath path :
       {text::JsonPath{"apiVersion"}, text::JsonPath{"kind"},
        text::JsonPath{"metadata", "namespace"},
        text::JsonPath{"metadata", "name"}}) {
    if (text::FindText(a, path) != text::FindText(b, path)) return false;
  }
  return true;
}

std::shared_ptr<const Objects> ToObjects(
    const std::vector<LoadedObject>& loaded) {
  auto objects = std::make_shared<Objects>();
  objects->reserve(loaded.size());
  for (const LoadedObject& one : loaded) {
    objects->push_back(text::ToStruct(*one.object));
  }
  return objects;
}

// Stands for composites that could not be loaded, since the others are rendered
// all the same.
CompositeToRender NotLoaded(const std::string& path,
                            const absl::Status& status) {
  CompositeToRender composite;
  composite.where = path;
  composite.file = path;
  composite.status = CannotLoad("composite resource", path, status);
  return composite;
}

absl::StatusOr<std::vector<CompositeToRender>> LoadComposites(
    const RenderFlags& flags) {
  std::vector<CompositeToRender> composites;
  if (flags.all.empty()) {
    auto loaded = LoadComposite(flags.composite);
    if (!loaded.ok()) {
      return CannotLoad("composite resource", flags.composite, loaded.status());
    }
    CompositeToRender composite;
    composite.object = std::move(loaded->object);
    composite.where = flags.composite;
    composite.file = flags.composite;
    composites.push_back(std::move(composite));
    return composites;
  }
  for (const std::string& path : flags.all) {
    auto files = LoadResourceFiles(path);
    if (!files.ok()) {
      composites.push_back(NotLoaded(path, files.status()));
      continue;
    }
    for (LoadedFile& file : *files) {
      if (!file.objects.ok()) {
        composites.push_back(NotLoaded(file.path, file.objects.status()));
        continue;
      }
      for (LoadedObject& one : *file.objects) {
        if (one.object->empty()) continue;  // only comments
        CompositeToRender composite;
        composite.object = std::move(one.object);
        composite.where = std::move(one.where);
        composite.file = file.path;
        composite.status = CheckNoOperation(*composite.object);
        composites.push_back(std::move(composite));
      }
    }
  }
  if (composites.empty()) {
    return absl::InvalidArgumentError(
        "--all: no composite resource in any file, only comments");
  }
  return composites;
}

// The first error ends a render of one composite; of several it is kept for the
// one that it is about.
absl::Status Check(bool several, const text::Json& composition,
                   const text::Json* definition,
                   std::vector<CompositeToRender>* composites) {
  for (CompositeToRender& composite : *composites) {
    if (!composite.status.ok()) continue;
    composite.status = CheckComposition(composition, *composite.object);
    if (composite.status.ok() && definition != nullptr) {
      const absl::Status status =
          engine::ApplyDefaults(*definition, composite.object.get());
      if (!status.ok()) {
        composite.status = Prefixed(
            absl::StrCat("cannot apply XRD defaults to XR ",
                         text::Quoted(text::FindText(*composite.object,
                                                     {"metadata", "name"}))),
            status);
      }
    }
    if (!several && !composite.status.ok()) return composite.status;
  }
  return absl::OkStatus();
}

absl::Status LoadTargets(const RenderFlags& flags, RenderInputs* inputs) {
  if (flags.functions.empty()) {
    if (flags.targets.empty()) {
      return absl::InvalidArgumentError(
          "functions argument is required when not in a project or "
          "configuration; give FUNCTIONS or --function NAME=TARGET");
    }
    // The last of two with one name counts, as in a file.
    std::map<std::string, std::string> targets;
    for (const client::FunctionTarget& one : flags.targets) {
      targets[one.name] = one.target;
    }
    for (const auto& [name, target] : targets) {
      inputs->functions.push_back({name, target});
    }
    return absl::OkStatus();
  }
  auto loaded =
      LoadFunctions(flags.functions, flags.annotations, flags.targets);
  if (!loaded.ok()) {
    return CannotLoad("functions", flags.functions, loaded.status());
  }
  inputs->functions = *std::move(loaded);
  return absl::OkStatus();
}

// Gives each composite its observed resources. A copy of the composite among
// them is left out: the output of a render, fed back, begins with one, and in
// the store it would replace the composite (crossplane/cli#256).
void GiveObserved(const std::vector<LoadedObject>& observed,
                  std::vector<CompositeToRender>* composites, bool several) {
  for (CompositeToRender& composite : *composites) {
    if (!composite.status.ok()) continue;
    std::vector<LoadedObject> own;
    for (const LoadedObject& one : observed) {
      if (IsSame(*one.object, *composite.object)) continue;
      if (several && !BelongsTo(*one.object, *composite.object)) continue;
      own.push_back(one);
    }
    composite.observed = ToObjects(own);
  }
}

absl::Status LoadObjectsOf(const RenderFlags& flags, RenderInputs* inputs) {
  if (!flags.credentials.empty()) {
    const auto loaded = LoadSecrets(flags.credentials);
    if (!loaded.ok()) {
      return CannotLoad("secrets", flags.credentials, loaded.status());
    }
    inputs->credentials = ToObjects(*loaded);
  }
  if (!flags.observed.empty()) {
    const auto loaded = LoadResources({flags.observed});
    if (!loaded.ok()) {
      return CannotLoad("observed composed resources", flags.observed,
                        loaded.status());
    }
    GiveObserved(*loaded, &inputs->composites, !flags.all.empty());
  }
  std::vector<LoadedObject> required;
  const auto load = [&required](const char* what,
                                const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      auto loaded = LoadResources({path});
      if (!loaded.ok()) return CannotLoad(what, path, loaded.status());
      for (LoadedObject& one : *loaded) required.push_back(std::move(one));
    }
    return absl::OkStatus();
  };
  auto status = load("required resources", flags.required);
  if (!status.ok()) return status;
  status = load("extra resources", flags.extra);
  if (!status.ok()) return status;
  inputs->required = ToObjects(required);
  if (flags.schemas.empty()) return absl::OkStatus();
  auto schemas = LoadSchemas(flags.schemas);
  if (!schemas.ok()) {
    return CannotLoad("required schemas", flags.schemas, schemas.status());
  }
  inputs->schemas = engine::MakeDocumentSchemas(*std::move(schemas));
  return absl::OkStatus();
}

absl::Status LoadContext(const RenderFlags& flags, Struct* context) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, path] : flags.context_files) {
    auto text = ReadNamedFile(path);
    if (!text.ok()) {
      return Prefixed(
          absl::StrCat("cannot build context data: cannot read context value ",
                       "for key \"", key, "\": ", path),
          text.status());
    }
    texts[key] = *std::move(text);
  }
  for (const auto& [key, text] : flags.context_values) texts[key] = text;
  for (const auto& [key, text] : texts) {
    const auto value = text::ParseKubernetesYaml(text);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot parse context data: cannot unmarshal context "
                       "value for key \"",
                       key, "\": ", value.status().message()));
    }
    (*context->mutable_fields())[key] = text::ToValue(*value);
  }
  return absl::OkStatus();
}

}  // namespace

bool BelongsTo(const text::Json& observed, const text::Json& composite) {
  const std::string scope =
      text::FindText(composite, {"metadata", "namespace"});
  const std::string name = text::FindText(composite, {"metadata", "name"});
  if (!scope.empty() &&
      text::FindText(observed, {"metadata", "namespace"}) != scope) {
    return false;
  }
  if (const text::Json* const owners =
          text::Find(observed, {"metadata", "ownerReferences"});
      owners != nullptr && owners->is_array()) {
    for (const text::Json& owner : *owners) {
      const text::Json* const controller = text::Find(owner, {"controller"});
      if (controller == nullptr || !controller->is_boolean() ||
          !*controller->get_ptr<const bool*>()) {
        continue;
      }
      return text::FindText(owner, {"kind"}) ==
                 text::FindText(composite, {"kind"}) &&
             text::FindText(owner, {"apiVersion"}) ==
                 text::FindText(composite, {"apiVersion"}) &&
             text::FindText(owner, {"name"}) == name;
    }
  }
  const std::string label = text::FindText(
      observed, {"metadata", "labels", "crossplane.io/composite"});
  return label.empty() || label == name;
}

absl::StatusOr<RenderInputs> LoadRenderInputs(const RenderFlags& flags) {
  RenderInputs inputs;
  const bool several = !flags.all.empty();
  auto composites = LoadComposites(flags);
  if (!composites.ok()) return composites.status();
  inputs.composites = *std::move(composites);

  const auto composition = LoadComposition(flags.composition);
  if (!composition.ok()) {
    return CannotLoad("Composition", flags.composition, composition.status());
  }
  auto parsed = engine::ParseComposition(text::ToStruct(*composition->object));
  if (!parsed.ok()) {
    return CannotLoad("Composition", flags.composition, parsed.status());
  }
  const bool seeds =
      !flags.context_values.empty() || !flags.context_files.empty();
  inputs.composition = std::make_shared<const engine::Composition>(
      WithContextSteps(*std::move(parsed), seeds, flags.include_context));
  auto status =
      Check(several, *composition->object, nullptr, &inputs.composites);
  if (!status.ok()) return status;

  status = LoadTargets(flags, &inputs);
  if (!status.ok()) return status;
  if (!flags.definition.empty()) {
    const auto definition = LoadDefinition(flags.definition);
    if (!definition.ok()) {
      return CannotLoad("XRD", flags.definition, definition.status());
    }
    status =
        Check(several, *composition->object, &*definition, &inputs.composites);
    if (!status.ok()) return status;
    inputs.definition =
        std::make_shared<const Struct>(text::ToStruct(*definition));
  }
  status = LoadObjectsOf(flags, &inputs);
  if (!status.ok()) return status;
  status = LoadContext(flags, &inputs.context);
  if (!status.ok()) return status;
  return inputs;
}

engine::EngineInput InputOf(const RenderInputs& inputs,
                            const CompositeToRender& composite) {
  engine::EngineInput input;
  input.composite = text::ToStruct(*composite.object);
  input.composition = inputs.composition;
  input.observed = composite.observed;
  input.required = inputs.required;
  input.credentials = inputs.credentials;
  input.schemas = inputs.schemas;
  input.definition = inputs.definition;
  return input;
}

}  // namespace fncache::runner::render
