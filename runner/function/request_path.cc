// SPDX-License-Identifier: Apache-2.0
#include "runner/function/request_path.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "text/object.h"

namespace fncache::runner::function {

using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

namespace fn = ::apiextensions::fn::proto::v1;

using Path = absl::Span<const std::string>;
using Found = absl::StatusOr<absl::optional<Value>>;

Found Missing() { return absl::optional<Value>(); }

Found Unknown(absl::string_view field, absl::string_view accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", field, "\" is no field there; accepted: ", accepted));
}

Found TooShort(absl::string_view accepted) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the path ends above any value; it continues with ", accepted));
}

Found OfStruct(const Struct& root, Path path);

Found OfValue(const Value& value, Path path) {
  const Value* at = &value;
  for (size_t i = 0; i < path.size(); ++i) {
    if (at->kind_case() == Value::kStructValue) {
      return OfStruct(at->struct_value(), path.subspan(i));
    }
    uint32_t index = 0;
    if (at->kind_case() != Value::kListValue ||
        !absl::SimpleAtoi(path[i], &index) ||
        index >= static_cast<uint32_t>(at->list_value().values_size())) {
      return Missing();
    }
    at = &at->list_value().values(static_cast<int>(index));
  }
  if (text::IsNull(*at)) {
    return Missing();
  }
  return absl::optional<Value>(*at);
}

Found OfStruct(const Struct& root, Path path) {
  if (path.empty()) {
    Value all;
    *all.mutable_struct_value() = root;
    return absl::optional<Value>(all);
  }
  const auto found = root.fields().find(path[0]);
  if (found == root.fields().end()) return Missing();
  return OfValue(found->second, path.subspan(1));
}

// Bytes by key, as text.
template <typename Map>
Found OfBytes(const Map& map, Path path) {
  if (path.empty()) return TooShort("a key");
  if (path.size() > 1) return Missing();
  const auto found = map.find(path[0]);
  if (found == map.end()) return Missing();
  const std::string& bytes = found->second;
  if (!IsUtf8(bytes)) {
    return absl::InvalidArgumentError("the value there is not text");
  }
  Value text;
  text.set_string_value(bytes);
  return absl::optional<Value>(text);
}

constexpr char kOfResource[] = "resource or connection_details";

Found OfResource(const fn::Resource& resource, Path path) {
  if (path.empty()) return TooShort(kOfResource);
  if (path[0] == "resource") {
    if (!resource.has_resource()) return Missing();
    return OfStruct(resource.resource(), path.subspan(1));
  }
  if (path[0] == "connection_details") {
    return OfBytes(resource.connection_details(), path.subspan(1));
  }
  return Unknown(path[0], kOfResource);
}

// A path below a message that is not there is checked all the same: whether it
// is a path at all must not depend on the request.
Found OfNamedResource(
    const google::protobuf::Map<std::string, fn::Resource>& resources,
    Path path) {
  if (path.empty()) return TooShort("a resource's name");
  const auto found = resources.find(path[0]);
  return OfResource(found == resources.end() ? fn::Resource::default_instance()
                                             : found->second,
                    path.subspan(1));
}

constexpr char kOfState[] = "composite or resources";

Found OfState(const fn::State& state, Path path) {
  if (path.empty()) return TooShort(kOfState);
  if (path[0] == "composite") {
    return OfResource(state.composite(), path.subspan(1));
  }
  if (path[0] == "resources") {
    return OfNamedResource(state.resources(), path.subspan(1));
  }
  return Unknown(path[0], kOfState);
}

// `items` alone is the list of what was found, for counting.
Found OfItems(const fn::Resources& resources, Path path) {
  if (path.empty()) {
    Value list;
    list.mutable_list_value();
    for (const fn::Resource& item : resources.items()) {
      *(*list.mutable_list_value()
             ->add_values()
             ->mutable_struct_value()
             ->mutable_fields())["resource"]
           .mutable_struct_value() = item.resource();
    }
    return absl::optional<Value>(list);
  }
  uint32_t index = 0;
  if (!absl::SimpleAtoi(path[0], &index)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", path[0], "\" is no index; accepted: a number from 0"));
  }
  const bool there = index < static_cast<uint32_t>(resources.items_size());
  return OfResource(there ? resources.items(static_cast<int>(index))
                          : fn::Resource::default_instance(),
                    path.subspan(1));
}

Found OfRequired(const fn::RunFunctionRequest& request, Path path) {
  if (path.empty()) return TooShort("a requirement's name");
  const auto found = request.required_resources().find(path[0]);
  const bool there = found != request.required_resources().end();
  if (path.size() == 1) return TooShort("items");
  if (path[1] != "items") return Unknown(path[1], "items");
  if (!there && path.size() == 2) return Missing();
  return OfItems(there ? found->second : fn::Resources::default_instance(),
                 path.subspan(2));
}

Found OfCredentials(const fn::RunFunctionRequest& request, Path path) {
  if (path.empty()) return TooShort("a credential's name");
  if (path.size() < 3) return TooShort("credential_data.data.KEY");
  if (path[1] != "credential_data") return Unknown(path[1], "credential_data");
  if (path[2] != "data") return Unknown(path[2], "data");
  const auto found = request.credentials().find(path[0]);
  return OfBytes((found == request.credentials().end()
                      ? fn::Credentials::default_instance()
                      : found->second)
                     .credential_data()
                     .data(),
                 path.subspan(3));
}

}  // namespace

absl::StatusOr<absl::optional<Value>> LookUp(
    const fn::RunFunctionRequest& request,
    const std::vector<std::string>& segments) {
  constexpr char kRoots[] =
      "observed, desired, context, credentials, required_resources or input";
  const Path path(segments);
  if (path.empty()) return TooShort(kRoots);
  const Path rest = path.subspan(1);
  if (path[0] == "observed") return OfState(request.observed(), rest);
  if (path[0] == "desired") return OfState(request.desired(), rest);
  if (path[0] == "context") return OfStruct(request.context(), rest);
  if (path[0] == "input") return OfStruct(request.input(), rest);
  if (path[0] == "credentials") return OfCredentials(request, rest);
  if (path[0] == "required_resources") return OfRequired(request, rest);
  return Unknown(path[0], kRoots);
}

}  // namespace fncache::runner::function
