// SPDX-License-Identifier: Apache-2.0
#include "tests/runner/function/random_template.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/field_path.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/function_v1.pb.h"

// extra_resources is deprecated, and some requests have it.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::runner::function {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

using Texts = std::vector<std::string>;

// Few names, so that the sections of a request often agree on one.
const Texts kResources = {"a",   "bucket-0", "bucket-1",  "bucket-2",
                          "net", "x.y",      "odd \"q\"", "7"};
const Texts kRequired = {"zones", "nets", "e.f"};
const Texts kKeys = {"region", "count", "zones", "tags", "size", "on",
                     "arn",    "deep",  "k.x",   "a b",  "0",    "name"};
const Texts kTexts = {"eu-1", "",      "large",       "bucket",
                      "True", "${not", "caf\xc3\xa9", "10"};

// Draws are statements of their own: compilers evaluate arguments in any order.
class Generator {
 public:
  explicit Generator(uint64_t seed) : engine_(seed * 2654435761u + 17) {}

  fn::RunFunctionRequest Make() {
    if (!OneIn(10)) request_.mutable_meta()->set_tag(absl::StrCat(Below(1000)));
    if (OneIn(2)) {
      for (int i = 1; i <= 5; ++i) {
        request_.mutable_meta()->add_capabilities(
            static_cast<fn::Capability>(i));
      }
    }
    if (!OneIn(20)) Observed(request_.mutable_observed());
    if (!OneIn(3)) Desired(request_.mutable_desired());
    if (!OneIn(3)) Object(2, request_.mutable_context());
    Required();
    if (OneIn(2)) {
      auto* data = (*request_.mutable_credentials())["cloud"]
                       .mutable_credential_data()
                       ->mutable_data();
      Bytes(data);
    }
    Collect();
    if (!OneIn(40)) Input(request_.mutable_input());
    return std::move(request_);
  }

 private:
  size_t Below(size_t n) { return engine_() % n; }
  bool OneIn(size_t n) { return Below(n) == 0; }
  const std::string& OneOf(const Texts& texts) {
    return texts[Below(texts.size())];
  }

  // --- The request's content.

  void Any(int depth, Value* value) {
    switch (Below(depth > 0 ? 9 : 6)) {
      case 0:
        value->set_number_value(static_cast<double>(Below(4)));
        break;
      case 1: {
        const double numbers[] = {-1, 0.1, 1e20, -0.0, 12345678901, 2.5e-7};
        value->set_number_value(numbers[Below(6)]);
        break;
      }
      case 2:
        value->set_bool_value(OneIn(2));
        break;
      case 3:
        if (OneIn(3)) {
          value->set_null_value(google::protobuf::NULL_VALUE);
          break;
        }
        [[fallthrough]];
      case 4:
      case 5:
        value->set_string_value(OneOf(kTexts));
        break;
      case 6: {
        ListValue* const list = value->mutable_list_value();
        for (size_t n = Below(4); n > 0; --n)
          Any(depth - 1, list->add_values());
        break;
      }
      default:
        Object(depth - 1, value->mutable_struct_value());
    }
  }

  void Object(int depth, Struct* object) {
    for (size_t n = Below(5); n > 0; --n) {
      const std::string& key = OneOf(kKeys);
      Any(depth, &(*object->mutable_fields())[key]);
    }
  }

  template <typename Map>
  void Bytes(Map* bytes) {
    for (const char* const key : {"user", "url", "a.b"}) {
      if (OneIn(2)) (*bytes)[key] = OneIn(12) ? "\xff\xfe" : OneOf(kTexts);
    }
  }

  void Head(const char* kind, Struct* object) {
    auto& fields = *object->mutable_fields();
    if (!OneIn(10)) fields["apiVersion"].set_string_value("example.org/v1");
    if (!OneIn(10)) fields["kind"].set_string_value(kind);
    Struct& metadata = *fields["metadata"].mutable_struct_value();
    (*metadata.mutable_fields())["name"].set_string_value(OneOf(kTexts));
    (*(*metadata.mutable_fields())["annotations"]
          .mutable_struct_value()
          ->mutable_fields())["crossplane.io/external-name"]
        .set_string_value(OneOf(kTexts));
    if (OneIn(6)) {
      Any(2, &fields["spec"]);
    } else {
      Object(3, fields["spec"].mutable_struct_value());
    }
  }

