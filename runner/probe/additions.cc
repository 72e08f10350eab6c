// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/additions.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runner/probe/objects.h"
#include "runner/probe/spelled_paths.h"

namespace fncache::runner::probe {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using google::protobuf::Struct;
using google::protobuf::Value;

constexpr size_t kMostSeen = 50000;
constexpr size_t kMostSeenValues = 2;
constexpr size_t kMostGuesses = 4000;
constexpr size_t kMostNames = 300;
constexpr int kDeepestSchema = 8;
constexpr char kTime[] = "2026-01-01T00:00:00Z";

Value Text(absl::string_view text) {
  Value value;
  value.set_string_value(std::string(text));
  return value;
}
Value Number(double number) {
  Value value;
  value.set_number_value(number);
  return value;
}
Value Boolean(bool on) {
  Value value;
  value.set_bool_value(on);
  return value;
}

bool IsLeaf(const Value& value) {
  return value.has_string_value() || value.has_number_value() ||
         value.has_bool_value();
}

// Compares leaves.
bool Same(const Value& a, const Value& b) {
  return a.kind_case() == b.kind_case() &&
         a.string_value() == b.string_value() &&
         a.number_value() == b.number_value() &&
         a.bool_value() == b.bool_value();
}

void AddValue(const Value& value, size_t most, std::vector<Value>* values) {
  const bool known =
      std::any_of(values->begin(), values->end(),
                  [&](const Value& one) { return Same(one, value); });
  if (!known && values->size() < most) values->push_back(value);
}

// A value that a field of this name may have, and values of other types. A
// function that reads the field as what it is not mostly fails, which is an
// answer, too.
std::vector<Value> Plausible(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  const auto ends = [&lower](std::initializer_list<absl::string_view> all) {
    return std::any_of(all.begin(), all.end(), [&](absl::string_view one) {
      return absl::EndsWith(lower, one);
    });
  };
  if (ends({"time", "timestamp", "date", "updated", "checked"})) {
    return {Text(kTime), Number(1767225600)};
  }
  if (ends({"count", "replicas", "number", "size", "port", "generation",
            "percent", "total"})) {
    return {Number(3), Text("3")};
  }
  if (ends({"ready", "enabled", "paused", "available", "synced", "deleted"}) ||
      absl::StartsWith(name, "is")) {
    return {Boolean(true), Text("True")};
  }
  if (ends({"arn"})) return {Text("arn:aws:iam::123456789012:role/probe")};
  if (ends({"ip", "address"})) return {Text("10.0.0.7")};
  if (ends({"cidr", "cidrblock"})) return {Text("10.0.0.0/16")};
  if (ends({"url", "endpoint"})) return {Text("https://probe.example.org")};
  return {Text("probe-0a1b2c3d"), Number(7), Boolean(true)};
}

const Value* Find(const Struct& object, absl::string_view key) {
  const auto found = object.fields().find(std::string(key));
  return found == object.fields().end() ? nullptr : &found->second;
}

// Words of languages, or words for values that are no leaves.
bool IsName(const std::string& name) {
  static const auto* const not_names = new std::set<std::string>{
      "and",      "any",      "apiVersion", "composite", "conditions",
      "context",  "default",  "define",     "desired",   "dict",
      "dig",      "else",     "end",        "eq",        "false",
      "for",      "get",      "Get",        "gt",        "if",
      "import",   "in",       "index",      "input",     "items",
      "kind",     "len",      "list",       "lt",        "metadata",
      "ne",       "not",      "observed",   "option",    "or",
      "params",   "print",    "printf",     "quote",     "range",
      "required", "resource", "Resource",   "resources", "return",
      "self",     "spec",     "status",     "template",  "toYaml",
      "true",     "with"};
  return not_names->count(name) == 0;
}

struct Object {
  std::string mask;
  std::vector<Struct> each;  // of the requests that have it
};

std::vector<Object> ObjectsOf(const std::vector<RunFunctionRequest>& requests) {
  std::map<std::string, Object> objects;
  for (RunFunctionRequest request : requests) {
    ForEachObject(&request, [&](Struct* object, const std::string& mask,
                                const std::string& /*path*/) {
      if (mask == "context") return;
      objects[mask].mask = mask;
      objects[mask].each.push_back(*object);
    });
  }
  std::vector<Object> all;
  for (auto& one : objects) all.push_back(std::move(one.second));
  // Composed resources first: they become ready one by one.
  std::stable_partition(all.begin(), all.end(), [](const Object& one) {
    return absl::StartsWith(one.mask, "observed.resources.");
  });
  return all;
}

// The objects in the object below `path`, itself among them; not those in
// lists.
void AddContainers(const Struct& object, const RelativePath& path,
                   std::set<RelativePath>* containers) {
  containers->insert(path);
  for (const auto& [key, value] : object.fields()) {
    if (!value.has_struct_value()) continue;
    RelativePath below = path;
    below.emplace_back(key);
    AddContainers(value.struct_value(), below, containers);
  }
}

// Whether `path` leads below `top`.
bool IsBelow(const RelativePath& path, const RelativePath& top) {
  return path.size() > top.size() &&
         std::equal(top.begin(), top.end(), path.begin());
}

// Adds to the list; what is at one place stays together, up to kMostLikely
// values.
class List {
 public:
  void Add(Addition addition) {
    const auto [at, added] = numbers_.try_emplace(
        std::make_pair(addition.object, addition.path), all_.size());
    if (added) {
      all_.push_back(std::move(addition));
      return;
    }
    for (const Value& value : addition.values) {
      AddValue(value, kMostLikely, &all_[at->second].values);
    }
  }
  // Without those above others that are set with them: one would hide the
  // others.
  std::vector<Addition> Take() {
    std::vector<Addition> kept;
    for (const Addition& one : all_) {
      if (!Hides(one)) kept.push_back(one);
    }
    return kept;
  }

