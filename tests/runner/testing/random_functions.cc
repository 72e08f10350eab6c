// SPDX-License-Identifier: Apache-2.0
#include "tests/runner/testing/random_functions.h"

#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fncache::function::testing {
namespace {

constexpr const char* kResources[] = {"a", "b", "c.d", "e"};

// A field nearly always has one type, so that not each call is FATAL.
enum class Type { kText, kNumber, kList, kObject };
constexpr struct {
  const char* key;
  Type type;
} kFields[] = {{"a", Type::kText},          {"b", Type::kNumber},
               {"zones", Type::kList},      {"x.y/z", Type::kText},
               {"template", Type::kObject}, {"labels", Type::kObject},
               {"name", Type::kText},       {"n", Type::kNumber}};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t Below(size_t bound) { return engine_() % bound; }
  bool OneOf(size_t bound) { return Below(bound) == 0; }
  template <size_t n>
  const char* Pick(const char* const (&of)[n]) {
    return of[Below(n)];
  }

 private:
  std::mt19937_64 engine_;
};

std::string Document(Random* random, Type type, int depth) {
  if (random->OneOf(50)) type = static_cast<Type>(random->Below(4));
  if (random->OneOf(20)) return "null";
  if (type == Type::kText) return absl::StrCat("\"t", random->Below(5), "\"");
  if (type == Type::kNumber) return absl::StrCat(random->Below(5));
  std::string all;
  if (type == Type::kList) {
    for (size_t left = depth > 0 ? random->Below(4) : 0; left > 0; --left) {
      absl::StrAppend(&all, all.empty() ? "" : ", ",
                      Document(random, Type::kObject, depth - 1));
    }
    return absl::StrCat("[", all, "]");
  }
  for (const auto& [key, of] : kFields) {
    if (random->OneOf(2) || depth <= 0) continue;
    absl::StrAppend(&all, all.empty() ? "" : ", ", "\"", key,
                    "\": ", Document(random, of, depth - 1));
  }
  return absl::StrCat("{", all, "}");
}

std::string Object(Random* random) {
  std::string conditions;
  for (const char* const type : {"Ready", "Synced"}) {
    if (random->OneOf(3)) continue;
    absl::StrAppend(&conditions, conditions.empty() ? "" : ", ",
                    "{type: ", type, ", status: \"",
                    random->OneOf(2) ? "True" : "False", "\"}");
  }
  return absl::StrCat(
      "{apiVersion: v1, kind: K, metadata: {name: t", random->Below(5),
      ", annotations: {crossplane.io/external-name: n", random->Below(5),
      "}}, spec: ", Document(random, Type::kObject, 4),
      ", status: {conditions: [", conditions,
      "], a: t1, template: ", Document(random, Type::kObject, 2), "}}");
}

// One step of a function, made of the seed each time that it runs.
class Step {
 public:
  Step(Context* ctx, uint64_t seed) : ctx_(*ctx), random_(seed) {}

  void Run() {
    Value target = Target();
    const Value source = Source();
    const bool text = type_ == Type::kText;
    switch (random_.Below(12)) {
      case 0:
        target = source;
        break;
      case 1:
        if (source) target = Source();
        break;
      case 2:
        target = source.is_null();
        break;
      case 3:
        if (type_ == Type::kObject) target = absl::StrJoin(source.keys(), ",");
        break;
      case 4:
        if (type_ == Type::kList) target = source.size();
        break;
      case 5:
        target = Json(source);
        break;
      case 6:
        if (text) target = Concat("of ", source);
        break;
      case 7:
        if (text && source == "t1") ctx_.normal("is t1").reason("Is");
        break;
      case 8:
        if (text) target = source.as<std::string>().optional();
        break;
      case 9:
        Ask();
        break;
      case 10:
        Require(target);
        break;
      default: {
        const Value other = Source();
        if (!text || type_ != Type::kText) break;
        target = Apply(
            [](const std::string& a, const std::string& b) { return a + b; },
            source.as<std::string>(), other.as<std::string>());
      }
    }
  }

