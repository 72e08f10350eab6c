// SPDX-License-Identifier: Apache-2.0
// Any bytes as a request, to a function that reads and writes at paths that the
// bytes choose. The response is a message that answers the same request again,
// and a FATAL one has what the request desires. It stays the same whatever
// becomes of the content that the hint does not name.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/field_path.h"
#include "fncache/function/context.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_lazy.pb.h"
#include "sdk/compose/run.h"
#include "tests/fuzz/check.h"
#include "text/deterministic_bytes.h"

namespace {

using fncache::fuzz::Check;
namespace fn = fncache::function;
namespace lazy = fncache::sdk::lazy;

// Decisions, taken from the input. Zeros at its end.
class Choices {
 public:
  explicit Choices(absl::string_view bytes) : bytes_(bytes) {}
  size_t Below(size_t end) {
    if (bytes_.empty()) return 0;
    const size_t byte = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte % end;
  }
  const char* Key() {
    static constexpr const char* kKeys[] = {
        "spec", "status", "metadata", "conditions", "type", "id", "a.b", ""};
    return kKeys[Below(8)];
  }
  const char* Name() {
    static constexpr const char* kNames[] = {"a", "b", "c", "d"};
    return kNames[Below(4)];
  }

 private:
  absl::string_view bytes_;
};

// A path that the seeds have, or any.
fn::Value At(fn::Value value, Choices* choices) {
  switch (choices->Below(12)) {
    case 0:
      return value;
    case 1:
      return value["spec"]["id"];
    case 2:
      return value["status"]["id"];
    case 3:
      return value["metadata"]["name"];
    case 4:
      return value["spec"]["conditions"][choices->Below(3)]["type"];
    case 5:
      return value["spec"]["spec"]["spec"];
    case 6:
      return value["a.b"]["id"];
    case 7:
      return At(value[choices->Below(3)], choices);
    default:
      return At(value[choices->Key()], choices);
  }
}

fn::Value Source(fn::Context& ctx, Choices* choices) {
  switch (choices->Below(6)) {
    case 0:
      return At(ctx.composite().observed(), choices);
    case 1:
      return At(ctx.existing(choices->Name()).observed(), choices);
    case 2:
      return At(ctx.input(), choices);
    case 3:
      return At(ctx.context(choices->Key()), choices);
    case 4:
      return At(
          ctx.require(choices->Name(), "v1", "A", fn::MatchName("x")).first(),
          choices);
    default:
      return At(ctx.existing(choices->Name()), choices);
  }
}

fn::Value Target(fn::Context& ctx, Choices* choices) {
  switch (choices->Below(4)) {
    case 0:
      return At(ctx.composite(), choices);
    case 1:
      return At(ctx.output(), choices);
    default:
      return At(ctx.resource(choices->Name(), "v1", "A"), choices);
  }
}

void Step(fn::Context& ctx, Choices* choices) {
  switch (choices->Below(16)) {
    case 0:
      Target(ctx, choices).clear();
      return;
    case 1:
      Target(ctx, choices).add(Source(ctx, choices));
      return;
    case 2:
      Target(ctx, choices).merge(Source(ctx, choices));
      return;
    case 3:
      Target(ctx, choices) = fn::Concat("x", Source(ctx, choices));
      return;
    case 4:
      Target(ctx, choices) = fn::Json(Source(ctx, choices));
      return;
    case 5:
      ctx.set_context(choices->Key(), Source(ctx, choices));
      return;
    case 6:
      ctx.remove(choices->Name());
      return;
    case 7:
      ctx.resource(choices->Name(), "v1", "A")
          .depends_on(ctx.existing(choices->Name()));
      return;
    case 8:
      ctx.existing(choices->Name()).ready(fn::Ready::kObserved);
      return;
    case 9:
      ctx.composite().connection_detail(
          choices->Key(),
          ctx.existing(choices->Name()).connection_details()["k"]);
      return;
    case 10:
      Target(ctx, choices) = Source(ctx, choices).as<std::string>().optional();
      return;
    case 11:
      Target(ctx, choices) = Source(ctx, choices).as<double>();
      return;
    case 12:
      ctx.require("e", "v1", "A",
                  fn::MatchName(Source(ctx, choices).as<std::string>()));
      return;
    case 13:
      ctx.require_schema(choices->Name(), "v1", "A")
          .Validate(ctx.existing(choices->Name()));
      return;
    default:
      Target(ctx, choices) = Source(ctx, choices);
  }
}

// Changes everything that a hint does not name.
class Alterer {
 public:
  explicit Alterer(absl::string_view hint) {
    // Paths in quotes, in which quotes and backslashes are escaped.
    for (size_t i = 0; i < hint.size(); ++i) {
      if (hint[i] != '"') continue;
      std::string read;
      while (hint[++i] != '"') read += hint[i] == '\\' ? hint[++i] : hint[i];
      reads_.push_back(read);
    }
  }

