// SPDX-License-Identifier: Apache-2.0
// The most important rule, for random functions on random observed states: what
// exists is never left out because a reference was lost.
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sdk/compose/caller.h"
#include "text/object.h"

namespace fncache::sdk {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

std::string NameOf(int i) { return absl::StrCat("r", i); }

// A field of a resource: a constant, or made of the status of others.
struct Field {
  enum Form {
    kConstant,
    kReference,
    kComputed,
    kInList,
    kInObject,
    kMerged,
    kCopied,
    kErased,
  };
  std::vector<std::string> path;  // below spec
  Form form = kConstant;
  std::vector<int> sources;
};

// A function: which resources it names, and what their fields are made of.
struct RandomFunction {
  explicit RandomFunction(uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&](int end) {
      return static_cast<int>(random() % end);
    };
    resources.resize(2 + below(29));
    for (int i = 0; i < static_cast<int>(resources.size()); ++i) {
      for (int n = 1 + below(4); n > 0; --n) {
        Field field;
        for (int depth = below(4); depth > 0; --depth) {
          field.path.push_back(absl::StrCat("o", below(2)));
        }
        field.path.push_back(absl::StrCat("f", n));
        if (i > 0) field.form = static_cast<Field::Form>(below(8));
        if (field.form != Field::kConstant) {
          for (int k = 1 + below(3); k > 0; --k) {
            field.sources.push_back(below(i));
          }
        }
        resources[i].push_back(field);
      }
      depends_on.push_back(i > 0 && below(5) == 0 ? below(i) : -1);
      merged.push_back(i > 0 && below(2) == 0 ? below(i) : -1);
    }
  }

  void operator()(fn::Context& ctx) const {
    const auto status_of = [&](int i, const char* field = "id") {
      return ctx.existing(NameOf(i)).observed()["status"]["atProvider"][field];
    };
    const fn::Value absent = ctx.composite().observed()["spec"]["absent"];
    for (size_t i = 0; i < resources.size(); ++i) {
      auto resource = ctx.resource(NameOf(i), "v1", "A");
      for (const Field& field : resources[i]) {
        SetAt(resource["spec"], field, 0, status_of, absent);
      }
      if (merged[i] >= 0) {
        resource["spec"]["round"]["now"] = round;
        resource["spec"]["round"].merge(status_of(merged[i], "tags"));
      }
      if (depends_on[i] >= 0) {
        resource.depends_on(ctx.existing(NameOf(depends_on[i])));
      }
      ctx.composite()["status"]["ids"][NameOf(i)] = status_of(i);
    }
    ctx.auto_ready();
  }

  std::vector<std::vector<Field>> resources;
  std::vector<int> depends_on;
  // The resource whose status is merged into the object that has the round.
  std::vector<int> merged;
  int round = 0;

 private:
  template <class S>
  static void SetAt(fn::Value value, const Field& field, size_t depth,
                    S status_of, const fn::Value& absent) {
    if (depth == field.path.size()) {
      return Set(value, field, status_of, absent);
    }
    SetAt(value[field.path[depth]], field, depth + 1, status_of, absent);
  }