  // A status with conditions, some of them of another form than conditions.
  // Types are unique, as in Kubernetes.
  void Status(Struct* object) {
    Value& status = (*object->mutable_fields())["status"];
    if (OneIn(20)) return Any(1, &status);
    Object(2, status.mutable_struct_value());
    if (OneIn(3)) return;
    Value& conditions =
        (*status.mutable_struct_value()->mutable_fields())["conditions"];
    if (OneIn(10)) return Any(1, &conditions);
    conditions.mutable_list_value();
    bool ready = false;
    for (size_t n = Below(4); n > 0; --n) {
      Value& condition = *conditions.mutable_list_value()->add_values();
      if (OneIn(10)) {
        Any(1, &condition);
        continue;
      }
      auto& fields = *condition.mutable_struct_value()->mutable_fields();
      const bool other = ready || OneIn(3);
      ready = ready || !other;
      fields["type"].set_string_value(other ? "Synced" : "Ready");
      const Texts states = {"True", "True", "False", "Unknown"};
      fields["status"].set_string_value(OneOf(states));
    }
  }

  void Observed(fn::State* state) {
    if (!OneIn(15)) {
      Head("XStore", state->mutable_composite()->mutable_resource());
      if (OneIn(2)) Status(state->mutable_composite()->mutable_resource());
      if (OneIn(2)) {
        Bytes(state->mutable_composite()->mutable_connection_details());
      }
    }
    for (const std::string& name : kResources) {
      if (OneIn(2)) continue;
      fn::Resource& resource = (*state->mutable_resources())[name];
      if (OneIn(20)) continue;
      Head("Bucket", resource.mutable_resource());
      if (!OneIn(4)) Status(resource.mutable_resource());
      if (OneIn(4)) Bytes(resource.mutable_connection_details());
    }
  }

  void Desired(fn::State* state) {
    if (OneIn(2)) {
      fn::Resource& composite = *state->mutable_composite();
      if (OneIn(4)) Head("XStore", composite.mutable_resource());
      if (!OneIn(4)) Status(composite.mutable_resource());
      if (OneIn(2)) Bytes(composite.mutable_connection_details());
      if (OneIn(3)) composite.set_ready(fn::READY_FALSE);
    }
    for (const std::string& name : kResources) {
      if (!OneIn(3)) continue;
      fn::Resource& resource = (*state->mutable_resources())[name];
      Head("Earlier", resource.mutable_resource());
      if (OneIn(4)) Status(resource.mutable_resource());
      if (OneIn(3)) Bytes(resource.mutable_connection_details());
      resource.set_ready(static_cast<fn::Ready>(Below(3)));
      // A field of a later protocol.
      if (OneIn(5)) {
        resource.GetReflection()->MutableUnknownFields(&resource)->AddVarint(
            100, Below(9));
      }
    }
  }

  void Required() {
    for (const std::string& name : kRequired) {
      if (OneIn(4)) continue;
      fn::Resources& found =
          OneIn(12) ? (*request_.mutable_extra_resources())[name]
                    : (*request_.mutable_required_resources())[name];
      for (size_t n = Below(4); n > 0; --n) {
        fn::Resource& item = *found.add_items();
        if (!OneIn(12)) Head("Zone", item.mutable_resource());
        if (OneIn(6)) Bytes(item.mutable_connection_details());
      }
    }
  }

  // --- Paths of the request, sorted.