 private:
  // Guesses are set after all others.
  bool Hides(const Addition& one) const {
    for (auto next = numbers_.upper_bound({one.object, one.path});
         next != numbers_.end() && next->first.first == one.object &&
         IsBelow(next->first.second, one.path);
         ++next) {
      if (one.guessed || !all_[next->second].guessed) return true;
    }
    return false;
  }

  std::map<std::pair<std::string, RelativePath>, size_t> numbers_;
  std::vector<Addition> all_;
};

// The paths in the input that start at `status`, `spec` or `metadata`.
struct Spelled {
  std::vector<std::pair<RelativePath, std::vector<Value>>> paths;
  std::vector<std::pair<std::string, std::vector<Value>>> names;
};

Spelled SpelledIn(const std::vector<RunFunctionRequest>& requests) {
  Spelled spelled;
  std::map<std::string, size_t> names;
  std::set<RelativePath> paths;
  for (const RunFunctionRequest& request : requests) {
    for (const SpelledPath& path : SpelledPaths(request.input())) {
      const auto from = std::find_if(
          path.names.begin(), path.names.end(), [](const std::string& name) {
            return name == "status" || name == "spec" || name == "metadata";
          });
      if (from != path.names.end() && path.names.end() - from > 1) {
        RelativePath relative(from, path.names.end());
        if (paths.insert(relative).second) {
          spelled.paths.emplace_back(std::move(relative), path.values);
        }
      }
      const std::string& last = path.names.back();
      if (!IsName(last)) continue;
      const auto [at, added] = names.try_emplace(last, spelled.names.size());
      if (added) {
        if (spelled.names.size() >= kMostNames) {
          names.erase(at);
          continue;
        }
        spelled.names.push_back({last, {}});
      }
      for (const Value& value : path.values) {
        AddValue(value, kMostLikely, &spelled.names[at->second].second);
      }
    }
  }
  return spelled;
}

// Values that it is compared with come first, then those that fit its name.
std::vector<Value> ValuesFor(absl::string_view name,
                             const std::vector<Value>& compared) {
  std::vector<Value> values = Plausible(name);
  values.insert(values.begin() + 1, compared.begin(), compared.end());
  if (values.size() > kMostLikely) values.resize(kMostLikely);
  return values;
}

void AddWellKnown(const Object& object, List* list) {
  const auto add = [&](RelativePath path, std::vector<Value> values) {
    list->Add({object.mask, std::move(path), std::move(values), false});
  };
  add({"metadata", "deletionTimestamp"}, {Text(kTime)});
  add({"metadata", "annotations", "crossplane.io/external-name"},
      {Text("probe-0a1b2c3d")});
  add({"metadata", "annotations", "crossplane.io/paused"}, {Text("true")});
}

// Fields that are there, which the input compares with something.
void AddCompared(const Struct& object, const std::string& mask,
                 const std::map<std::string, std::vector<Value>>& compared,
                 RelativePath* path, List* list) {
  const auto value_at = [&](const Value& value, const auto& self) -> void {
    if (value.has_struct_value()) {
      AddCompared(value.struct_value(), mask, compared, path, list);
    } else if (value.has_list_value()) {
      path->emplace_back(absl::nullopt);
      for (const Value& one : value.list_value().values()) self(one, self);
      path->pop_back();
    } else if (!path->empty() && path->back().has_value()) {
      const auto found = compared.find(*path->back());
      if (found != compared.end()) {
        list->Add({mask, *path, found->second, false});
      }
    }
  };
  for (const auto& [key, value] : object.fields()) {
    path->emplace_back(key);
    value_at(value, value_at);
    path->pop_back();
  }
}

bool IsOfKind(const Struct& schema, const Object& object) {
  const Value* const kinds = Find(schema, "x-kubernetes-group-version-kind");
  if (kinds == nullptr || !kinds->has_list_value()) return true;
  const Value* const kind = Find(object.each[0], "kind");
  const Value* const version = Find(object.each[0], "apiVersion");
  if (kind == nullptr || version == nullptr) return false;
  for (const Value& one : kinds->list_value().values()) {
    const auto text = [&one](absl::string_view key) {
      const Value* const found = Find(one.struct_value(), key);
      return found == nullptr ? std::string() : found->string_value();
    };
    const std::string group = text("group");
    if (text("kind") == kind->string_value() &&
        absl::StrCat(group, group.empty() ? "" : "/", text("version")) ==
            version->string_value()) {
      return true;
    }
  }
  return false;
}

// Leaves of the schema below `path`.
void AddOfSchema(const Struct& schema, const std::string& mask, int depth,
                 RelativePath* path, List* list) {
  const Value* const properties = Find(schema, "properties");
  if (properties == nullptr || depth > kDeepestSchema) return;
  for (const auto& [name, value] : properties->struct_value().fields()) {
    if (path->empty() && name != "spec" && name != "status") continue;
    if (!value.has_struct_value()) continue;
    const Struct& property = value.struct_value();
    const Value* const type = Find(property, "type");
    const std::string kind = type == nullptr ? "" : type->string_value();
    path->emplace_back(name);
    std::vector<Value> values;
    if (const Value* const allowed = Find(property, "enum")) {
      for (const Value& one : allowed->list_value().values()) {
        if (IsLeaf(one)) AddValue(one, kMostLikely, &values);
      }
    }
    if (kind == "integer" || kind == "number") {
      AddValue(Number(3), kMostLikely, &values);
    } else if (kind == "boolean") {
      AddValue(Boolean(true), kMostLikely, &values);
      AddValue(Boolean(false), kMostLikely, &values);
    } else if (kind == "string") {
      const std::vector<Value> likely = Plausible(name);
      AddValue(likely[0].has_string_value() ? likely[0] : Text("probe"),
               kMostLikely, &values);
    }
    if (!values.empty()) {
      list->Add({mask, *path, std::move(values), false});
    } else {
      AddOfSchema(property, mask, depth + 1, path, list);
    }
    path->pop_back();
  }
}

void AddGuesses(const std::vector<Object>& objects, const Spelled& spelled,
                List* list) {
  size_t left = kMostGuesses;
  for (const std::string section : {"status", "metadata", "spec"}) {
    const RelativePath top(1, section);
    for (const Object& object : objects) {
      std::set<RelativePath> containers;
      for (const Struct& one : object.each) {
        const Value* const found = Find(one, section);
        if (found != nullptr && found->has_struct_value()) {
          AddContainers(found->struct_value(), top, &containers);
        } else if (found == nullptr) {
          containers.insert(top);
        }
      }
      // The input may build a path step by step: `at := status.atProvider`.
      for (const auto& [path, values] : spelled.paths) {
        if (path[0] == section)
          containers.insert({path.begin(), path.end() - 1});
      }
      for (const RelativePath& container : containers) {
        const bool managed = container.size() > 1 &&
                             container[1] == std::string("managedFields");
        if (managed) continue;
        for (const auto& [name, values] : spelled.names) {
          if (left == 0) return;
          --left;
          RelativePath path = container;
          path.emplace_back(name);
          list->Add(
              {object.mask, std::move(path), ValuesFor(name, values), true});
        }
      }
    }
  }
}

// The element of the list of conditions that has this type.
Struct* ConditionOf(google::protobuf::ListValue* list,
                    const std::string& type) {
  for (Value& one : *list->mutable_values()) {
    const Value* const found = Find(one.struct_value(), "type");
    if (found != nullptr && found->string_value() == type) {
      return one.mutable_struct_value();
    }
  }
  Struct* const added = list->add_values()->mutable_struct_value();
  auto& fields = *added->mutable_fields();
  fields["type"] = Text(type);
  fields["reason"] = Text(type == "Ready" ? "Available" : "ReconcileSuccess");
  fields["lastTransitionTime"] = Text(kTime);
  return added;
}

// Kubernetes' own kinds are ready by their numbers, revisions and phases.
void MakeKindReady(const Struct& object, Struct* status) {
  const Value* const kind = Find(object, "kind");
  const std::string name = kind == nullptr ? "" : kind->string_value();
  auto& fields = *status->mutable_fields();
  if (name == "Deployment" || name == "StatefulSet" || name == "ReplicaSet" ||
      name == "DaemonSet") {
    double replicas = 1;
    if (const Value* const spec = Find(object, "spec")) {
      const Value* const given = Find(spec->struct_value(), "replicas");
      if (given != nullptr) replicas = given->number_value();
    }
    for (const char* count :
         {"availableReplicas", "currentNumberScheduled", "currentReplicas",
          "desiredNumberScheduled", "numberAvailable", "numberReady",
          "readyReplicas", "replicas", "updatedNumberScheduled",
          "updatedReplicas"}) {
      fields[count] = Number(replicas);
    }
    if (Find(*status, "currentRevision") == nullptr) {
      fields["currentRevision"] = Text("probe-1");
    }
    fields["updateRevision"] = fields["currentRevision"];
  }
  const std::pair<const char*, const char*> phases[] = {
      {"Namespace", "Active"},
      {"PersistentVolume", "Bound"},
      {"PersistentVolumeClaim", "Bound"},
      {"Pod", "Running"}};
  for (const auto& [of, phase] : phases) {
    if (name == of) fields["phase"] = Text(phase);
  }
}

}  // namespace