  template <class S>
  static void Set(fn::Value at, const Field& field, S status_of,
                  const fn::Value& absent) {
    switch (field.form) {
      case Field::kConstant:
        at["constant"] = "constant";
        at["list"].add(absent);
        at["other"] = {absent};
        at["objects"].add()["field"] = absent;
        return;
      case Field::kReference:
        at = status_of(field.sources[0]);
        return;
      case Field::kComputed: {
        fn::Observable<std::string> all = "all";
        for (const int source : field.sources) {
          all = fn::Concat(all, "-",
                           status_of(source).template as<std::string>());
        }
        at = all;
        return;
      }
      case Field::kInList:
        for (const int source : field.sources) {
          at.add("constant");
          at.add()["deep"]["id"] = status_of(source);
          at.add()["field"] = absent;
        }
        return;
      case Field::kInObject: {
        fn::Value object;
        object["constant"] = 1;
        object["id"] = status_of(field.sources[0]);
        at["object"] = object;
        return;
      }
      case Field::kMerged: {
        fn::Value object;
        object["id"]["deep"] = status_of(field.sources[0]);
        at.merge(object);
        at["k"] = 1;
        at["k"].clear();
        for (const int source : field.sources) {
          at.merge(status_of(source, "tags"));
        }
        at.merge(fn::Yaml("{more: 1, nested: {more: 1}}"));
        return;
      }
      case Field::kCopied:
        at["copy"] = status_of(field.sources[0], "tags");
        at["list"] = status_of(field.sources[0], "list");
        at["more"] = status_of(field.sources[0], "tags");
        at["more"].merge(fn::Yaml("{more: 1}"));
        at["more"]["elements"].add("more");
        return;
      case Field::kErased:
        at["text"] = status_of(field.sources[0]);
        at["text"]["below"].clear();
        at["list"] = status_of(field.sources[0], "list");
        at["list"].erase("below");
        at["list"][0].clear();
        at["object"] = status_of(field.sources[0], "tags");
        at["object"]["nested"]["k"].clear();
        return;
    }
  }
};

// Paths of all leaves; a list is one.
void Leaves(const Struct& object, const std::string& above,
            std::set<std::string>* paths) {
  for (const auto& [key, value] : object.fields()) {
    const std::string path = above + "." + key;
    if (value.has_struct_value()) {
      Leaves(value.struct_value(), path, paths);
      if (value.struct_value().fields().empty()) paths->insert(path + ".{}");
    } else if (value.has_null_value()) {
      paths->insert(path + "=null");
    } else {
      paths->insert(path);
      const auto& list = value.list_value().values();
      if (value.has_list_value() && list.empty()) paths->insert(path + ".[]");
      for (const Value& element : list) {
        if (element.has_null_value()) paths->insert(path + "=null");
        if (element.has_struct_value() &&
            element.struct_value().fields().empty()) {
          paths->insert(path + ".{}");
        }
      }
    }
  }
}

std::set<std::string> Leaves(const Struct& object) {
  std::set<std::string> paths;
  Leaves(object, "", &paths);
  return paths;
}

// The control plane: applies what is desired, and is a provider that fills in
// status and defaults.
class World {
 public:
  explicit World(RandomFunction* function) : function_(*function) {
    call_.options.graph = fn::Graph::kNever;
  }

  // A call, whose response is checked and applied.
  void Reconcile() {
    ++function_.round;
    call_(std::cref(function_));
    ASSERT_THAT(Severities(),
                testing::Not(testing::Contains(v1::SEVERITY_FATAL)));
    const v1::RunFunctionResponse first = call_.response;
    // Another order of the maps.
    const v1::RunFunctionRequest copy = call_.request;
    call_.request = copy;
    call_(std::cref(function_));
    ASSERT_TRUE(Same(call_.response, first));

    const auto& desired = first.desired().resources();
    auto& observed = *call_.request.mutable_observed()->mutable_resources();
    for (const auto& [name, resource] : observed) {
      ASSERT_TRUE(desired.count(name)) << name;
      const std::set<std::string> now = Leaves(desired.at(name).resource());
      const std::set<std::string> there = Leaves(resource.resource());
      for (const std::string& path : applied_[name]) {
        ASSERT_TRUE(!there.count(path) || now.count(path)) << name << path;
      }
    }
    for (const auto& [name, resource] : desired) {
      // A field that this call sets is emitted, whatever is lost beside it.
      const Value* const round =
          text::Find(resource.resource(), {"spec", "round", "now"});
      ASSERT_TRUE(round == nullptr || round->number_value() == function_.round);
      applied_[name] = Leaves(resource.resource());
      const auto allowed = shape_.find(name);
      if (allowed != shape_.end()) {
        for (const std::string& path : applied_[name]) {
          ASSERT_TRUE(allowed->second.count(path)) << name << path;
        }
      }
      Struct& object = *observed[name].mutable_resource();
      const Value status = object.fields().count("status")
                               ? object.fields().at("status")
                               : Value();
      object = resource.resource();
      text::SetText(&object, {"spec", "default"}, "of the provider");
      if (status.has_struct_value()) {
        (*object.mutable_fields())["status"] = status;
      }
    }
  }