  void Collect() {
    for (const auto* state : {&request_.observed(), &request_.desired()}) {
      const std::string root =
          state == &request_.observed() ? "observed" : "desired";
      OfResource(state->composite(), root + ".composite");
      for (const std::string& name : kResources) {
        const auto found = state->resources().find(name);
        if (found == state->resources().end()) continue;
        OfResource(found->second, PathBelow(root + ".resources", name));
      }
    }
    for (const std::string& name : kRequired) {
      const auto found = request_.required_resources().find(name);
      if (found == request_.required_resources().end()) continue;
      const std::string items =
          PathBelow("required_resources", name) + ".items";
      lists_.push_back(items);
      for (int i = 0; i < found->second.items_size(); ++i) {
        OfResource(found->second.items(i), absl::StrCat(items, ".", i));
      }
    }
    OfStruct(request_.context(), "context");
    for (const auto& credentials : request_.credentials()) {
      OfBytes(credentials.second.credential_data().data(),
              "credentials.cloud.credential_data.data");
    }
  }

  void OfResource(const fn::Resource& resource, const std::string& path) {
    if (resource.has_resource()) {
      OfStruct(resource.resource(), path + ".resource");
    }
    OfBytes(resource.connection_details(), path + ".connection_details");
  }

  template <typename Map>
  void OfBytes(const Map& bytes, const std::string& path) {
    for (const char* const key : {"user", "url", "a.b"}) {
      if (bytes.count(key) != 0) scalars_.push_back(PathBelow(path, key));
    }
  }

  void OfStruct(const Struct& object, const std::string& path) {
    objects_.push_back(path);
    Texts keys;
    for (const auto& field : object.fields()) keys.push_back(field.first);
    std::sort(keys.begin(), keys.end());
    for (const std::string& key : keys) {
      OfValue(object.fields().at(key), PathBelow(path, key));
    }
  }

  void OfValue(const Value& value, const std::string& path) {
    switch (value.kind_case()) {
      case Value::kStructValue:
        return OfStruct(value.struct_value(), path);
      case Value::kListValue:
        lists_.push_back(path);
        for (int i = 0; i < value.list_value().values_size(); ++i) {
          OfValue(value.list_value().values(i), absl::StrCat(path, ".", i));
        }
        return;
      case Value::kNullValue:
        nulls_.push_back(path);
        return;
      default:
        scalars_.push_back(path);
    }
  }

  // --- The template.

  // A path that no request has, or none at all.
  std::string Nowhere() {
    const Texts paths = {"observed.composite.resource.spec.none",
                         "observed.resources.none.resource.status.arn",
                         "desired.resources.none.resource",
                         "required_resources.none.items.0.resource.x",
                         "required_resources.zones.items.9.resource.x",
                         "required_resources.nets.items",
                         "credentials.none.credential_data.data.x",
                         "context.none",
                         "observed.composite.connection_details.none",
                         "input.spec.none",
                         "observed.composite.resource.spec.region.x.0"};
    return OneOf(paths);
  }

  // An expression; `text`: of a value that can be part of a text.
  std::string Expression(bool text) {
    if (OneIn(150)) return Broken();
    if (indexed_ && OneIn(4)) return "${index}";
    std::string path;
    bool missing = false;
    if (indexed_ && OneIn(6)) {
      path = "observed.resources.bucket-${index}.resource.status.arn";
      missing = true;
    } else if (OneIn(8) || scalars_.empty()) {
      path = Nowhere();
      missing = true;
    } else if (!text && OneIn(8) && !lists_.empty()) {
      path = OneOf(lists_);
    } else if (!text && OneIn(5) && !objects_.empty()) {
      path = OneOf(objects_);
    } else if (OneIn(12) && !nulls_.empty()) {
      path = OneOf(nulls_);
      missing = true;
    } else if (OneIn(25)) {
      path = "input.metadata.name";
      missing = true;
    } else {
      path = OneOf(scalars_);
    }
    std::string fallback;
    if ((missing && !OneIn(40)) || OneIn(4)) {
      const Texts fallbacks = {"|none",  "|",          "|3",
                               "|true",  "|\"q } |\"", " | two words ",
                               "|-1.5e2"};
      fallback = OneOf(fallbacks);
      if (!text && OneIn(12)) fallback = "|null";
    }
    return absl::StrCat("${", path, fallback, "}");
  }

