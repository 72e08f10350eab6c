#include "proxy/telemetry/status_page.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::proxy::telemetry {
namespace {

using testing::HasSubstr;
using testing::Not;

StatusPageInput Input() {
  StatusPageInput input;
  input.version = "1.2.3";
  input.now = absl::FromUnixSeconds(1'800'000'000);
  input.uptime = absl::Hours(27) + absl::Minutes(2) + absl::Seconds(3);
  input.state = "ready";
  input.settings = "listen: 0.0.0.0:9443\n";
  return input;
}

TEST(StatusPageTest, TellsVersionUptimeStateAndSettings) {
  const std::string page = RenderStatusPage(Input());
  EXPECT_THAT(page, HasSubstr("<h1>fncache 1.2.3 <span class=\"ready\">ready"));
  EXPECT_THAT(page, HasSubstr("Up for 1d 3h 2m 3s, at 2027-01-15 08:00:00"));
  EXPECT_THAT(page, HasSubstr("<pre>listen: 0.0.0.0:9443\n</pre>"));
}

TEST(StatusPageTest, TellsOfEachFunctionWhatItSaved) {
  Instruments instruments({"function-a", "idle"});
  const FunctionInstruments& f = instruments.function(0);
  for (int i = 0; i < 3; ++i) {
    f.Begin(Method::kV1);
    f.RecordHit(absl::Microseconds(5), absl::Seconds(50));
    f.End({Method::kV1, Outcome::kHit, 0, false, absl::Microseconds(60)});
  }
  f.Begin(Method::kV1);
  f.End({Method::kV1, Outcome::kMiss, 0, true, absl::Seconds(50)});
  f.Begin(Method::kV1);
  StatusPageInput input = Input();
  for (cache::FunctionId id = 0; id < 2; ++id) {
    input.functions.push_back({instruments.function(id).name(),
                               instruments.function(id).Summarize()});
  }
  const std::string page = RenderStatusPage(input);
  // function, calls, hit rate, hits, misses, fills, saved, in flight, flights
  EXPECT_THAT(page, HasSubstr("<tr><td>function-a<td>4<td>75.0 %<td>3<td>1<td>0"
                              "<td>2m 30s<td>1<td>0<td>0</tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>idle<td>0<td>–<td>0<td>0<td>0<td>0s"));
  // Three hits of 60 us fall into the bucket of 50 to 75.
  EXPECT_THAT(page, HasSubstr("<td class=left>hit<td>3<td>62 µs<td>75 µs<td>60 "
                              "µs</tr>"));
  EXPECT_THAT(page, HasSubstr("<td class=left>miss<td>1<td>45.00 s"));
  EXPECT_THAT(page, Not(HasSubstr("<td class=left>bypass")));
}

TEST(StatusPageTest, TellsOfEachTierHowFullItIs) {
  StatusPageInput input = Input();
  Instruments::TierSummary tier;
  tier.tier = cache::Tier::kDisk;
  tier.stats = {1'234'567, 1ull << 30, 4ull << 30};
  tier.removed[static_cast<size_t>(cache::Removal::kEvicted)] = 1000;
  input.tiers.push_back(tier);
  EXPECT_THAT(RenderStatusPage(input),
              HasSubstr("<tr><td>disk<td>1,234,567<td>1.0 GiB<td>4.0 GiB<td>"
                        "25.0 %<td>1,000<td>0<td>0<td>0</tr>"));
  input.tiers[0].stats.up = false;
  EXPECT_THAT(RenderStatusPage(input), HasSubstr("<tr><td>disk (not open)"));
}

TEST(StatusPageTest, NothingBreaksOutOfItsPlace) {
  StatusPageInput input = Input();
  const std::string evil = "</pre><script>alert(\"1\")</script>&amp;'";
  input.version = evil;
  input.state = evil;
  input.settings = evil;
  Instruments instruments({evil});
  instruments.function(0).RecordUpstream(0, absl::Seconds(1));
  input.functions.push_back({evil, instruments.function(0).Summarize()});
  const std::string page = RenderStatusPage(input);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page,
              HasSubstr("<td>&lt;/pre&gt;&lt;script&gt;alert(&quot;1&quot;)"
                        "&lt;/script&gt;&amp;amp;&#39;<td>"));
}

TEST(StatusPageTest, NeedsNoScript) {
  EXPECT_THAT(RenderStatusPage(Input()), Not(HasSubstr("<script")));
  EXPECT_THAT(RenderStatusPage(Input()), Not(HasSubstr("http")));
}

}  // namespace
}  // namespace fncache::proxy::telemetry
