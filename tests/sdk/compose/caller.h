// SPDX-License-Identifier: Apache-2.0
// Calls of functions for tests: a request made of YAML, and the response.
#ifndef FNCACHE_TESTS_SDK_COMPOSE_CALLER_H_
#define FNCACHE_TESTS_SDK_COMPOSE_CALLER_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fncache/function/context.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "sdk/compose/run.h"
#include "text/json.h"

namespace fncache::sdk {

namespace fn = fncache::function;
namespace v1 = apiextensions::fn::proto::v1;

google::protobuf::Struct FromYaml(absl::string_view yaml);

inline std::string ToJson(const google::protobuf::Struct& object) {
  google::protobuf::Value value;
  *value.mutable_struct_value() = object;
  return text::ToJsonText(value);
}

// The same as JSON, for comparisons.
inline std::string YamlAsJson(absl::string_view yaml) {
  return ToJson(FromYaml(yaml));
}

// Whether the messages are equal, maps unordered.
inline bool Same(const google::protobuf::Message& a,
                 const google::protobuf::Message& b) {
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

class Caller {
 public:
  Caller() {
    request.mutable_meta()->set_tag("tag");
    for (int i = v1::CAPABILITY_CAPABILITIES;
         i <= v1::CAPABILITY_REQUIRED_SCHEMAS; ++i) {
      request.mutable_meta()->add_capabilities(static_cast<v1::Capability>(i));
    }
    Composite("{apiVersion: example.org/v1, kind: XNet, metadata: {name: n}}");
  }

  Caller& Composite(absl::string_view yaml) {
    *request.mutable_observed()->mutable_composite()->mutable_resource() =
        FromYaml(yaml);
    return *this;
  }
  Caller& Observed(const std::string& name, absl::string_view yaml) {
    auto& all = *request.mutable_observed()->mutable_resources();
    *all[name].mutable_resource() = FromYaml(yaml);
    return *this;
  }
  Caller& Desired(const std::string& name, absl::string_view yaml) {
    auto& all = *request.mutable_desired()->mutable_resources();
    *all[name].mutable_resource() = FromYaml(yaml);
    return *this;
  }
  Caller& Required(const std::string& name,
                   const std::vector<std::string>& items) {
    auto& answer = (*request.mutable_required_resources())[name];
    answer.clear_items();
    for (const std::string& item : items) {
      *answer.add_items()->mutable_resource() = FromYaml(item);
    }
    return *this;
  }
  Caller& Input(absl::string_view yaml) {
    *request.mutable_input() = FromYaml(yaml);
    return *this;
  }
  Caller& OldRunner() {
    request.mutable_meta()->clear_capabilities();
    return *this;
  }

  // The function's response; the call must not fail.
  v1::RunFunctionResponse operator()(const fn::Function& function) {
    info.depends = true;
    result = Run(function, options, request.SerializeAsString(), info);
    EXPECT_TRUE(result.status.ok()) << result.status;
    response.Clear();
    EXPECT_TRUE(response.ParseFromString(result.response));
    return response;
  }

  // A resource of the last response; "" where it is left out.
  std::string Resource(const std::string& name) const {
    const auto& all = response.desired().resources();
    const auto found = all.find(name);
    return found == all.end() ? "" : ToJson(found->second.resource());
  }
  v1::Ready ReadyOf(const std::string& name) const {
    const auto& all = response.desired().resources();
    const auto found = all.find(name);
    return found == all.end() ? v1::READY_UNSPECIFIED : found->second.ready();
  }
  std::string DesiredComposite() const {
    return response.desired().composite().has_resource()
               ? ToJson(response.desired().composite().resource())
               : "";
  }
  // `WARNING KeptObserved: bucket.spec.x`.
  std::vector<std::string> Results() const {
    std::vector<std::string> all;
    for (const v1::Result& one : response.results()) {
      all.push_back(
          absl::StrCat(v1::Severity_Name(one.severity()).substr(9),
                       one.has_reason() ? absl::StrCat(" ", one.reason()) : "",
                       ": ", one.message()));
    }
    return all;
  }
  // `Composed=FALSE Waiting: text`.
  std::vector<std::string> Conditions() const {
    std::vector<std::string> all;
    for (const v1::Condition& one : response.conditions()) {
      all.push_back(absl::StrCat(
          one.type(), "=", v1::Status_Name(one.status()).substr(17), " ",
          one.reason(),
          one.has_message() ? absl::StrCat(": ", one.message()) : ""));
    }
    return all;
  }

  v1::RunFunctionRequest request;
  fn::Options options;
  CallInfo info;
  CallResult result;
  v1::RunFunctionResponse response;
};

}  // namespace fncache::sdk

#endif  // FNCACHE_TESTS_SDK_COMPOSE_CALLER_H_
