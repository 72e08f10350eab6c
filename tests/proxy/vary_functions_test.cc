// SPDX-License-Identifier: Apache-2.0
// Random functions behind a real daemon with `vary: on`. Each computes its
// response from what it reads, reads further fields depending on that, and
// reports its reads. Requests differ in read and unread fields. Every response
// must be the function's own.
//
// `make nightly` runs 5,000 functions.
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/field_path.h"
#include "gtest/gtest.h"
#include "tests/common/long_form.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/simulated_daemon.h"

namespace fncache::proxy {
namespace {

using Request = SimulatedDaemon::Request;
using Response = SimulatedDaemon::Response;
using google::protobuf::Struct;
using google::protobuf::Value;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int Below(int limit) {
    return static_cast<int>(engine_() % static_cast<uint64_t>(limit));
  }
  bool OneIn(int n) { return Below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

// The same in all encodings of a value.
std::string TextOf(const Value& value) {
  if (value.has_struct_value()) {
    std::map<std::string, std::string> fields;
    for (const auto& [key, field] : value.struct_value().fields()) {
      fields[key] = TextOf(field);
    }
    std::string text = "{";
    for (const auto& [key, field] : fields) {
      absl::StrAppend(&text, key, ":", field, ";");
    }
    return text + "}";
  }
  if (value.has_list_value()) {
    std::string text = "[";
    for (const Value& one : value.list_value().values()) {
      absl::StrAppend(&text, TextOf(one), ";");
    }
    return text + "]";
  }
  return value.ShortDebugString();
}

// A step of a path below an object: a key, or an element of a list.
struct Step {
  std::string key;
  int element = -1;
};

// Reads one node of a request: of which object, and where.
struct Read {
  // 0 is the composite, 1 and 2 are resources, 3 and 4 required items.
  int object = 0;
  std::vector<Step> path;
  bool size = false;  // how many elements it has
};

// The object, or null.
const Struct* ObjectOf(const Request& request, int object) {
  if (object == 0) {
    return request.observed().has_composite()
               ? &request.observed().composite().resource()
               : nullptr;
  }
  if (object < 3) {
    const auto& all = request.observed().resources();
    const auto found = all.find(absl::StrCat("r", object));
    return found == all.end() ? nullptr : &found->second.resource();
  }
  const auto found = request.required_resources().find("v");
  if (found == request.required_resources().end() ||
      found->second.items_size() <= object - 3) {
    return nullptr;
  }
  return &found->second.items(object - 3).resource();
}

std::string PathOf(const Read& read) {
  std::string path =
      read.object == 0 ? "observed.composite.resource"
      : read.object < 3
          ? absl::StrCat("observed.resources.r", read.object, ".resource")
          : "required_resources.v.items.*.resource";
  for (const Step& step : read.path) {
    if (step.element >= 0) {
      absl::StrAppend(&path, ".*");
    } else {
      path = PathBelow(path, step.key);
    }
  }
  return path;
}

std::string ValueAt(const Request& request, const Read& read) {
  const Struct* const object = ObjectOf(request, read.object);
  if (object == nullptr) return "no object";
  Value root;
  *root.mutable_struct_value() = *object;
  const Value* at = &root;
  for (const Step& step : read.path) {
    if (step.element >= 0) {
      if (!at->has_list_value()) return "no list";
      if (at->list_value().values_size() <= step.element) return "no element";
      at = &at->list_value().values(step.element);
    } else {
      if (!at->has_struct_value()) return "no object there";
      const auto& fields = at->struct_value().fields();
      const auto found = fields.find(step.key);
      if (found == fields.end()) return "absent";
      at = &found->second;
    }
  }
  if (read.size) {
    return at->has_list_value() ? absl::StrCat(at->list_value().values_size())
                                : "no list";
  }
  return TextOf(*at);
}

const char* const kKeys[] = {"a", "b", "a.b", "spec", "x\"y"};

// A tree of reads: what is read next depends on the values so far.
class Function {
 public:
  explicit Function(uint64_t seed) : seed_(seed) {
    Random random(seed);
    for (int i = 0; i < 12; ++i) {
      Read read;
      read.object = random.Below(5);
      const char* const tops[] = {"spec", "metadata", "status", "kind"};
      read.path.push_back({tops[random.Below(4)]});
      for (int depth = random.Below(4); depth-- > 0;) {
        if (random.OneIn(4)) {
          read.path.push_back({"", random.Below(2)});
        } else {
          read.path.push_back({kKeys[random.Below(5)]});
        }
      }
      read.size = random.OneIn(6);
      reads_.push_back(read);
    }
    starts_ = 1 + random.Below(3);
    pure_ = random.OneIn(2);
  }

  // The response's text, and the hint.
  std::string Run(const Request& request, std::string* hint) const {
    std::vector<std::string> paths;
    uint64_t state = absl::HashOf(seed_, request.input().ShortDebugString(),
                                  request.observed().resources_size(),
                                  request.required_resources_size());
    std::string text;
    int left = starts_;
    for (int i = 0; i < 6 && left > 0; ++i) {
      const Read& read =
          reads_[i < starts_ ? i : static_cast<size_t>(state % reads_.size())];
      const std::string value = ValueAt(request, read);
      paths.push_back(PathOf(read));
      absl::StrAppend(&text, value, "|");
      state = absl::HashOf(state, value);
      --left;
      // The values decide how many more there are.
      if (left == 0 && state % 3 == 0) left = 1;
    }
    *hint = "reads=(";
    for (std::string path : paths) {
      // Sometimes more than was read.
      if (state % 7 == 0) path = path.substr(0, path.find(".resource.") + 9);
      absl::StrAppend(
          hint, "\"",
          absl::StrReplaceAll(path, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\" ");
    }
    absl::StrAppend(hint, ")", pure_ ? ", pure" : "");
    if (state % 11 == 0) *hint = "";
    if (state % 23 == 0) *hint = "reads=(\"broken";
    return absl::StrCat(seed_, ": ", text);
  }

 private:
  const uint64_t seed_;
  std::vector<Read> reads_;
  int starts_;
  bool pure_;
};

Value RandomValue(Random* random, int depth) {
  Value value;
  switch (random->Below(depth > 0 ? 5 : 3)) {
    case 0:
      value.set_string_value(random->OneIn(2) ? "u" : "v");
      break;
    case 1:
      value.set_number_value(random->Below(3));
      break;
    case 2:
      value.set_bool_value(true);
      break;
    case 3:
      for (int i = random->Below(3); i-- > 0;) {
        *value.mutable_list_value()->add_values() =
            RandomValue(random, depth - 1);
      }
      value.mutable_list_value();
      break;
    default:
      value.mutable_struct_value();
      for (int i = random->Below(4); i-- > 0;) {
        (*value.mutable_struct_value()
              ->mutable_fields())[kKeys[random->Below(5)]] =
            RandomValue(random, depth - 1);
      }
  }
  return value;
}

void Change(Struct* object, Random* random) {
  const char* const tops[] = {"spec", "metadata", "status", "kind", "unread"};
  auto& fields = *object->mutable_fields();
  const char* const top = tops[random->Below(5)];
  if (random->OneIn(10)) {
    fields.erase(top);
  } else if (random->OneIn(3) || !fields[top].has_struct_value()) {
    fields[top] = RandomValue(random, 3);
  } else {
    (*fields[top]
          .mutable_struct_value()
          ->mutable_fields())[kKeys[random->Below(5)]] = RandomValue(random, 2);
  }
}

void Change(Request* request, Random* random) {
  auto* const observed = request->mutable_observed();
  switch (random->Below(8)) {
    case 0:
    case 1:
    case 2:
      return Change(observed->mutable_composite()->mutable_resource(), random);
    case 3:
    case 4:
      return Change(
          (*observed
                ->mutable_resources())[absl::StrCat("r", 1 + random->Below(2))]
              .mutable_resource(),
          random);
    case 5: {
      auto& items = (*request->mutable_required_resources())["v"];
      if (items.items_size() < 2) items.add_items();
      return Change(items.mutable_items(random->Below(items.items_size()))
                        ->mutable_resource(),
                    random);
    }
    case 6:
      if (random->OneIn(3)) observed->mutable_resources()->erase("r1");
      return;
    default:
      if (random->OneIn(3)) {
        (*request->mutable_input()->mutable_fields())["k"].set_number_value(
            random->Below(2));
      }
  }
}

TEST(VaryFunctions, EveryResponseIsTheFunctionsOwn) {
  const int batches = testing::ShortOrLong(testing::kSanitized ? 2 : 10, 167);
  constexpr int kFunctions = 30;
  constexpr int kRequests = 100;
  int hits = 0;
  int by_hint = 0;
  int wrong = 0;
  for (int batch = 0; batch < batches; ++batch) {
    std::vector<std::unique_ptr<Function>> functions;
    std::vector<std::string> names;
    for (int i = 0; i < kFunctions; ++i) {
      functions.push_back(std::make_unique<Function>(
          static_cast<uint64_t>(batch * kFunctions + i)));
      names.push_back(absl::StrCat("function-", i));
    }
    serving::ScriptedFunction upstream(
        [&](const serving::FunctionCallPtr& call) {
          int index = -1;
          const auto found = call->metadata.find("x-function");
          ASSERT_NE(found, call->metadata.end());
          ASSERT_TRUE(absl::SimpleAtoi(found->second, &index));
          const Request request = call->request();
          std::string hint;
          Response response;
          response.mutable_meta()->set_tag(request.meta().tag());
          response.mutable_meta()->mutable_ttl()->set_seconds(60);
          response.add_results()->set_message(
              functions[static_cast<size_t>(index)]->Run(request, &hint));
          if (!hint.empty()) call->AddTrailer("fncache-depends", hint);
          call->Answer(response.SerializeAsString());
        });
    SimulatedDaemon daemon("vary: on\nstale_while_revalidate: 20s\n",
                           upstream.target(), names);
    Random random(static_cast<uint64_t>(batch));
    for (int i = 0; i < kFunctions; ++i) {
      Request request;
      for (int n = 0; n < 10; ++n) Change(&request, &random);
      std::vector<Request> before;
      for (int n = 0; n < kRequests; ++n) {
        daemon.SetTime(absl::Seconds(batch + i * kRequests + n));
        // Most follow each other; some come back.
        if (!before.empty() && random.OneIn(8)) {
          request = before[static_cast<size_t>(
              random.Below(static_cast<int>(before.size())))];
        } else {
          Change(&request, &random);
        }
        request.mutable_observed()->mutable_composite()->mutable_resource();
        before.push_back(request);
        std::map<std::string, std::string> metadata = {
            {"x-function", absl::StrCat(i)}};
        if (random.OneIn(20)) metadata["cache-control"] = "no-cache";
        const auto answer =
            daemon.Call(names[static_cast<size_t>(i)], request, metadata);
        std::string hint;
        const std::string own =
            functions[static_cast<size_t>(i)]->Run(request, &hint);
        if (answer.response.results(0).message() != own) {
          ADD_FAILURE() << "function " << batch * kFunctions + i << ", request "
                        << n << ", " << answer.status << ":\n"
                        << answer.response.results(0).message() << "\nnot\n"
                        << own;
          if (++wrong > 5) return;
        }
        hits += answer.hit;
        by_hint += absl::StrContains(answer.status, "detail=hint");
      }
    }
  }
  const int calls = batches * kFunctions * kRequests;
  RecordProperty("calls", calls);
  RecordProperty("hits", hits);
  RecordProperty("hits_by_hint", by_hint);
  EXPECT_GT(by_hint, calls / 5);
  EXPECT_LT(hits, calls * 9 / 10);
}

}  // namespace
}  // namespace fncache::proxy
