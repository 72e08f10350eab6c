// SPDX-License-Identifier: Apache-2.0
#include "runner/function/request_path.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/utf8.h"
#include "sdk/compose/call.h"

namespace fncache::runner::function {
namespace {

namespace lazy = sdk::lazy;

using fn::internal::Ref;
using Path = absl::Span<const std::string>;
using Found = absl::StatusOr<absl::optional<fn::Value>>;

Found Missing() { return absl::optional<fn::Value>(); }

Found Unknown(absl::string_view field, absl::string_view accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", field, "\" is no field there; accepted: ", accepted));
}

Found TooShort(absl::string_view accepted) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the path ends above any value; it continues with ", accepted));
}

// `document` may be null, which has nothing.
Found OfDocument(sdk::Document* document, Path path) {
  if (document == nullptr) return Missing();
  // A template waits for nothing: its copies have the nulls of what it reads.
  document->awaits = false;
  sdk::Node* node = document->root();
  for (const std::string& key : path) {
    const sdk::Node* const at = sdk::Peek(node);
    uint32_t index = 0;
    if (at != nullptr && at->kind == sdk::Kind::kList &&
        absl::SimpleAtoi(key, &index)) {
      sdk::Size(node);  // an index beyond it depends on it
      node = sdk::ElementOf(node, index);
    } else {
      node = sdk::ChildOf(node, key);
    }
  }
  sdk::ReadWhole(node);
  const sdk::Node* const found = sdk::Peek(node);
  if (found == nullptr || found->kind == sdk::Kind::kNull) return Missing();
  return absl::optional<fn::Value>(fn::Value(Ref(node)));
}

// A document that is an empty object where the request has none.
Found OfWhole(sdk::Document* document, Path path) {
  Found found = OfDocument(document, path);
  if (!found.ok() || found->has_value() || !path.empty()) return found;
  return absl::optional<fn::Value>(fn::Value() = fn::Object());
}

// Bytes by key, as text.
template <typename Map>
Found OfBytes(const Map& map, Path path) {
  if (path.empty()) return TooShort("a key");
  if (path.size() > 1) return Missing();
  const auto found = map.find(path[0]);
  if (found == map.end()) return Missing();
  if (!IsUtf8(found->second)) {
    return absl::InvalidArgumentError("the value there is not text");
  }
  return absl::optional<fn::Value>(fn::Value() = found->second);
}

constexpr char kOfResource[] = "resource or connection_details";

// A path below a message that is not there, which is null, is checked all the
// same: whether it is a path at all must not depend on the request.
Found OfResource(const lazy::Resource* resource, sdk::Document* document,
                 Path path) {
  if (path.empty()) return TooShort(kOfResource);
  if (path[0] == "resource") return OfDocument(document, path.subspan(1));
  if (path[0] == "connection_details") {
    return OfBytes(
        (resource == nullptr ? lazy::Resource::default_instance() : *resource)
            .connection_details(),
        path.subspan(1));
  }
  return Unknown(path[0], kOfResource);
}

constexpr char kOfState[] = "composite or resources";

Found OfState(fn::Context& ctx, bool observed, Path path) {
  if (path.empty()) return TooShort(kOfState);
  const sdk::ComposedResource* resource = nullptr;
  if (path[0] == "composite") {
    resource = ctx.composite().composed();
  } else if (path[0] != "resources") {
    return Unknown(path[0], kOfState);
  } else {
    path.remove_prefix(1);
    if (path.empty()) return TooShort("a resource's name");
    if (path[0].empty()) return OfResource(nullptr, nullptr, path.subspan(1));
    resource = ctx.existing(path[0]).composed();
  }
  path.remove_prefix(1);
  if (observed) return OfResource(resource->seen, resource->observed, path);
  // As earlier steps desire it, without what this call has set since.
  return OfResource(resource->before, resource->desired->base, path);
}

Found OfRequired(fn::Context& ctx, Path path) {
  if (path.empty()) return TooShort("a requirement's name");
  const auto& all = ctx.call()->request->required_resources();
  const bool there = !path[0].empty() && all.contains(path[0]);
  if (path.size() == 1) return TooShort("items");
  if (path[1] != "items") return Unknown(path[1], "items");
  if (path.size() > 2) {
    uint32_t index = 0;
    if (!absl::SimpleAtoi(path[2], &index)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", path[2], "\" is no index; accepted: a number from 0"));
    }
    if (!there || index >= ctx.bootstrap(path[0]).size()) {
      return OfResource(nullptr, nullptr, path.subspan(3));
    }
    const fn::Resource item = ctx.bootstrap(path[0])[index];
    return OfResource(item.composed()->seen, item.composed()->observed,
                      path.subspan(3));
  }
  if (!there) return Missing();
  // `items` alone is the list of what was found, for counting.
  fn::Value list;
  fn::internal::StartList(list.ref());
  for (const fn::Resource& item : ctx.bootstrap(path[0])) {
    fn::Value copy = list.add(fn::Object())["resource"];
    copy = fn::Object();
    item.composed()->observed->awaits = false;
    if (item.has_value()) copy = item;
  }
  return absl::optional<fn::Value>(list);
}

Found OfCredentials(fn::Context& ctx, Path path) {
  if (path.empty()) return TooShort("a credential's name");
  if (path.size() < 3) return TooShort("credential_data.data.KEY");
  if (path[1] != "credential_data") return Unknown(path[1], "credential_data");
  if (path[2] != "data") return Unknown(path[2], "data");
  const auto& all = ctx.call()->request->credentials();
  const auto found = all.find(path[0]);
  return OfBytes((found == all.end() ? lazy::Credentials::default_instance()
                                     : found->second)
                     .credential_data()
                     .data(),
                 path.subspan(3));
}

}  // namespace

Found LookUp(fn::Context& ctx, const std::vector<std::string>& segments) {
  constexpr char kRoots[] =
      "observed, desired, context, credentials, required_resources or input";
  const Path path(segments);
  if (path.empty()) return TooShort(kRoots);
  const Path rest = path.subspan(1);
  if (path[0] == "observed") return OfState(ctx, /*observed=*/true, rest);
  if (path[0] == "desired") return OfState(ctx, /*observed=*/false, rest);
  if (path[0] == "context") {
    return OfWhole(ctx.call()->ContextRoot()->document->base, rest);
  }
  if (path[0] == "input") {
    return OfWhole(ctx.input().ref().get()->document, rest);
  }
  if (path[0] == "credentials") return OfCredentials(ctx, rest);
  if (path[0] == "required_resources") return OfRequired(ctx, rest);
  return Unknown(path[0], kRoots);
}

}  // namespace fncache::runner::function
