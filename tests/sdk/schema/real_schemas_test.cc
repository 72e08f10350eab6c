// SPDX-License-Identifier: Apache-2.0
// Validate with the schemas of real CRDs and of an API server.
#include "tests/sdk/schema/real_schemas.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fncache/function/value.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sdk/schema/validate.h"
#include "tests/common/test_data.h"
#include "tests/sdk/schema/random_object.h"
#include "tests/sdk/schema/schema_testing.h"

namespace fncache::sdk::schema {
namespace {

using function::Value;
using function::Yaml;
using ::testing::HasSubstr;
using ::testing::Not;
using text::Json;

class RealSchemasTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::fncache::testing::DataFolders({"crds", "openapi"}).size() < 2) {
      GTEST_SKIP() << "no FNCACHE_TEST_DATA";
    }
  }
  static const std::vector<NamedSchema>& All() {
    static const auto* const all = [] {
      auto* const schemas = new std::vector<NamedSchema>(DefinitionSchemas());
      for (NamedSchema& one : DocumentSchemas()) {
        schemas->push_back(std::move(one));
      }
      return schemas;
    }();
    return *all;
  }
  // The problems with the schema of this name.
  static std::string With(const NamedSchema& schema, const char* object) {
    return Found(Yaml(schema.schema->dump()), Yaml(object));
  }
  static const NamedSchema& Named(const std::vector<NamedSchema>& schemas,
                                  absl::string_view name) {
    static const auto* const none = new NamedSchema;
    for (const NamedSchema& one : schemas) {
      if (absl::EndsWith(one.name, absl::StrCat(" ", name))) return one;
    }
    ADD_FAILURE() << "no schema " << name;
    return *none;
  }
};

TEST_F(RealSchemasTest, ADeploymentIsChecked) {
  const auto schemas = DocumentSchemas("apis__apps__v1_openapi.json");
  const NamedSchema& schema = Named(schemas, "Deployment");
  constexpr char kDeployment[] = R"(
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web, labels: {app: web}, annotations: {a/b: c}}
      spec:
        replicas: 3
        selector: {matchLabels: {app: web}}
        strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}
        template:
          metadata: {labels: {app: web}}
          spec:
            containers:
            - name: web
              image: nginx:1
              ports: [{containerPort: 80}]
              resources: {limits: {cpu: 500m, memory: 1Gi}, requests: {cpu: 1}}
              livenessProbe: {httpGet: {path: /, port: http}})";
  EXPECT_EQ(With(schema, kDeployment), "");
  EXPECT_EQ(With(schema, R"(
      apiVersion: apps/v1
      metadata: {name: 5, lables: {app: web}, creationTimestamp: today}
      spec:
        replicas: "3"
        minReadySeconds: 3000000000
        progressDeadlineSeconds: 1.5
        selector: {matchLabels: [web]}
        strategy: {rollingUpdate: {maxSurge: [1], maxUnavailable: 0.5}}
        templates: {}
        template:
          spec:
            containers:
            - image: nginx:1
              ports: [{containerPort: 80}, {port: 80}]
              resources: {limits: {cpu: true}})"),
            R"(metadata.creationTimestamp: must be a time as RFC 3339 has it
metadata.lables: is not known
metadata.name: must be text, is a number
spec.minReadySeconds: must fit int32
spec.progressDeadlineSeconds: must be a whole number
spec.replicas: must be a number, is text
spec.selector.matchLabels: must be an object, is a list
spec.strategy.rollingUpdate.maxSurge: must be a whole number or text, is a list
spec.strategy.rollingUpdate.maxUnavailable: must be a whole number or text, is a fraction
spec.template.spec.containers[0].name: is required
spec.template.spec.containers[0].ports[1].containerPort: is required
spec.template.spec.containers[0].ports[1].port: is not known
spec.template.spec.containers[0].resources.limits.cpu: has none of the accepted forms (oneOf)
spec.templates: is not known)");
}

