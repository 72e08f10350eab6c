// SPDX-License-Identifier: Apache-2.0
#include "bench/request_generator.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/random.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

namespace v1 = ::apiextensions::fn::proto::v1;
using ::google::protobuf::ListValue;
using ::google::protobuf::Struct;

constexpr int kReferences = 40;

struct ShapeRow {
  Shape shape;
  const char* name;
  int references;
  int resources;
};

constexpr ShapeRow kShapes[] = {
    {Shape::kSmall, "small", 0, 0},
    {Shape::k4K, "4k", kReferences, 0},
    {Shape::k17K, "17k", kReferences, 8},
    {Shape::k130K, "130k", kReferences, 77},
    {Shape::k1M, "1m", kReferences, 625},
};

const ShapeRow& RowOf(Shape shape) {
  for (const ShapeRow& row : kShapes) {
    if (row.shape == shape) return row;
  }
  return kShapes[0];
}

// Sets members of a Struct, as one writes an object.
class Object {
 public:
  explicit Object(Struct* to) : fields_(to->mutable_fields()) {}

  Object& Set(const std::string& key, absl::string_view text) {
    (*fields_)[key].set_string_value(std::string(text));
    return *this;
  }
  Object& Number(const std::string& key, double number) {
    (*fields_)[key].set_number_value(number);
    return *this;
  }
  Object& Bool(const std::string& key, bool value) {
    (*fields_)[key].set_bool_value(value);
    return *this;
  }
  Object Sub(const std::string& key) {
    return Object((*fields_)[key].mutable_struct_value());
  }
  ListValue* List(const std::string& key) {
    return (*fields_)[key].mutable_list_value();
  }

 private:
  google::protobuf::Map<std::string, google::protobuf::Value>* fields_;
};

Object Append(ListValue* list) {
  return Object(list->add_values()->mutable_struct_value());
}

template <size_t n>
const char* OneOf(const char* const (&words)[n], Random* random) {
  return words[random->Below(n)];
}

std::string Hex(size_t digits, Random* random) {
  std::string text(digits, '0');
  for (char& c : text) c = "0123456789abcdef"[random->Below(16)];
  return text;
}

std::string Letters(size_t count, Random* random) {
  std::string text(count, 'a');
  for (char& c : text) c = static_cast<char>('a' + random->Below(26));
  return text;
}

std::string Uuid(Random* random) {
  return absl::StrCat(Hex(8, random), "-", Hex(4, random), "-4", Hex(3, random),
                      "-a", Hex(3, random), "-", Hex(12, random));
}

// A time of 2026.
std::string Time(Random* random) {
  return absl::StrFormat("2026-%02d-%02dT%02d:%02d:%02dZ",
                         random->Below(12) + 1, random->Below(28) + 1,
                         random->Below(24), random->Below(60),
                         random->Below(60));
}

// All of one request's resources have these in common.
struct World {
  std::string name;  // of the composite
  std::string uid;   // by which resources know their owner
  const char* owner;
  const char* team;
  const char* region;
};

World MakeWorld(Random* random) {
  World world;
  world.name = Letters(4, random);
  world.uid = Uuid(random);
  world.owner = OneOf({"ops", "dev", "sre", "web"}, random);
  world.team = OneOf({"data", "shop", "mail", "feed"}, random);
  world.region = OneOf({"eu-1", "us-2", "ap-3", "sa-1"}, random);
  return world;
}

std::string ItemName(const World& world, int index) {
  return absl::StrFormat("%s-%03d", world.name, index);
}

// One resource of the request, as it is observed and as it is desired.
struct Item {
  std::string key;
  int index = 0;  // 0 to kReferences - 1; several resources may share one
  int rules = 2;  // of its lifecycle
  bool ready = true;
};

// A few lists are shorter or longer than others, their sum stays: requests
// of a shape keep their size.
std::vector<Item> MakeItems(int count, Random* random) {
  std::vector<Item> items(count);
  for (int i = 0; i < count; ++i) {
    items[i].index = i % kReferences;
    items[i].key =
        absl::StrCat("bucket-", items[i].index, "-", i / kReferences);
    items[i].rules = i % 8 == 0 ? 1 : i % 8 == 4 ? 3 : 2;
    items[i].ready = i % 3 != 0;
  }
  std::vector<int> rules;
  std::vector<char> ready;
  for (const Item& item : items) {
    rules.push_back(item.rules);
    ready.push_back(item.ready ? 1 : 0);
  }
  random->Shuffle(&rules);
  random->Shuffle(&ready);
  for (int i = 0; i < count; ++i) {
    items[i].rules = rules[i];
    items[i].ready = ready[i] != 0;
  }
  return items;
}

