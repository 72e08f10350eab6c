// SPDX-License-Identifier: Apache-2.0
// Nodes without drift are equal if and only if keys without drift are.
#include "insight/request/node_drift.h"

#include <string>
#include <vector>

#include "cache/key/digest.h"
#include "cache/key/mask.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "insight/explain/request_reader.h"
#include "insight/request/nodes.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/random_drift.h"
#include "tests/cache/key/random_request.h"
#include "tests/common/long_form.h"

namespace fncache::insight::request {
namespace {

using ::apiextensions::fn::proto::v1::RunFunctionRequest;
using cache::key::Digest;
using cache::key::Digester;
using cache::key::DigestScratch;
using cache::key::MaskSet;
using cache::key::Random;
using explain::RequestReader;

TEST(NodeDrift, RequestsDifferInDriftOnlyIfTheirKeysAreEqualWithoutIt) {
  const FingerprintSecret secret = FingerprintSecret::Random();
  RequestReader a(secret), b(secret), tuned_a(secret), tuned_b(secret);
  DigestScratch scratch;
  Random random(20261129);
  int equal = 0, drifted = 0, other = 0;
  for (int i = 0; i < fncache::testing::FewerSanitized(6000); ++i) {
    const MaskSet& masks = cache::key::MaskSets()
        [random.OneIn(2) ? 0 : random.Below(cache::key::MaskSets().size())];
    const cache::key::KeyScope scope = {"f",
                                        "m",
                                        "g",
                                        cache::key::KeySource::kContent,
                                        cache::key::KeyHash::kXxh3,
                                        /*drift=*/true};
    const Digester digester(cache::key::Seed{}, scope, masks);
    RunFunctionRequest request = cache::key::RandomRequest(&random);
    cache::key::AddDrift(&request, &random);
    // A list's nodes do not show whether unknown fields are of the list or of
    // the value around it, which is no drift then.
    request.DiscardUnknownFields();
    RunFunctionRequest edited = request;
    for (size_t edits = random.Below(3); edits > 0; --edits) {
      cache::key::MutateDrift(&edited, &random);
    }
    if (random.OneIn(3)) cache::key::Mutate(&edited, &random);
    edited.DiscardUnknownFields();
    const std::string bytes = request.SerializeAsString();
    const std::string edited_bytes = edited.SerializeAsString();
    const Digest before = digester.Compute({bytes}, &scratch);
    const Digest now = digester.Compute({edited_bytes}, &scratch);
    ASSERT_EQ(a.Read(masks, {bytes}), before.keyed);
    ASSERT_EQ(b.Read(masks, {edited_bytes}), now.keyed);
    if (!before.keyed || !now.keyed) continue;
    ASSERT_EQ(a.driftless == b.driftless, before.key == now.key)
        << request.DebugString() << "\n====\n"
        << edited.DebugString();
    // With tuning, requests of equal key have equal nodes.
    ASSERT_TRUE(tuned_a.Read(masks, {bytes}, /*tuned=*/true));
    ASSERT_TRUE(tuned_b.Read(masks, {edited_bytes}, /*tuned=*/true));
    EXPECT_EQ(tuned_a.driftless, a.driftless);
    if (before.key == now.key) {
      ASSERT_EQ(tuned_a.paths, tuned_b.paths);
      ASSERT_EQ(tuned_a.values, tuned_b.values);
    }
    if (before.key != now.key) {
      ++other;
    } else if (before.drift == now.drift) {
      ++equal;
    } else {
      ++drifted;
      ASSERT_FALSE(a.paths == b.paths && a.values == b.values);
    }
  }
  EXPECT_GT(equal, 100);
  EXPECT_GT(drifted, 100);
  EXPECT_GT(other, 100);
}

// Each node's drift, in the order of the nodes; other nodes are left out.
std::string DriftsOf(const std::string& json) {
  RunFunctionRequest request;
  const auto status =
      google::protobuf::util::JsonStringToMessage(json, &request);
  EXPECT_TRUE(status.ok()) << status.message();
  RequestNodes nodes(FingerprintSecret::Random());
  EXPECT_TRUE(nodes.Read({request.SerializeAsString()}));
  NodeDrifts drifts;
  drifts.Read(nodes.nodes());
  std::string found;
  for (size_t i = 0; i < nodes.nodes().size(); ++i) {
    static constexpr const char* kNames[] = {"", "version", "managedFields",
                                             "time", ""};
    const std::string name = kNames[static_cast<int>(drifts[i])];
    if (!name.empty()) found += nodes.Spell(i) + " " + name + "\n";
  }
  return found;
}

TEST(NodeDrift, IsWhatTheDesignLists) {
  EXPECT_EQ(DriftsOf(R"({"observed": {
      "composite": {"resource": {
        "metadata": {"resourceVersion": "1", "generation": 2,
                     "managedFields": [{"time": "2026-01-01T00:00:00Z"}]},
        "status": {"at": "2026-01-01T00:00:00Z", "resourceVersion": "1"}}},
      "resources": {"r": {"resource": {
        "metadata": {"resourceVersion": "x",
                     "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"at": ["2026-01-01T00:00:00Z", "no"], "day": "2026-01-01",
                   "deep": {"resourceVersion": "7", "managedFields": []}}}}}},
      "desired": {"resources": {"r": {"resource": {
        "metadata": {"resourceVersion": "1"}}}}},
      "requiredResources": {"n": {"items": [{"resource": {
        "status": "2026-01-01T00:00:00Z"}}]}}})"),
            "observed.composite.resource.metadata.managedFields managedFields\n"
            "observed.composite.resource.metadata.resourceVersion version\n"
            "observed.resources.r.resource.status.at[0] time\n"
            "observed.resources.r.resource.status.deep.managedFields "
            "managedFields\n"
            "observed.resources.r.resource.status.deep.resourceVersion "
            "version\n"
            "required_resources.n.items[0].resource.status time\n");
}

// The nodes do not show the contents of a Secret.
TEST(NodeDrift, ASecretHasManagedFieldsToo) {
  const auto secret = [](const std::string& manager, const std::string& data) {
    return R"({"observed": {"resources": {"s": {"resource": {
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"resourceVersion": "1", "managedFields": [{"manager": ")" +
           manager + R"("}]}, "data": {"a": ")" + data + R"("}}}}}})";
  };
  const FingerprintSecret fingerprints = FingerprintSecret::Random();
  const auto driftless = [&](const std::string& json) {
    RunFunctionRequest request;
    EXPECT_TRUE(
        google::protobuf::util::JsonStringToMessage(json, &request).ok());
    RequestReader reader(fingerprints);
    EXPECT_TRUE(reader.Read(MaskSet(), {request.SerializeAsString()}));
    return reader.driftless;
  };
  EXPECT_EQ(driftless(secret("x", "1")), driftless(secret("y", "1")));
  EXPECT_NE(driftless(secret("x", "1")), driftless(secret("x", "2")));
}

}  // namespace
}  // namespace fncache::insight::request
