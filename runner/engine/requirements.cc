// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/requirements.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "text/deterministic_bytes.h"
#include "text/object.h"

// extra_resources is deprecated, and honoured.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::runner::engine {

namespace fn = apiextensions::fn::proto::v1;

namespace {

template <typename Map>
std::vector<std::pair<std::string, typename Map::mapped_type>> InOrder(
    const Map& map) {
  std::vector<std::pair<std::string, typename Map::mapped_type>> entries(
      map.begin(), map.end());
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return entries;
}

bool Same(const fn::Resources& a, const fn::Resources& b) {
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(),
                    b.items().end(),
                    [](const fn::Resource& left, const fn::Resource& right) {
                      return text::Equal(left.resource(), right.resource());
                    });
}

bool Same(const fn::Schema& a, const fn::Schema& b) {
  return a.has_openapi_v3() == b.has_openapi_v3() &&
         text::Equal(a.openapi_v3(), b.openapi_v3());
}

// Whether all of `some` is in `all`, under the same names.
template <typename Map>
bool IsSubset(const Map& some, const Map& all) {
  return std::all_of(some.begin(), some.end(), [&](const auto& entry) {
    const auto it = all.find(entry.first);
    return it != all.end() && Same(entry.second, it->second);
  });
}

// `top`, and of `below` what `top` has not.
template <typename Map>
void Overlay(Map top, const Map& below, Map* out) {
  out->swap(top);
  for (const auto& [name, value] : below) {
    if (!out->contains(name)) (*out)[name] = value;
  }
}

}  // namespace

Selectors BootstrapSelectors(const PipelineStep& step) {
  Selectors selectors;
  selectors.resources = step.required_resources;
  selectors.schemas = step.required_schemas;
  return selectors;
}

Selectors RequiredSelectors(const fn::Requirements& requirements) {
  Selectors selectors;
  selectors.extra_resources = InOrder(requirements.extra_resources());
  selectors.resources = InOrder(requirements.resources());
  selectors.schemas = InOrder(requirements.schemas());
  return selectors;
}

Required FetchResources(const Selectors& selectors,
                        const ObjectStore& objects) {
  Required required;
  for (const auto& [name, selector] : selectors.extra_resources) {
    required.extra_resources[name] = objects.Select(selector);
  }
  for (const auto& [name, selector] : selectors.resources) {
    fn::Resources found = objects.Select(selector);
    if (selector.has_match_name() && found.items().empty()) {
      required.not_found.insert(name);
    } else {
      required.not_found.erase(name);
    }
    required.resources[name] = std::move(found);
  }
  return required;
}

RequirementsLoop::RequirementsLoop(Required bootstrap)
    : bootstrap_(std::move(bootstrap)) {}

void RequirementsLoop::FillFirst(fn::RunFunctionRequest* request) {
  request->clear_extra_resources();
  *request->mutable_required_resources() = bootstrap_.resources;
  *request->mutable_required_schemas() = bootstrap_.schemas;
}

bool RequirementsLoop::IsLast(const fn::RunFunctionResponse& response) {
  ++calls_;
  const auto& results = response.results();
  if (std::any_of(results.begin(), results.end(), [](const fn::Result& result) {
        return result.severity() == fn::SEVERITY_FATAL;
      })) {
    return true;
  }
  // No requirements and an empty message of them are different answers.
  absl::optional<std::string> requirements;
  if (response.has_requirements()) {
    requirements = text::DeterministicBytes(response.requirements());
  }
  if (requirements == requirements_) return true;
  requirements_ = std::move(requirements);
  return false;
}

bool RequirementsLoop::WasSent(const Required& required) const {
  // Bootstrap is sent with every call, so it does no harm if it has more than
  // `required`. The first call never has extra resources.
  return required.extra_resources.empty() &&
         IsSubset(required.resources, bootstrap_.resources) &&
         std::all_of(required.resources.begin(), required.resources.end(),
                     [&](const auto& entry) {
                       return required.not_found.count(entry.first) ==
                              bootstrap_.not_found.count(entry.first);
                     }) &&
         IsSubset(required.schemas, bootstrap_.schemas);
}

absl::StatusOr<bool> RequirementsLoop::Fetched(
    Required required, fn::RunFunctionRequest* request) {
  if (calls_ == 1 && WasSent(required)) return false;
  if (calls_ == kMaxCallsOfStep) {
    return absl::FailedPreconditionError(absl::StrCat(
        "requirements didn't stabilize after the maximum number of iterations "
        "(",
        kMaxCallsOfStep - 1, ")"));
  }
  request->mutable_extra_resources()->swap(required.extra_resources);
  Overlay(std::move(required.resources), bootstrap_.resources,
          request->mutable_required_resources());
  Overlay(std::move(required.schemas), bootstrap_.schemas,
          request->mutable_required_schemas());
  return true;
}

}  // namespace fncache::runner::engine
