// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cache/key/mask.h"
#include "common/field_path.h"
#include "fncache/function/testing.h"
#include "nlohmann/json.hpp"
#include "re2/re2.h"
#include "runner/testing/alter.h"
#include "runner/testing/call_state.h"
#include "runner/testing/messages.h"
#include "text/json.h"

// extra_resources is deprecated, and old runners have nothing else.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::function::testing {

namespace proto = apiextensions::fn::proto::v1;
using google::protobuf::Struct;
using text::Json;

namespace {

// The most calls that search for the one change that matters.
constexpr size_t kMostSearchCalls = 2000;

// Runs the function of a call on other requests, and compares the answers.
class Checker {
 public:
  explicit Checker(const CallState& call)
      : request(Request(call)), call_(call) {}

  std::shared_ptr<const AnswerState> Run(std::string bytes) {
    ++calls;
    return testing::Run(call_, std::move(bytes));
  }
  std::shared_ptr<const AnswerState> Run(
      const proto::RunFunctionRequest& altered) {
    return Run(altered.SerializeAsString());
  }

  // Where the answers differ, their tags aside; "" where they are equal.
  static std::string Differs(const AnswerState& a, const AnswerState& b) {
    return a.status == b.status ? Difference(a.response, b.response)
                                : "the call's gRPC status";
  }

  // The first read that only one of two answers to the same request reports.
  static std::string OtherReads(std::shared_ptr<const AnswerState> a,
                                std::shared_ptr<const AnswerState> b) {
    std::vector<std::string> only;
    const std::vector<std::string> one = Answer(a).reads();
    const std::vector<std::string> other = Answer(b).reads();
    std::set_symmetric_difference(one.begin(), one.end(), other.begin(),
                                  other.end(), std::back_inserter(only));
    return only.empty() ? "" : only[0];
  }

  const proto::RunFunctionRequest request;
  size_t calls = 0;

 private:
  const CallState& call_;
};

template <typename Each>
void ForEachLeaf(const Json& json, const std::string& path, const Each& each) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      ForEachLeaf(value, PathBelow(path, key), each);
    }
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) {
      ForEachLeaf(json[i], PathOfElement(path, i), each);
    }
  } else {
    each(json, path);
  }
}

// The time of a call: from `start` to `end`. A time that the request has, too,
// is none.
struct CallTime {
  // `unit`: the least that the value tells apart.
  bool Is(absl::Time time, absl::Duration unit) const {
    return time >= start - unit && time <= end;
  }

  bool Is(double number) const {
    const absl::string_view bytes(reinterpret_cast<const char*>(&number),
                                  sizeof(number));
    if (std::abs(number) >= 1e19 || absl::StrContains(request, bytes)) {
      return false;
    }
    for (const double unit : {1.0, 1e3, 1e6, 1e9}) {
      if (Is(absl::UnixEpoch() + absl::Seconds(number / unit),
             absl::Seconds(1))) {
        return true;
      }
    }
    return false;
  }

  // Whether the value is the time, or a text has it in it.
  bool Is(const Json& leaf) const {
    if (leaf.is_number()) return Is(leaf.get<double>());
    if (!leaf.is_string()) return false;
    static const RE2* const kTime =
        new RE2(R"(((\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d(?:\.\d+)?)?)"
                R"((Z|[+-]\d\d:\d\d)|\d{10,19}))");
    re2::StringPiece rest(leaf.get_ref<const std::string&>());
    std::string found, minute, second, zone;
    while (
        RE2::FindAndConsume(&rest, *kTime, &found, &minute, &second, &zone)) {
      if (absl::StrContains(request, found)) continue;
      double number = 0;
      absl::Time time;
      if (minute.empty()) {
        if (absl::SimpleAtod(found, &number) && Is(number)) return true;
        continue;
      }
      const bool exact = !second.empty();
      if (absl::ParseTime(absl::RFC3339_full,
                          absl::StrCat(minute, exact ? second : ":00", zone),
                          &time, nullptr) &&
          Is(time, exact ? absl::Seconds(1) : absl::Minutes(1))) {
        return true;
      }
    }
    return false;
  }

  const std::string& request;
  const absl::Time start, end;
};