void SeenValues::Add(RunFunctionRequest request) {
  for (const auto& one : request.observed().resources()) {
    resources_.insert(one.first);
  }
  ForEachObject(&request, [&](Struct* object, const std::string& mask,
                              const std::string& /*path*/) {
    RelativePath path;
    Value value;
    value.mutable_struct_value()->Swap(object);
    AddBelow(value, mask, &path);
  });
}

void SeenValues::AddBelow(const Value& value, const std::string& object,
                          RelativePath* path) {
  if (value.has_struct_value()) {
    for (const auto& [key, below] : value.struct_value().fields()) {
      if (key == "managedFields") continue;
      path->emplace_back(key);
      AddBelow(below, object, path);
      path->pop_back();
    }
  } else if (value.has_list_value()) {
    path->emplace_back(absl::nullopt);
    for (const Value& one : value.list_value().values()) {
      AddBelow(one, object, path);
    }
    path->pop_back();
  } else if (IsLeaf(value)) {
    const auto found = values_.find({object, *path});
    if (found != values_.end()) {
      AddValue(value, kMostSeenValues, &found->second);
    } else if (values_.size() < kMostSeen) {
      values_[{object, *path}].push_back(value);
    }
  }
}

std::vector<Addition> SeenValues::Additions() const {
  std::vector<Addition> all;
  for (const auto& [place, values] : values_) {
    all.push_back({place.first, place.second, values, false});
  }
  return all;
}