 private:
  Resource Desired() {
    return ctx_.resource(random_.Pick(kResources), "v1", "K");
  }

  Value Target() {
    const std::string key = absl::StrCat("t", random_.Below(4));
    switch (random_.Below(6)) {
      case 0:
        return ctx_.composite()["status"][key];
      case 1:
        return ctx_.output()[key];
      case 2:
        return Desired()["spec"]["deep"][key];
      default:
        return Desired()["spec"][key];
    }
  }

  Value Source() {
    const char* const section = random_.OneOf(3) ? "status" : "spec";
    const size_t levels = 1 + random_.Below(4);
    switch (random_.Below(4)) {
      case 0:
        return Walk(ctx_.composite().observed()[section], levels);
      case 1:
        return Walk(Items()[random_.Below(2)].observed()[section], levels);
      default:
        return Walk(ctx_.existing(random_.Pick(kResources)).observed()[section],
                    levels);
    }
  }

  // Down at most this many fields of an object, and notes the last one's type.
  Value Walk(const Value& object, size_t levels) {
    const auto& [key, type] = kFields[random_.Below(std::size(kFields))];
    const Value field = object[key];
    type_ = type;
    if (levels == 1) return field;
    if (type == Type::kObject) return Walk(field, levels - 1);
    if (type == Type::kList) return Walk(field[random_.Below(3)], levels - 1);
    return field;
  }

  Required<Resource> Items() {
    return ctx_.require(random_.OneOf(2) ? "one" : "two", "v1", "K",
                        MatchLabels({{"env", "prod"}}));
  }

  void Ask() {
    const Resource one = Desired();
    const Resource other = Desired();
    switch (random_.Below(7)) {
      case 0:
        one.depends_on(other);
        break;
      case 1:
        one.ready(Ready::kObserved);
        break;
      case 2:
        one["spec"]["name"] = other.observed().external_name();
        break;
      case 3:
        if (other.condition("Ready")) one["spec"]["ready"] = true;
        break;
      case 4:
        one.depends_on(other, Until::kObserved);
        break;
      case 5:
        ctx_.composite()["status"]["exists"] = other.exists();
        break;
      default:
        ctx_.auto_ready();
    }
  }

  void Require(Value target) {
    const Required<Resource> items = Items();
    switch (random_.Below(4)) {
      case 0:
        for (const Resource item : items) {
          target.add(item.observed()["spec"]["a"]);
        }
        break;
      case 1:
        target = items.size();
        break;
      case 2:
        if (items.state() == State::kFound) target = items[0].name();
        break;
      default:
        target = Walk(items.first().observed()["spec"], 2);
    }
  }

  Context& ctx_;
  Random random_;
  Type type_ = Type::kText;
};

}  // namespace

Function RandomFunction(uint64_t seed) {
  return [seed](Context& ctx) {
    Random random(seed);
    for (size_t left = 4 + random.Below(9); left > 0; --left) {
      Step(&ctx, random.Below(1 << 30)).Run();
    }
  };
}

Call RandomCall(Function function, uint64_t seed) {
  Random random(~seed);
  Call call(std::move(function));
  call.composite(Object(&random));
  for (const char* const name : kResources) {
    if (!random.OneOf(3)) call.observed(name, Object(&random));
    if (random.OneOf(3)) {
      call.desired(name, absl::StrCat("{apiVersion: v1, kind: K, spec: {t1: ",
                                      Document(&random, Type::kText, 1), "}}"));
    }
  }
  for (const char* const name : {"one", "two"}) {
    if (random.OneOf(3)) continue;
    std::vector<std::string> items(random.Below(3));
    for (std::string& item : items) item = Object(&random);
    call.required(name, items);
  }
  if (random.OneOf(4)) call.capabilities({});
  return call;
}

}  // namespace fncache::function::testing