void FillSpec(const World& world, const Item& item, Random* random,
              Object spec) {
  static constexpr const char* kTargets[] = {"cold", "deleted", "rare"};
  static constexpr int kDays[] = {30, 365, 730};
  spec.Set("owner", world.owner)
      .Set("region", world.region)
      .Bool("versioning", random->Below(2) == 0);
  ListValue* const lifecycle = spec.List("lifecycle");
  for (int i = 0; i < item.rules; ++i) {
    Append(lifecycle)
        .Number("days", kDays[i] + static_cast<double>(random->Below(30)))
        .Set("to", kTargets[i]);
  }
}

void AddCondition(ListValue* conditions, const char* type, bool status,
                  const char* reason, const std::string& time) {
  Append(conditions)
      .Set("type", type)
      .Set("status", status ? "True" : "False")
      .Set("reason", reason)
      .Set("lastTransitionTime", time);
}

void FillObserved(const World& world, const Item& item, Random* random,
                  Struct* to) {
  Object resource(to);
  resource.Set("apiVersion", "storage.example.org/v1").Set("kind", "Bucket");

  const std::string external =
      absl::StrCat(ItemName(world, item.index), "-ext");
  Object metadata = resource.Sub("metadata");
  metadata.Set("name", item.key)
      .Set("uid", Uuid(random))
      .Set("resourceVersion", absl::StrCat(1000 + random->Below(9000)))
      .Set("creationTimestamp", Time(random))
      .Number("generation", 1 + static_cast<double>(random->Below(9)));
  metadata.Sub("labels")
      .Set("crossplane.io/composite", world.name)
      .Set("index", absl::StrCat(item.index))
      .Set("team", world.team);
  metadata.Sub("annotations")
      .Set("crossplane.io/external-name", external)
      .Set("crossplane.io/composition-resource-name",
           absl::StrCat("bucket-", item.index));
  metadata.List("finalizers")
      ->add_values()
      ->set_string_value("finalizer.managedresource.crossplane.io");
  Append(metadata.List("ownerReferences"))
      .Set("apiVersion", "shop.example.org/v1alpha1")
      .Set("kind", "Lake")
      .Set("name", world.name)
      .Set("uid", world.uid)
      .Bool("controller", true)
      .Bool("blockOwnerDeletion", true);

  Object spec = resource.Sub("spec");
  FillSpec(world, item, random, spec);
  spec.Sub("providerConfigRef").Set("name", "default");

  Object status = resource.Sub("status");
  status.Sub("atProvider")
      .Set("id", external)
      .Set("arn", absl::StrCat("arn:aws:s3:::", external))
      .Number("objects", static_cast<double>(random->Below(50000)))
      .Number("ratio", static_cast<double>(random->Below(10000000)) / 1e6)
      .Set("hostedZoneId", absl::StrCat("Z", Hex(13, random)));
  ListValue* const conditions = status.List("conditions");
  const std::string time = Time(random);
  AddCondition(conditions, "Ready", item.ready,
               item.ready ? "Available" : "Creating", time);
  AddCondition(conditions, "Synced", true, "ReconcileSuccess", time);
}

void FillDesired(const World& world, const Item& item, Random* random,
                 v1::Resource* to) {
  Object resource(to->mutable_resource());
  resource.Set("apiVersion", "storage.example.org/v1").Set("kind", "Bucket");
  Object metadata = resource.Sub("metadata");
  metadata.Set("name", ItemName(world, item.index));
  metadata.Sub("labels")
      .Set("index", absl::StrCat(item.index))
      .Set("team", world.team);
  FillSpec(world, item, random, resource.Sub("spec"));
  if (item.ready) to->set_ready(v1::READY_TRUE);
}