  // Fills in the status of what exists.
  void Provide() {
    static const Struct filled = FromYaml(
        "{status: {atProvider: {id: the-id, tags: {k: v, elements: [1], "
        "nested: {k: v, l: w}}, list: [1, 2]}, conditions: [{type: Ready, "
        "status: 'True'}, {type: Synced, status: 'True'}]}}");
    auto& observed = *call_.request.mutable_observed()->mutable_resources();
    for (auto& [name, resource] : observed) {
      (*resource.mutable_resource()->mutable_fields())["status"] =
          filled.fields().at("status");
    }
  }

  // Some status is lost, some resources change.
  void Disturb(std::mt19937* random) {
    static const Struct kNulls = FromYaml(
        "{status: {atProvider: {id: null, tags: {k: null, elements: [null], "
        "nested: {k: null, l: w}}, list: [null, 2]}}}");
    auto& observed = *call_.request.mutable_observed()->mutable_resources();
    for (auto& [name, resource] : observed) {
      auto& fields = *resource.mutable_resource()->mutable_fields();
      switch ((*random)() % 7) {
        case 0:
          fields.erase("status");
          break;
        case 1:
          fields["status"].mutable_struct_value()->clear_fields();
          break;
        case 2:
          fields["status"].mutable_struct_value()->mutable_fields()->erase(
              "atProvider");
          break;
        case 3:
          fields.erase("spec");
          break;
        case 4:
          fields["status"] = kNulls.fields().at("status");
          break;
        default:
          break;
      }
    }
  }

  size_t emitted() const { return call_.response.desired().resources_size(); }

  // From now on nothing may be emitted that this response does not have.
  void KeepShape() {
    for (const auto& [name, resource] : call_.response.desired().resources()) {
      shape_[name] = Leaves(resource.resource());
      for (const std::string& path : shape_[name]) {
        ASSERT_THAT(
            path, testing::Not(testing::AnyOf(
                      testing::EndsWith("=null"), testing::EndsWith("{}"),
                      testing::EndsWith("[]"), testing::EndsWith(".default"))));
      }
    }
  }

 private:
  std::vector<v1::Severity> Severities() const {
    std::vector<v1::Severity> all;
    for (const auto& result : call_.response.results()) {
      all.push_back(result.severity());
    }
    return all;
  }

  RandomFunction& function_;
  Caller call_;
  std::map<std::string, std::set<std::string>> applied_, shape_;
};

TEST(DeletionProperty, NothingThatExistsIsLeftOut) {
  for (uint32_t seed = 0; seed < 50 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomFunction function(seed);
    std::mt19937 random(seed);
    World world(&function);
    // Everything is emitted once the provider has filled in all status.
    for (size_t i = 0; i <= function.resources.size(); ++i) {
      world.Reconcile();
      world.Provide();
      if (world.emitted() == function.resources.size()) break;
    }
    ASSERT_EQ(world.emitted(), function.resources.size());
    world.KeepShape();
    for (int i = 0; i < 6; ++i) {
      world.Disturb(&random);
      world.Reconcile();
      ASSERT_EQ(world.emitted(), function.resources.size());
      if (random() % 2 == 0) world.Provide();
    }
    // The same from nothing, with losses meanwhile.
    World other(&function);
    for (int i = 0; i < 6; ++i) {
      other.Reconcile();
      if (random() % 2 == 0) other.Provide();
      other.Disturb(&random);
    }
    for (size_t i = 0; i <= function.resources.size(); ++i) {
      other.Provide();
      other.Reconcile();
      if (other.emitted() == function.resources.size()) break;
    }
    ASSERT_EQ(other.emitted(), function.resources.size());
  }
}

}  // namespace
}  // namespace fncache::sdk