std::vector<Addition> AdditionsFor(
    const std::vector<RunFunctionRequest>& requests,
    const Knowledge& knowledge) {
  List list;
  for (Addition& one : knowledge.seen.Additions()) list.Add(std::move(one));
  const std::vector<Object> objects = ObjectsOf(requests);
  const Spelled spelled = SpelledIn(requests);
  std::map<std::string, std::vector<Value>> compared;
  for (const auto& [name, values] : spelled.names) {
    if (!values.empty()) compared[name] = values;
  }
  std::vector<Struct> schemas = knowledge.schemas;
  for (const RunFunctionRequest& request : requests) {
    for (const auto& one : request.required_schemas()) {
      schemas.push_back(one.second.openapi_v3());
    }
  }
  for (const Object& object : objects) {
    for (const Struct& one : object.each) {
      RelativePath path;
      AddCompared(one, object.mask, compared, &path, &list);
    }
    for (const auto& [path, values] : spelled.paths) {
      list.Add({object.mask, path, ValuesFor(*path.back(), values), false});
    }
    for (const Struct& schema : schemas) {
      RelativePath path;
      if (IsOfKind(schema, object)) {
        AddOfSchema(schema, object.mask, 0, &path, &list);
      }
    }
    AddWellKnown(object, &list);
  }
  AddGuesses(objects, spelled, &list);
  return list.Take();
}