TEST_F(RealSchemasTest, ACertificateIsChecked) {
  const auto schemas =
      DefinitionSchemas("kopium_certificates.cert-manager.io.yaml");
  const NamedSchema& schema = Named(schemas, "v1");
  EXPECT_EQ(With(schema, R"(
      apiVersion: cert-manager.io/v1
      kind: Certificate
      metadata: {name: a, namespace: b, labels: {c: d}}
      spec:
        secretName: tls
        issuerRef: {name: ca}
        privateKey: {algorithm: ECDSA, size: 256}
        usages: [server auth])"),
            "");
  EXPECT_EQ(With(schema, R"(
      spec:
        secretNames: tls
        privateKey: {algorithm: DSA, size: 2.5, rotation: Never}
        usages: [server auth, other])"),
            R"(spec.issuerRef: is required
spec.privateKey.algorithm: must be one of "RSA", "ECDSA", "Ed25519"
spec.privateKey.rotation: is not known
spec.privateKey.size: must be a whole number
spec.secretName: is required
spec.secretNames: is not known
spec.usages[1]: must be one of "signing", "digital signature", "content commitment", "key encipherment", "key agreement", "data encipherment", "cert sign", "crl sign", "encipher only", "decipher only" or 13 more)");
}

// Adds an unknown field to each object whose schema lists all fields. `added`
// gets the paths of these objects.
void AddUnknown(const Json& schema, const Json::json_pointer& at, Json* object,
                std::vector<Json::json_pointer>* added) {
  Json& value = (*object)[at];
  if (!value.is_object() || !schema.is_object()) return;
  const auto properties = schema.find("properties");
  if (properties == schema.end()) return;
  for (const auto& [key, below] : value.items()) {
    if (properties->contains(key)) {
      AddUnknown((*properties)[key], at / key, object, added);
    }
  }
  if (schema.contains("additionalProperties") ||
      schema.contains("x-kubernetes-preserve-unknown-fields")) {
    return;
  }
  value["unknownField"] = 1;
  added->push_back(at);
}

TEST_F(RealSchemasTest, WhatIsRequiredSufficesAndTyposAreFound) {
  RandomObject random(7);
  size_t unknown = 0;
  std::set<std::string> files;
  for (const NamedSchema& one : All()) {
    const Value schema = Yaml(one.schema->dump());
    files.insert(one.name.substr(0, one.name.find(' ')));
    EXPECT_THAT(Found(schema, Yaml("{metadata: {name: a, labels: {b: c}}}")),
                Not(HasSubstr("not known")))
        << one.name;
    for (int i = 0; i < 5; ++i) {
      Json object =
          i == 0 ? random.MakeLeast(*one.schema) : random.Make(*one.schema);
      if (!object.is_object()) continue;
      const Value value = Yaml(object.dump());
      std::set<std::string> before;
      for (const auto& problem :
           Validate(schema.ref().get(), value.ref().get())) {
        EXPECT_NE(problem.text, "is required") << one.name << problem.path;
        EXPECT_NE(problem.text, "is not known") << one.name << problem.path;
        EXPECT_FALSE(absl::StrContains(problem.text, ", is "))
            << one.name << problem.path << problem.text;
        before.insert(problem.path + problem.text);
      }
      std::vector<Json::json_pointer> added;
      AddUnknown(*one.schema, Json::json_pointer(), &object, &added);
      const Value changed = Yaml(object.dump());
      size_t found = 0;
      for (const auto& problem :
           Validate(schema.ref().get(), changed.ref().get())) {
        if (problem.text == "is not known") {
          EXPECT_TRUE(absl::EndsWith(problem.path, "unknownField"));
          ++found;
        }
      }
      EXPECT_EQ(found, std::min<size_t>(added.size(), 100)) << one.name;
      unknown += found;
    }
  }
  EXPECT_GT(unknown, 1000u);
  EXPECT_EQ(files.size(), 43u + 3 + 3);
}

}  // namespace
}  // namespace fncache::sdk::schema