// The path of a value of the response that is the time of the call.
std::string TimePath(const proto::RunFunctionResponse& response,
                     const CallTime& call) {
  std::string result;
  ForEachLeaf(ToJson(response), "",
              [&](const Json& leaf, const std::string& path) {
                if (result.empty() && call.Is(leaf)) result = path;
              });
  return result;
}

// Removes, one after the other, each field of an object and each element of a
// list at and below it. Calls removed(path) each time; stops once it is false.
class Remover {
 public:
  explicit Remover(std::function<bool(const std::string&)> removed)
      : removed_(std::move(removed)) {}

  bool Fields(Struct* object, const std::string& path) {
    std::set<std::string> keys;
    for (const auto& [key, value] : object->fields()) keys.insert(key);
    for (const std::string& key : keys) {
      const std::string at = PathBelow(path, key);
      google::protobuf::Value value;
      value.Swap(&(*object->mutable_fields())[key]);
      object->mutable_fields()->erase(key);
      const bool more = removed_(at);
      (*object->mutable_fields())[key].Swap(&value);
      if (!more || !Below(&(*object->mutable_fields())[key], at)) return false;
    }
    return true;
  }

 private:
  bool Below(google::protobuf::Value* value, const std::string& path) {
    if (value->has_struct_value()) {
      return Fields(value->mutable_struct_value(), path);
    }
    if (!value->has_list_value()) return true;
    const google::protobuf::ListValue all = value->list_value();
    for (int i = 0; i < all.values_size(); ++i) {
      const std::string at = PathOfElement(path, i);
      value->mutable_list_value()->mutable_values()->DeleteSubrange(i, 1);
      const bool more = removed_(at);
      *value->mutable_list_value() = all;
      if (!more || !Below(value->mutable_list_value()->mutable_values(i), at)) {
        return false;
      }
    }
    return true;
  }

  const std::function<bool(const std::string&)> removed_;
};

// What CheckReads reports: the hint's gap, as few altered paths as have the
// same effect.
std::string Gap(Checker* checker, const AnswerState& base,
                const cache::key::MaskSet& reads, uint64_t seed,
                std::set<std::string> altered) {
  const size_t end = checker->calls + kMostSearchCalls;
  const auto difference = [&](const std::set<std::string>& only) {
    std::set<std::string> ignored;
    return Checker::Differs(
        base,
        *checker->Run(Altered(checker->request, reads, seed, &only, &ignored)));
  };
  for (const std::string& path : altered) {
    if (checker->calls < end && !difference({path}).empty()) {
      altered = {path};
      break;
    }
  }
  if (altered.size() > 1) {
    for (const std::string& path : std::set<std::string>(altered)) {
      if (checker->calls >= end) break;
      std::set<std::string> fewer = altered;
      fewer.erase(path);
      if (!difference(fewer).empty()) altered = std::move(fewer);
    }
  }
  const std::string effect = difference(altered);
  return absl::StrCat("the hint does not name ", absl::StrJoin(altered, ", "),
                      ", and a change there changes ",
                      effect.empty() ? "the response" : effect);
}

}  // namespace

CheckResult CheckDeterministic(const Call& call, int rounds) {
  Checker checker(call.state());
  const std::string bytes = checker.request.SerializeAsString();
  const absl::Time start = absl::Now();
  const auto base = checker.Run(bytes);
  const absl::Time end = absl::Now();
  const auto fail = [&](const std::string& text) {
    return CheckResult(text, checker.calls);
  };
  const std::string time = TimePath(base->response, {bytes, start, end});
  if (!time.empty()) return fail(time + " is the time of the call");
  uint64_t random = 1;
  for (int round = 0; round < rounds; ++round) {
    const auto same = checker.Run(bytes);
    std::string path = Checker::Differs(*base, *same);
    if (!path.empty()) {
      return fail(path + " differs between two calls with the same request");
    }
    if (same->bytes != base->bytes) {
      return fail("the same bytes get an equal response with other bytes");
    }
    proto::RunFunctionRequest tagged = checker.request;
    const std::string tag = absl::StrCat("tag-", NextRandom(&random));
    tagged.mutable_meta()->set_tag(tag);
    const auto shuffled = checker.Run(ShuffledBytes(tagged, &random));
    path = Checker::Differs(*base, *shuffled);
    if (!path.empty()) {
      return fail(path + " differs when only the tag and the order of maps do");
    }
    if (shuffled->status.ok() && shuffled->response.meta().tag() != tag) {
      return fail("meta.tag is not the request's");
    }
    path = Checker::OtherReads(base, shuffled);
    if (!path.empty()) {
      return fail(path + " is read in some of the calls with equal requests");
    }
  }
  return fail("");
}

