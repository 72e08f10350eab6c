// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/provider_status.h"

#include <algorithm>

#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "tests/runner/messages.h"
#include "text/object.h"

namespace fncache::runner::load::model {
namespace {

using google::protobuf::Struct;
using Content = StatusField::Content;
using When = StatusField::When;

const absl::Time kNow = absl::FromUnixSeconds(1790000000);

Struct Bucket() {
  return FromJson<Struct>(
      R"({"kind": "Bucket", "metadata": {"uid": "u-1"}, "spec": {}})");
}

StatusField Field(std::vector<std::string> path, When when, Content content) {
  StatusField field;
  field.path = std::move(path);
  field.when = when;
  field.content = content;
  return field;
}

TEST(ProviderStatusTest, EachWriteSetsItsOwnFields) {
  Struct bucket = Bucket();
  WriteStatus(DefaultStatus(), When::kFirst, kNow, &bucket);
  WriteStatus(DefaultStatus(), When::kEvery, kNow, &bucket);
  EXPECT_EQ(text::Find(bucket, {"status", "atProvider", "id"}), nullptr);
  WriteStatus(DefaultStatus(), When::kEvery, kNow, &bucket);
  WriteStatus(DefaultStatus(), When::kReady, kNow, &bucket);
  EXPECT_EQ(
      text::Find(bucket, {"status", "atProvider", "writes"})->number_value(),
      2);
  EXPECT_EQ(text::FindText(bucket, {"status", "atProvider", "state"}),
            "available");
  Struct later = bucket;
  WriteStatus(DefaultStatus(), When::kHeartbeat, kNow + absl::Seconds(1),
              &later);
  EXPECT_NE(text::FindText(later, {"status", "atProvider", "lastChecked"}),
            text::FindText(bucket, {"status", "atProvider", "lastChecked"}));
  text::Remove(&later, {"status", "atProvider", "lastChecked"});
  text::Remove(&bucket, {"status", "atProvider", "lastChecked"});
  EXPECT_TRUE(text::Equal(later, bucket));
}

TEST(ProviderStatusTest, IdentifiersFollowFromUidAndPath) {
  Struct one = Bucket();
  WriteStatus(DefaultStatus(), When::kReady, kNow, &one);
  Struct same = Bucket();
  WriteStatus(DefaultStatus(), When::kReady, kNow + absl::Hours(1), &same);
  EXPECT_TRUE(text::Equal(one, same));
  Struct other = Bucket();
  text::SetText(&other, {"metadata", "uid"}, "u-2");
  WriteStatus(DefaultStatus(), When::kReady, kNow, &other);
  EXPECT_NE(text::FindText(one, {"status", "atProvider", "id"}),
            text::FindText(other, {"status", "atProvider", "id"}));
}

TEST(ProviderStatusTest, NamedFieldsReplaceDefaultOnes) {
  StatusField state =
      Field({"atProvider", "state"}, When::kReady, Content::kText);
  state.text = "RUNNING";
  StatusField vpc = Field({"vpcId"}, When::kReady, Content::kId);
  vpc.kind = "VPC";
  const auto all = StatusWith(
      {state, vpc, Field({"seen"}, When::kHeartbeat, Content::kTime)});
  // Three replaced two.
  EXPECT_EQ(all.size(), DefaultStatus().size() + 1);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const StatusField& field) {
                            return field.when == When::kHeartbeat;
                          }),
            1);
  Struct bucket = Bucket();
  for (const When when : {When::kFirst, When::kReady}) {
    WriteStatus(all, when, kNow, &bucket);
  }
  EXPECT_EQ(text::FindText(bucket, {"status", "atProvider", "state"}),
            "RUNNING");
  EXPECT_EQ(text::Find(bucket, {"status", "vpcId"}), nullptr);
  text::SetText(&bucket, {"kind"}, "VPC");
  WriteStatus(all, When::kReady, kNow, &bucket);
  EXPECT_EQ(text::FindText(bucket, {"status", "vpcId"}).substr(0, 4), "vpc-");
}

}  // namespace
}  // namespace fncache::runner::load::model