  std::string Broken() {
    const Texts expressions = {"${",
                               "${}",
                               "${observed}",
                               "${observed.composite.spec|d}",
                               "${observed.resources.a.ready|d}",
                               "${nope.x|d}",
                               "${context x}",
                               "${context..x}",
                               "${required_resources.zones.items.x|d}",
                               "${credentials.cloud|d}",
                               "${index}",
                               "${context.none|\"a}",
                               "${meta.tag}",
                               "x${context|null}"};
    return OneOf(expressions);
  }

  // Text that may hold expressions, and is not empty.
  std::string Text() {
    if (OneIn(2)) return OneOf({"eu", "b", "$${index}", "$5", "v1"});
    std::string text = OneOf({"", "r=", "in "});
    for (size_t n = 1 + Below(2); n > 0; --n) text += Expression(true);
    text += OneOf({"!", "-x", "$$"});
    return text;
  }
  const std::string& OneOf(std::initializer_list<const char*> texts) {
    picked_ = *(texts.begin() + Below(texts.size()));
    return picked_;
  }

  void TemplateValue(int depth, Value* value) {
    switch (Below(depth > 0 ? 9 : 6)) {
      case 0:
        Any(0, value);
        if (value->string_value() == "${not") value->set_bool_value(true);
        break;
      case 1:
      case 2:
        value->set_string_value(Expression(false));
        break;
      case 3:
      case 4:
        value->set_string_value(Text());
        break;
      case 5:
        value->set_number_value(static_cast<double>(Below(5)));
        break;
      case 6: {
        ListValue* const list = value->mutable_list_value();
        for (size_t n = Below(4); n > 0; --n) {
          TemplateValue(depth - 1, list->add_values());
        }
        break;
      }
      default:
        TemplateObject(depth - 1, value->mutable_struct_value());
    }
  }

  void TemplateObject(int depth, Struct* object) {
    for (size_t n = Below(5); n > 0; --n) {
      const std::string& key = OneOf(kKeys);
      TemplateValue(depth, &(*object->mutable_fields())[key]);
    }
  }

  void Put(Struct* object, const char* field, const std::string& text) {
    // A fault now and then: a field that is missing, mistyped or misspelled.
    if (OneIn(400)) return;
    Value value;
    value.set_string_value(text);
    if (OneIn(400)) Any(1, &value);
    (*object->mutable_fields())[OneIn(400) ? absl::StrCat(field, "s") : field] =
        value;
  }

  void Selector(Struct* selector) {
    Put(selector, "apiVersion", "example.org/v1");
    Put(selector, "kind", "Zone");
    if (OneIn(2)) {
      Put(selector, "matchName", Text());
    } else {
      Struct& labels =
          *(*selector->mutable_fields())["matchLabels"].mutable_struct_value();
      for (size_t n = Below(3); n > 0; --n) {
        const std::string& key = OneOf(kKeys);
        (*labels.mutable_fields())[key].set_string_value(Text());
      }
      if (OneIn(60)) Put(selector, "matchName", "both");
    }
    if (OneIn(3)) Put(selector, "namespace", Text());
  }

  void Resource(Struct* resource) {
    indexed_ = OneIn(3);
    std::string name = OneOf(kResources);
    if (OneIn(3)) name = absl::StrCat("new-", Below(100));
    if (indexed_) {
      name += "-${index}";
      Value& count = (*resource->mutable_fields())["count"];
      if (OneIn(3) && !lists_.empty()) {
        count.set_string_value(absl::StrCat("${", OneOf(lists_), "}"));
      } else if (OneIn(60)) {
        Any(1, &count);
      } else {
        count.set_number_value(static_cast<double>(Below(4)));
      }
    }
    Put(resource, "name", name);
    Struct& base =
        *(*resource->mutable_fields())["base"].mutable_struct_value();
    Put(&base, "apiVersion", "s3.example.org/v1");
    Put(&base, "kind", "Bucket");
    TemplateObject(1,
                   (*base.mutable_fields())["metadata"].mutable_struct_value());
    TemplateValue(3, &(*base.mutable_fields())["spec"]);
    if (OneIn(8)) TemplateValue(2, &(*base.mutable_fields())["status"]);
    if (OneIn(3)) {
      Value& ready = (*resource->mutable_fields())["ready"];
      switch (Below(4)) {
        case 0:
          ready.set_bool_value(OneIn(2));
          break;
        case 1:
          ready.set_string_value("${context.on|true}");
          break;
        default:
          ready.set_string_value("observed");
      }
    }
    indexed_ = false;
  }