void FillComposite(const World& world, int references, Random* random,
                   Struct* to) {
  Object resource(to);
  resource.Set("apiVersion", "shop.example.org/v1alpha1").Set("kind", "Lake");
  Object metadata = resource.Sub("metadata");
  // It has a uid's length. Its end after the last dash is the slot. The
  // resources name another uid as their owner's, as after the slot is
  // overwritten.
  metadata.Set("name", world.name)
      .Set("uid", absl::StrCat(Hex(8, random), "-", Hex(4, random), "-4",
                               Hex(3, random), "-a", Hex(kSlotDigits, random)));
  metadata.Sub("labels").Set("crossplane.io/composite", world.name);
  resource.Sub("spec").Set("owner", world.owner);
  if (references == 0) return;

  metadata.Set("resourceVersion", absl::StrCat(100 + random->Below(900)));
  Object crossplane = resource.Sub("spec").Sub("crossplane");
  crossplane.Sub("compositionRef").Set("name", world.name);
  ListValue* const list = crossplane.List("resourceRefs");
  for (int i = 0; i < references; ++i) {
    Append(list)
        .Set("apiVersion", "storage.example.org/v1")
        .Set("kind", "Bucket")
        .Set("name", ItemName(world, i));
  }
  AddCondition(resource.Sub("status").List("conditions"), "Responsive", true,
               "WatchCircuitClosed", Time(random));
}

void FillDesiredComposite(v1::State* desired) {
  Object(desired->mutable_composite()->mutable_resource())
      .Set("apiVersion", "shop.example.org/v1alpha1")
      .Set("kind", "Lake");
}

void FillContext(Struct* context) {
  Object(context)
      .Sub("apiextensions.crossplane.io/environment")
      .Set("apiVersion", "internal.crossplane.io/v1alpha1")
      .Set("kind", "Environment");
}

}  // namespace

const char* ShapeName(Shape shape) { return RowOf(shape).name; }

bool HasDrift(Shape shape) { return RowOf(shape).resources > 0; }

absl::optional<Shape> ShapeOf(absl::string_view name) {
  for (const ShapeRow& row : kShapes) {
    if (name == row.name) return row.shape;
  }
  return absl::nullopt;
}

const char* AnswerShapeName(AnswerShape shape) {
  return shape == AnswerShape::kSmall ? "small" : "13k";
}

absl::optional<AnswerShape> AnswerShapeOf(absl::string_view name) {
  for (const AnswerShape shape : {AnswerShape::kSmall, AnswerShape::k13K}) {
    if (name == AnswerShapeName(shape)) return shape;
  }
  return absl::nullopt;
}

Request MakeRequest(Shape shape, uint64_t seed, uint64_t number) {
  Random random(Random(seed).Next() ^ Random(~number).Next());
  const ShapeRow& row = RowOf(shape);
  const World world = MakeWorld(&random);

  Request request;
  v1::RequestMeta* const meta = request.mutable_meta();
  meta->set_tag(Hex(64, &random));
  for (const v1::Capability capability :
       {v1::CAPABILITY_CAPABILITIES, v1::CAPABILITY_REQUIRED_RESOURCES,
        v1::CAPABILITY_CREDENTIALS, v1::CAPABILITY_CONDITIONS,
        v1::CAPABILITY_REQUIRED_SCHEMAS}) {
    meta->add_capabilities(capability);
  }
  FillComposite(
      world, row.references, &random,
      request.mutable_observed()->mutable_composite()->mutable_resource());
  if (row.references == 0) return request;

  FillDesiredComposite(request.mutable_desired());
  FillContext(request.mutable_context());
  for (const Item& item : MakeItems(row.resources, &random)) {
    FillObserved(world, item, &random,
                 (*request.mutable_observed()->mutable_resources())[item.key]
                     .mutable_resource());
    FillDesired(world, item, &random,
                &(*request.mutable_desired()->mutable_resources())[item.key]);
  }
  return request;
}

Answer MakeAnswer(AnswerShape shape, uint64_t seed,
                  absl::optional<absl::Duration> ttl) {
  Random random(Random(seed).Next());
  const World world = MakeWorld(&random);
  Answer answer;
  answer.mutable_meta()->set_tag(std::string(64, '0'));
  if (ttl.has_value()) {
    absl::Duration rest = *ttl;
    auto* const duration = answer.mutable_meta()->mutable_ttl();
    duration->set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
    duration->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  }
  auto* const resources = answer.mutable_desired()->mutable_resources();
  if (shape == AnswerShape::kSmall) {
    FillDesired(world, Item{}, &random, &(*resources)["bucket-0"]);
    return answer;
  }
  FillDesiredComposite(answer.mutable_desired());
  FillContext(answer.mutable_context());
  for (Item& item : MakeItems(kReferences, &random)) {
    const std::string key = absl::StrCat("bucket-", item.index);
    FillDesired(world, item, &random, &(*resources)[key]);
  }
  return answer;
}

}  // namespace fncache::bench