  void Alter(lazy::Resource* resource, const std::string& path) {
    // A broken document counts as read. Protobuf repairs some of them.
    if (std::count(reads_.begin(), reads_.end(), path + ".resource")) return;
    std::string bytes;
    for (const std::string& piece : resource->resource()) bytes += piece;
    google::protobuf::Struct object;
    if (resource->resource().empty() || !object.ParseFromString(bytes)) return;
    Alter(&object, path + ".resource");
    resource->clear_resource();
    resource->add_resource(object.SerializeAsString());
  }

 private:
  bool IsRead(const std::string& path) const {
    for (const std::string& read : reads_) {
      if (path == read || absl::StartsWith(path, read + ".") ||
          absl::StartsWith(read, path + ".")) {
        return true;
      }
    }
    return false;
  }

  void Alter(google::protobuf::Struct* object, const std::string& path) {
    for (auto& [key, value] : *object->mutable_fields()) {
      Alter(&value, fncache::PathBelow(path, key));
    }
    if (!IsRead(path + ".added")) {
      (*object->mutable_fields())["added"].set_string_value("x");
    }
  }

  void Alter(google::protobuf::Value* value, const std::string& path) {
    if (!IsRead(path)) {
      value->set_string_value("altered");
    } else if (value->has_struct_value()) {
      Alter(value->mutable_struct_value(), path);
    } else if (value->has_list_value()) {
      for (auto& element : *value->mutable_list_value()->mutable_values()) {
        Alter(&element, path + ".*");
      }
    }
  }

  std::vector<std::string> reads_;
};

// The request with everything changed that `hint` does not name.
std::string Altered(lazy::RunFunctionRequest request, absl::string_view hint) {
  Alterer alterer(hint);
  auto& observed = *request.mutable_observed();
  if (observed.has_composite()) {
    alterer.Alter(observed.mutable_composite(), "observed.composite");
  }
  for (auto& [name, resource] : *observed.mutable_resources()) {
    alterer.Alter(&resource, fncache::PathBelow("observed.resources", name));
  }
  for (auto& [name, answer] : *request.mutable_required_resources()) {
    for (auto& item : *answer.mutable_items()) {
      alterer.Alter(
          &item, fncache::PathBelow("required_resources", name) + ".items.*");
    }
  }
  return request.SerializeAsString();
}

}  // namespace

// The first byte is the number of choices, which follow; then comes the
// request.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxInput = 1 << 14;
  if (size == 0 || size > kMaxInput) return 0;
  const absl::string_view all(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  const absl::string_view choices = all.substr(0, data[0]);
  const std::string request(all.substr(choices.size()));
  const auto function = [&](fn::Context& ctx) {
    Choices all_choices(choices);
    for (size_t i = 0; i < choices.size() / 8; ++i) Step(ctx, &all_choices);
    ctx.auto_ready();
  };
  fn::Options options;
  options.waiting_condition = "Composed";
  fncache::sdk::CallInfo info;
  info.depends = true;
  const auto result = fncache::sdk::Run(function, options, request, info);
  lazy::RunFunctionRequest parsed;
  Check(parsed.ParseFromString(request) == result.status.ok());
  if (!result.status.ok()) return 0;
  const auto again = fncache::sdk::Run(function, options, request, info);
  Check(again.response == result.response && again.depends == result.depends);
  // Names of resources may be stars in a long hint.
  if (result.depends.size() < 1500) {
    const auto other = fncache::sdk::Run(function, options,
                                         Altered(parsed, result.depends), info);
    Check(other.response == result.response);
  }
  lazy::RunFunctionResponse response;
  Check(response.ParseFromString(result.response));
  Check(response.meta().tag() == parsed.meta().tag());
  bool fatal = false;
  for (const auto& one : response.results()) {
    fatal = fatal || one.severity() == lazy::SEVERITY_FATAL;
    Check(one.message().size() <= 1024);
  }
  using fncache::text::DeterministicBytes;
  if (fatal) {
    Check(DeterministicBytes(response.desired()) ==
          DeterministicBytes(parsed.desired()));
  }
  return 0;
}
