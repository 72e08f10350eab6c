// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/changed_fields.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "runner/text/object.h"

namespace fncache::runner::load::model {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

class Differences {
 public:
  explicit Differences(size_t most) : most_(most) {}

  void Compare(const std::string& what, const Struct& before,
               const Struct& after) {
    what_ = what;
    CompareMaps(before, after, "");
  }
  void Add(std::string text) {
    if (found_.size() < most_) found_.push_back(std::move(text));
  }
  std::vector<std::string> Take() { return std::move(found_); }

 private:
  void CompareMaps(const Struct& before, const Struct& after,
                   const std::string& path) {
    std::set<std::string> names;
    for (const Struct* const one : {&before, &after}) {
      for (const auto& [name, value] : one->fields()) names.insert(name);
    }
    for (const std::string& name : names) {
      const std::string at =
          path.empty() ? name : absl::StrCat(path, ".", name);
      const auto a = before.fields().find(name);
      const auto b = after.fields().find(name);
      if (a == before.fields().end() || b == after.fields().end()) {
        AddPath(at);
      } else {
        CompareValues(a->second, b->second, at);
      }
    }
  }
  void CompareValues(const Value& before, const Value& after,
                     const std::string& path) {
    if (text::Equal(before, after)) return;
    if (before.has_struct_value() && after.has_struct_value()) {
      return CompareMaps(before.struct_value(), after.struct_value(), path);
    }
    const auto& a = before.list_value().values();
    const auto& b = after.list_value().values();
    if (!before.has_list_value() || !after.has_list_value() ||
        a.size() != b.size()) {
      return AddPath(path);
    }
    for (int i = 0; i < a.size(); ++i) {
      CompareValues(a[i], b[i], absl::StrCat(path, "[", i, "]"));
    }
  }
  void AddPath(const std::string& path) {
    Add(absl::StrCat(what_, ": ", path));
  }

  const size_t most_;
  std::string what_;
  std::vector<std::string> found_;
};

std::map<std::string, std::string> ByType(
    const std::vector<fn::Condition>& conditions) {
  std::map<std::string, std::string> all;
  for (const fn::Condition& condition : conditions) {
    all[condition.type()] = condition.SerializeAsString();
  }
  return all;
}

}  // namespace

std::vector<std::string> ChangedFields(const Wanted& before,
                                       const Wanted& after, size_t most) {
  Differences differences(most);
  differences.Compare("composite", before.desired.composite().resource(),
                      after.desired.composite().resource());
  std::set<std::string> names;
  for (const Wanted* const one : {&before, &after}) {
    for (const auto& [name, resource] : one->desired.resources()) {
      names.insert(name);
    }
  }
  const auto& a = before.desired.resources();
  const auto& b = after.desired.resources();
  size_t gone = 0;
  size_t added = 0;
  for (const std::string& name : names) {
    gone += b.count(name) == 0 ? 1 : 0;
    added += a.count(name) == 0 ? 1 : 0;
  }
  // Names that replace others may differ from composite to composite.
  const bool renamed = gone > 0 && added > 0;
  if (renamed) differences.Add("the names of the desired resources");
  for (const std::string& name : names) {
    const auto old = a.find(name);
    const auto now = b.find(name);
    const std::string what = absl::StrCat("resource ", name);
    if (old == a.end() || now == b.end()) {
      if (!renamed) {
        differences.Add(absl::StrCat(what, ": whether it is desired"));
      }
      continue;
    }
    differences.Compare(what, old->second.resource(), now->second.resource());
    if (old->second.ready() != now->second.ready()) {
      differences.Add(absl::StrCat(what, ": whether it is ready"));
    }
  }
  const auto old = ByType(before.conditions);
  const auto now = ByType(after.conditions);
  std::set<std::string> types;
  for (const auto* const one : {&old, &now}) {
    for (const auto& [type, bytes] : *one) types.insert(type);
  }
  for (const std::string& type : types) {
    const auto was = old.find(type);
    const auto is = now.find(type);
    if (was == old.end() || is == now.end() || was->second != is->second) {
      differences.Add(absl::StrCat("condition ", type));
    }
  }
  return differences.Take();
}

}  // namespace fncache::runner::load::model
