// SPDX-License-Identifier: Apache-2.0
#include "text/rfc3339.h"

#include "gtest/gtest.h"

namespace fncache::text {
namespace {

// Returns `text` as this project writes times; "" if it is no time.
std::string Rewritten(absl::string_view text) {
  const absl::optional<absl::Time> time = ParseRfc3339(text);
  return time.has_value() ? FormatRfc3339(*time) : "";
}

TEST(Rfc3339Test, ReadsTimesInUtc) {
  for (const char* const text :
       {"2024-02-29T23:59:59Z", "2000-02-29T00:00:00Z", "0001-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    EXPECT_EQ(Rewritten(text), text);
  }
}

TEST(Rfc3339Test, AnHourMayHaveOneDigitAsInGo) {
  EXPECT_EQ(Rewritten("2024-01-01T5:06:07Z"), "2024-01-01T05:06:07Z");
  EXPECT_EQ(Rewritten("2024-01-01T0:06:07+01:00"), "2023-12-31T23:06:07Z");
}

TEST(Rfc3339Test, DropsFractions) {
  EXPECT_EQ(Rewritten("2024-01-01T00:00:01.5Z"), "2024-01-01T00:00:01Z");
  EXPECT_EQ(Rewritten("2024-01-01T00:00:01,999999999999Z"),
            "2024-01-01T00:00:01Z");
  EXPECT_EQ(FormatRfc3339(absl::UnixEpoch() + absl::Milliseconds(1999)),
            "1970-01-01T00:00:01Z");
}

TEST(Rfc3339Test, TakesOffsetsUpToWhatGoTakes) {
  EXPECT_EQ(Rewritten("2024-01-01T00:30:00+02:00"), "2023-12-31T22:30:00Z");
  EXPECT_EQ(Rewritten("2024-01-01T00:30:00-11:30"), "2024-01-01T12:00:00Z");
  EXPECT_EQ(Rewritten("2024-01-02T00:00:00+24:60"), "2023-12-31T23:00:00Z");
  EXPECT_EQ(Rewritten("2024-01-02T00:00:00+25:00"), "");
  EXPECT_EQ(Rewritten("2024-01-02T00:00:00+24:61"), "");
}

TEST(Rfc3339Test, EverythingElseIsNone) {
  for (const char* const text : {"",
                                 "soon",
                                 "2024-02-29",
                                 "2023-02-29T00:00:00Z",
                                 "1900-02-29T00:00:00Z",
                                 "2024-04-31T00:00:00Z",
                                 "2024-13-01T00:00:00Z",
                                 "2024-00-01T00:00:00Z",
                                 "2024-01-00T00:00:00Z",
                                 "2024-1-01T00:00:00Z",
                                 "2024-01-01T24:00:00Z",
                                 "2024-01-01T:00:00Z",
                                 "2024-01-01T000:00:00Z",
                                 "2024-01-01T00:60:00Z",
                                 "2024-01-01T00:0:00Z",
                                 "2024-01-01T00:00:60Z",
                                 "2024-01-01 00:00:00Z",
                                 "2024-01-01t00:00:00Z",
                                 "2024-01-01T00:00:00z",
                                 "2024-01-01T00:00:00",
                                 "2024-01-01T00:00:00.Z",
                                 "2024-01-01T00:00:00+0200",
                                 "2024-01-01T00:00:00+2:00",
                                 "2024-01-01T00:00:00+02:00x",
                                 "2024-01-01T00:00:00ZZ",
                                 " 2024-01-01T00:00:00Z",
                                 "24-01-01T00:00:00Z"}) {
    EXPECT_EQ(Rewritten(text), "") << text;
  }
}

}  // namespace
}  // namespace fncache::text
