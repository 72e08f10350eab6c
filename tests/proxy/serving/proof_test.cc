// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/proof.h"

#include <string>

#include "gtest/gtest.h"

namespace fncache::proxy::serving {
namespace {

// Gives the answers (s: same, d: differs, n: none) to a proof, and returns what
// it asked: numbers of questions, 0 for the request as it came, and "v" before
// the first about versions alone.
std::string Asked(Proof* proof, const std::string& answers) {
  std::string asked;
  bool versions_alone = false;
  for (const char answer : answers) {
    EXPECT_FALSE(proof->ended()) << asked;
    const Question question = proof->next();
    if (question.versions_alone && !versions_alone) asked += "v";
    versions_alone = question.versions_alone;
    asked += std::to_string(question.number);
    proof->Take(answer == 's'   ? Answered::kSame
                : answer == 'd' ? Answered::kDiffers
                                : Answered::kNone);
  }
  return asked;
}

TEST(ProofTest, FourSameAnswersProveIt) {
  Proof proof(Reads::kNothing);
  EXPECT_EQ(Asked(&proof, "sss"), "123");
  EXPECT_FALSE(proof.ended());
  EXPECT_EQ(Asked(&proof, "s"), "4");
  EXPECT_TRUE(proof.ended());
  EXPECT_EQ(proof.result(), ProofResult::kProven);
  EXPECT_TRUE(proof.proven());
  EXPECT_FALSE(proof.versions_alone());
  EXPECT_EQ(proof.reads(), Reads::kNothing);
}

TEST(ProofTest, ADifferenceIsCheckedThenVersionsAreAskedAboutAlone) {
  Proof proof(Reads::kNothing);
  EXPECT_EQ(Asked(&proof, "ssdsdd"), "123033");
  EXPECT_FALSE(proof.ended());
  // Found at once, although nothing is decided.
  EXPECT_EQ(proof.reads(), Reads::kUndecided);
  EXPECT_EQ(Asked(&proof, "ssss"), "v1234");
  EXPECT_TRUE(proof.ended());
  EXPECT_EQ(proof.result(), ProofResult::kRead);
  EXPECT_EQ(proof.reads(), Reads::kTimes);
  EXPECT_TRUE(proof.proven());
  EXPECT_TRUE(proof.versions_alone());
}

TEST(ProofTest, VersionsAreReadIfTheyMakeADifferenceAlone) {
  Proof proof(Reads::kNothing);
  EXPECT_EQ(Asked(&proof, "dsddsdsdd"), "1011v12022");
  EXPECT_TRUE(proof.ended());
  EXPECT_EQ(proof.result(), ProofResult::kRead);
  EXPECT_EQ(proof.reads(), Reads::kAll);
  EXPECT_FALSE(proof.proven());
}

TEST(ProofTest, WhereTheStepReadsTimesOnlyVersionsAreAskedAbout) {
  for (const Reads known : {Reads::kTimes, Reads::kUndecided}) {
    Proof proven(known);
    EXPECT_EQ(Asked(&proven, "ssss"), "v1234");
    EXPECT_EQ(proven.result(), ProofResult::kProven);
    EXPECT_EQ(proven.reads(), Reads::kTimes);
    EXPECT_TRUE(proven.versions_alone());
    Proof read(known);
    EXPECT_EQ(Asked(&read, "sdsdd"), "v12022");
    EXPECT_EQ(read.result(), ProofResult::kRead);
    EXPECT_EQ(read.reads(), Reads::kAll);
  }
}

TEST(ProofTest, InAllOtherCasesTheStepVaries) {
  for (const char* const answers :
       {"dd", "ssdd", "dss", "sssdss", "dsds", "dsdddd"}) {
    Proof proof(Reads::kNothing);
    Asked(&proof, answers);
    EXPECT_TRUE(proof.ended()) << answers;
    EXPECT_EQ(proof.result(), ProofResult::kVaries) << answers;
    EXPECT_FALSE(proof.proven());
  }
}

TEST(ProofTest, AnErrorIsNoAnswerAndEndsIt) {
  for (const char* const answers :
       {"n", "sssn", "dn", "dsn", "dsdn", "dsddsn"}) {
    Proof proof(Reads::kNothing);
    Asked(&proof, answers);
    EXPECT_TRUE(proof.ended()) << answers;
    EXPECT_EQ(proof.result(), ProofResult::kFailed) << answers;
    EXPECT_FALSE(proof.proven());
  }
}

TEST(ProofTest, AnAbortChangesNoEnd) {
  Proof proof(Reads::kNothing);
  Asked(&proof, "ss");
  proof.Abort();
  EXPECT_TRUE(proof.ended());
  EXPECT_EQ(proof.result(), ProofResult::kFailed);
  Proof proven(Reads::kNothing);
  Asked(&proven, "ssss");
  proven.Abort();
  EXPECT_EQ(proven.result(), ProofResult::kProven);
}

}  // namespace
}  // namespace fncache::proxy::serving