  void Condition(Struct* condition) {
    Put(condition, "type", OneOf({"Ready", "Buckets", "A"}));
    if (OneIn(4)) {
      (*condition->mutable_fields())["status"].set_bool_value(OneIn(2));
    } else {
      Put(condition, "status", OneOf({"True", "False", "Unknown"}));
    }
    Put(condition, "reason", Text());
    if (OneIn(2)) Put(condition, "message", Text());
    if (OneIn(2)) {
      Put(condition, "target", OneOf({"Composite", "CompositeAndClaim"}));
    }
  }

  void Result(Struct* result) {
    Put(result, "message", Text());
    if (OneIn(2)) {
      Put(result, "severity",
          OneOf({"Normal", "Warning", "Warning", "Normal", "Fatal"}));
    }
    if (OneIn(2)) Put(result, "reason", Text());
    if (OneIn(2)) {
      Put(result, "target", OneOf({"Composite", "CompositeAndClaim"}));
    }
  }

  template <typename Fill>
  void Items(Struct* spec, const char* field, size_t most, Fill fill) {
    Value& list = (*spec->mutable_fields())[field];
    list.mutable_list_value();
    for (size_t n = Below(most + 1); n > 0; --n) {
      fill(list.mutable_list_value()->add_values()->mutable_struct_value());
    }
  }

  void Input(Struct* input) {
    Put(input, "apiVersion", "function.fncache.dev/v1alpha1");
    Put(input, "kind", "Template");
    auto& fields = *input->mutable_fields();
    if (OneIn(3)) {
      Struct& metadata = *fields["metadata"].mutable_struct_value();
      (*metadata.mutable_fields())["name"].set_string_value("in");
    }
    Struct& spec = *fields["spec"].mutable_struct_value();
    if (OneIn(3)) {
      Struct& all =
          *(*spec.mutable_fields())["requirements"].mutable_struct_value();
      for (const std::string& name : kRequired) {
        if (request_.required_resources().count(name) != 0 || OneIn(8)) {
          Selector((*all.mutable_fields())[name].mutable_struct_value());
        }
      }
    }
    if (!OneIn(4)) {
      Items(&spec, "resources", 5, [this](Struct* one) { Resource(one); });
    }
    if (OneIn(2)) {
      TemplateValue(3, &(*spec.mutable_fields())["status"]);
      if (!OneIn(10)) {
        TemplateObject(
            3, (*spec.mutable_fields())["status"].mutable_struct_value());
      }
    }
    if (OneIn(4)) {
      Struct& details =
          *(*spec.mutable_fields())["connectionDetails"].mutable_struct_value();
      for (size_t n = Below(4); n > 0; --n) {
        const std::string& key = OneOf(kKeys);
        (*details.mutable_fields())[key].set_string_value(Text());
      }
    }
    if (OneIn(4)) {
      TemplateObject(
          2, (*spec.mutable_fields())["context"].mutable_struct_value());
    }
    if (OneIn(4)) {
      Items(&spec, "conditions", 3, [this](Struct* one) { Condition(one); });
    }
    if (OneIn(4)) {
      Items(&spec, "results", 3, [this](Struct* one) { Result(one); });
    }
    if (OneIn(100)) (*spec.mutable_fields())["resorces"].mutable_list_value();
  }

  std::mt19937_64 engine_;
  fn::RunFunctionRequest request_;
  // Paths of the request by what is there.
  Texts scalars_, lists_, objects_, nulls_;
  bool indexed_ = false;  // below a resource with count
  std::string picked_;
};

}  // namespace

fn::RunFunctionRequest RandomTemplate(uint64_t seed) {
  return Generator(seed).Make();
}

}  // namespace fncache::runner::function