RunFunctionRequest MadeReady(RunFunctionRequest request) {
  ForEachObject(&request, [](Struct* object, const std::string& mask,
                             const std::string& /*path*/) {
    if (!absl::StartsWith(mask, "observed.")) return;
    auto& status = (*object->mutable_fields())["status"];
    if (!status.has_struct_value() &&
        status.kind_case() != Value::KIND_NOT_SET) {
      return;
    }
    auto& conditions =
        (*status.mutable_struct_value()->mutable_fields())["conditions"];
    if (!conditions.has_list_value() &&
        conditions.kind_case() != Value::KIND_NOT_SET) {
      return;
    }
    const Value* const metadata = Find(*object, "metadata");
    const Value* const generation =
        metadata == nullptr ? nullptr
                            : Find(metadata->struct_value(), "generation");
    for (const char* type : {"Synced", "Ready", "Available"}) {
      auto& fields =
          *ConditionOf(conditions.mutable_list_value(), type)->mutable_fields();
      fields["status"] = Text("True");
      if (generation != nullptr) fields["observedGeneration"] = *generation;
    }
    auto& fields = *status.mutable_struct_value()->mutable_fields();
    if (generation != nullptr) fields["observedGeneration"] = *generation;
    MakeKindReady(*object, status.mutable_struct_value());
  });
  return request;
}

}  // namespace fncache::runner::probe