CheckResult CheckReads(const Call& call, int rounds) {
  Checker checker(call.state());
  const auto base = checker.Run(checker.request);
  const auto fail = [&](const std::string& text) {
    return CheckResult(text, checker.calls);
  };
  if (!base->status.ok()) return fail("");
  if (base->depends.empty()) return fail("the call reports no hint");
  const absl::StatusOr<cache::key::MaskSet> reads = cache::key::MaskSet::Parse(
      Answer(base).reads(), cache::key::MaskRules::kAnyPath);
  if (!reads.ok()) {
    return fail(absl::StrCat("the hint: ", reads.status().message()));
  }
  const auto repeat = [&]() -> std::string {
    const auto same = checker.Run(checker.request);
    const std::string path = Checker::Differs(*base, *same);
    if (!path.empty()) {
      return path + " differs between two calls with the same request";
    }
    const std::string read = Checker::OtherReads(base, same);
    if (read.empty()) return "";
    return read + " is read in some of the calls with the same request";
  };
  std::string again = repeat();
  for (int round = 0; round < rounds && again.empty(); ++round) {
    std::set<std::string> altered;
    const uint64_t seed = static_cast<uint64_t>(round) + 1;
    const auto answer =
        checker.Run(Altered(checker.request, *reads, seed, nullptr, &altered));
    if (Checker::Differs(*base, *answer).empty()) continue;
    // A function with a memory of its own differs for the same request, too.
    again = repeat();
    if (again.empty()) {
      return fail(Gap(&checker, *base, *reads, seed, std::move(altered)));
    }
  }
  return fail(again.empty() ? repeat() : again);
}

CheckResult CheckSafe(const Call& call) {
  Checker checker(call.state());
  const auto base = checker.Run(checker.request);
  proto::RunFunctionRequest altered = checker.request;
  std::string failure;
  const auto removed = [&](const std::string& path) {
    const auto answer = checker.Run(altered);
    if (!answer->status.ok() || !Answer(answer).fatal().empty()) return true;
    for (const std::string& name : Answer(base).resources()) {
      if (!altered.observed().resources().contains(name) ||
          answer->response.desired().resources().contains(name)) {
        continue;
      }
      failure = absl::StrCat(
          "without ", path, ", the response leaves out ",
          PathBelow("desired.resources", name),
          ", which is observed and was desired: it would be deleted");
      return false;
    }
    return true;
  };
  Remover remover(removed);
  bool more = removed("any change");
  const auto names = [](const auto& map) {
    std::set<std::string> keys;
    for (const auto& [key, value] : map) keys.insert(key);
    return keys;
  };
  auto& observed = *altered.mutable_observed()->mutable_resources();
  for (const std::string& name :
       names(checker.request.observed().resources())) {
    const std::string path = PathBelow("observed.resources", name);
    observed.erase(name);
    more = more && removed(path);
    observed[name] = checker.request.observed().resources().at(name);
    auto& details = *observed[name].mutable_connection_details();
    for (const std::string& key : names(details)) {
      std::string value;
      value.swap(details[key]);
      details.erase(key);
      more = more && removed(PathBelow(path + ".connection_details", key));
      details[key].swap(value);
    }
    if (more && observed[name].has_resource()) {
      more = remover.Fields(observed[name].mutable_resource(),
                            PathBelow(path, "resource"));
    }
  }
  const auto items = [&](const char* field, auto* all) {
    const auto before = *all;
    for (const std::string& name : names(before)) {
      proto::Resources& of = (*all)[name];
      const std::string path = PathBelow(PathBelow(field, name), "items");
      for (int i = 0; more && i < before.at(name).items_size(); ++i) {
        of.mutable_items()->DeleteSubrange(i, 1);
        more = removed(PathOfElement(path, i));
        of = before.at(name);
      }
      of.clear_items();
      more = more && removed(path);
      of = before.at(name);
    }
  };
  items("required_resources", altered.mutable_required_resources());
  items("extra_resources", altered.mutable_extra_resources());
  return CheckResult(failure, checker.calls);
}

}  // namespace fncache::function::testing
