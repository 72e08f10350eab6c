// SPDX-License-Identifier: Apache-2.0
// The names of steps, and the figures that scrapes read.
#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "proxy/serving/tuning.h"

namespace fncache::proxy::serving {
namespace {

namespace fnv1 = apiextensions::fn::proto::v1;

google::protobuf::Value Text(const std::string& text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  return value;
}

fnv1::RunFunctionRequest Request() {
  fnv1::RunFunctionRequest request;
  auto& composite = *request.mutable_observed()
                         ->mutable_composite()
                         ->mutable_resource()
                         ->mutable_fields();
  composite["apiVersion"] = Text("example.org/v1");
  composite["kind"] = Text("Bucket");
  auto& metadata =
      *composite["metadata"].mutable_struct_value()->mutable_fields();
  metadata["namespace"] = Text("team-a");
  metadata["name"] = Text("logs");
  auto& input = *request.mutable_input()->mutable_fields();
  input["apiVersion"] = Text("gotemplating.fn.crossplane.io/v1beta1");
  input["kind"] = Text("GoTemplate");
  input["source"] = Text("Inline");
  return request;
}

StepNames NamesOf(const fnv1::RunFunctionRequest& request) {
  return serving::NamesOf(request.SerializeAsString());
}

TEST(NamesOfTest, AStepHasTheNamesOfItsInputAndItsComposite) {
  const StepNames names = NamesOf(Request());
  EXPECT_EQ(names.input_kind, "GoTemplate");
  EXPECT_EQ(names.input_digest.size(), 8u);
  EXPECT_EQ(names.api_version, "example.org/v1");
  EXPECT_EQ(names.kind, "Bucket");
  EXPECT_EQ(names.composite, "Bucket team-a/logs");
}

TEST(NamesOfTest, TheDigestIsOfTheInputAlone) {
  fnv1::RunFunctionRequest request = Request();
  const std::string digest = NamesOf(request).input_digest;
  // Encoders order maps at random.
  fnv1::RunFunctionRequest reordered = Request();
  reordered.clear_input();
  auto& fields = *reordered.mutable_input()->mutable_fields();
  for (const char* const name : {"source", "kind", "apiVersion"}) {
    fields[name] = request.input().fields().at(name);
  }
  EXPECT_EQ(NamesOf(reordered).input_digest, digest);
  (*request.mutable_observed()
        ->mutable_composite()
        ->mutable_resource()
        ->mutable_fields())["spec"] = Text("other");
  EXPECT_EQ(NamesOf(request).input_digest, digest);
  (*request.mutable_input()->mutable_fields())["source"] = Text("FileSystem");
  EXPECT_NE(NamesOf(request).input_digest, digest);
}

TEST(NamesOfTest, WhatIsMissingIsEmpty) {
  fnv1::RunFunctionRequest request = Request();
  request.clear_input();
  EXPECT_EQ(NamesOf(request).input_kind, "");
  EXPECT_EQ(NamesOf(request).input_digest, "");
  request = Request();
  request.mutable_input()->clear_fields();
  EXPECT_EQ(NamesOf(request).input_kind, "");
  EXPECT_EQ(serving::NamesOf("\xff\xff").kind, "");
  // A kind that is no text.
  request = Request();
  (*request.mutable_input()->mutable_fields())["kind"].set_number_value(3);
  EXPECT_EQ(NamesOf(request).input_kind, "");
}

TEST(TuningFiguresTest, CountsAreExactAndKeysFollowSoon) {
  Tuning tuning;
  EXPECT_EQ(tuning.FiguresOf(7, absl::Now()).budget, Evidence::kFirstBudget);
  TunedRun run;
  run.function = 7;
  run.step = {1, 2};
  run.key = {3, 4};
  run.tune_share = 1;
  TunedEntry older;
  const absl::Time start = absl::Now();
  for (uint64_t i = 0; i < 3; ++i) {
    cache::key::DriftKinds kinds;
    kinds.push_back({/*kind=*/1, /*value=*/i, /*is_time=*/true});
    run.kinds = &kinds;
    run.entry = {start + absl::Seconds(i), {5, i}, {6, 6}, absl::Hours(1)};
    tuning.evidence.OnRun(run, i == 0 ? nullptr : &older, absl::Now());
    older = run.entry;
  }
  EXPECT_EQ(tuning.FiguresOf(7, absl::Now()).budget,
            Evidence::kFirstBudget + 3);
  while (tuning.FiguresOf(7, absl::Now()).keys_repeating == 0) {
    ASSERT_LT(absl::Now() - start, absl::Seconds(10));
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(tuning.FiguresOf(7, absl::Now()).keys_repeating, 1u);
  EXPECT_EQ(tuning.FiguresOf(8, absl::Now()).keys_repeating, 0u);
}

}  // namespace
}  // namespace fncache::proxy::serving
