// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/changed_fields.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "text/differences.h"

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
    text::DifferenceVisitor visitor;
    visitor.below = [](const std::string& path, const std::string& key) {
      return path.empty() ? key : absl::StrCat(path, ".", key);
    };
    visitor.into_uneven_lists = false;
    visitor.differs = [this, &what](const std::string& path, const Value*,
                                    const Value*) {
      Add(absl::StrCat(what, ": ", path));
    };
    text::VisitDifferences("", before, after, visitor);
  }
  void Add(std::string text) {
    if (found_.size() < most_) found_.push_back(std::move(text));
  }
  std::vector<std::string> Take() { return std::move(found_); }

 private:
  const size_t most_;
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
  const auto& a = before.desired.resources();
  const auto& b = after.desired.resources();
  size_t gone = 0;
  size_t added = 0;
  text::ForEachKey(a, b,
                   [&](const std::string&, const fn::Resource* old,
                       const fn::Resource* now) {
                     gone += now == nullptr ? 1 : 0;
                     added += old == nullptr ? 1 : 0;
                   });
  // Names that replace others may differ from composite to composite.
  const bool renamed = gone > 0 && added > 0;
  if (renamed) differences.Add("the names of the desired resources");
  text::ForEachKey(
      a, b,
      [&](const std::string& name, const fn::Resource* old,
          const fn::Resource* now) {
        const std::string what = absl::StrCat("resource ", name);
        if (old == nullptr || now == nullptr) {
          if (!renamed) {
            differences.Add(absl::StrCat(what, ": whether it is desired"));
          }
          return;
        }
        differences.Compare(what, old->resource(), now->resource());
        if (old->ready() != now->ready()) {
          differences.Add(absl::StrCat(what, ": whether it is ready"));
        }
      });
  text::ForEachKey(ByType(before.conditions), ByType(after.conditions),
                   [&](const std::string& type, const std::string* old,
                       const std::string* now) {
                     if (old == nullptr || now == nullptr || *old != *now) {
                       differences.Add(absl::StrCat("condition ", type));
                     }
                   });
  return differences.Take();
}

}  // namespace fncache::runner::load::model
