// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/status_page.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proxy/telemetry/status_testing.h"

namespace fncache::proxy::telemetry {
namespace {

using testing::HasSubstr;
using testing::Not;

// The page from the row of a function to its end.
std::string RowOf(const std::string& page, const std::string& function) {
  const size_t at = page.find("<tr><td class=name>" + function);
  return at == std::string::npos ? ""
                                 : page.substr(at, page.find("</tr>", at) - at);
}

// A cell of two lines.
std::string Cell(const std::string& column, const std::string& recent,
                 const std::string& total) {
  return "<td data-of=\"" + column + "\"><span class=\"\">" + recent +
         "</span><small class=\"\">" + total + "</small>";
}

TEST(StatusPageTest, TellsVersionStateUptimeAndTime) {
  const std::string page = RenderStatusPage(StatusSource({"f"}).Now());
  EXPECT_THAT(page,
              HasSubstr("<h1>fncache 1.2.3 <span class=\"pill ready\">ready"));
  EXPECT_THAT(page,
              HasSubstr("Up for 1d 3h 2m 3s, seen at 2027-01-15 08:00:00 UTC"));
}

TEST(StatusPageTest, TellsTheLastMinuteBesideAllSinceTheStart) {
  StatusSource source({"function-a", "idle"});
  for (int i = 0; i < 3; ++i) {
    source.Call(0, Outcome::kHit, absl::Microseconds(60));
  }
  source.Call(0, Outcome::kMiss, absl::Seconds(2));
  source.Pass(absl::Minutes(2));
  source.Call(0, Outcome::kHit, absl::Microseconds(70));
  source.Call(0, Outcome::kCollapsed, absl::Seconds(1));
  source.Call(0, Outcome::kStale, absl::Seconds(2), 14);
  source.Call(0, Outcome::kBypass, absl::Seconds(2));
  source.instruments.observer()->OnDropped(
      cache::Tier::kMemory, cache::Dropped::kTooLarge, cache::FunctionId{0});
  source.instruments.function(0).Begin(Method::kV1);
  source.clock.Advance(absl::Seconds(4));
  const std::string page = RenderStatusPage(source.Now());
  EXPECT_THAT(page, HasSubstr("Above the last minute (64 s)"));
  const std::string row = RowOf(page, "function-a");
  EXPECT_THAT(row, HasSubstr("<small>dns:///function-a</small>"));
  EXPECT_THAT(row, HasSubstr(Cell("calls", "0.06/s", "8")));
  EXPECT_THAT(row, HasSubstr(Cell("hit rate", "66.7 %", "71.4 %")));
  EXPECT_THAT(row, HasSubstr(Cell("hit", "1", "4")));
  EXPECT_THAT(row, HasSubstr(Cell("stale", "1", "1")));
  EXPECT_THAT(row, HasSubstr(Cell("collapsed", "1", "1")));
  EXPECT_THAT(row, HasSubstr(Cell("bypass", "1", "1")));
  EXPECT_THAT(row, HasSubstr("<td data-of=\"miss\"><span class=\"zero\">0"
                             "</span><small class=\"\">1</small>"));
  EXPECT_THAT(row, HasSubstr("<td data-of=\"errors\"><span class=\"bad\">1"
                             "</span><small class=\"\">1</small>"));
  EXPECT_THAT(row, HasSubstr("<td data-of=\"dropped\"><span class=\"bad\">1"
                             "</span><small class=\"\">1</small>"));
  EXPECT_THAT(row, HasSubstr(Cell("time saved", "2.0s", "8.0s")));
  EXPECT_THAT(row, HasSubstr("<td data-of=\"in flight\">1"));
  EXPECT_THAT(RowOf(page, "idle"), HasSubstr("–"));
}

TEST(StatusPageTest, PercentilesAreWhatCallsTook) {
  StatusSource source({"f", "idle"});
  for (int i = 0; i < 3; ++i) {
    source.Call(0, Outcome::kMiss, absl::Seconds(2));
  }
  source.Pass(absl::Minutes(2));
  source.Call(0, Outcome::kHit, absl::Microseconds(61));
  const std::string page = RenderStatusPage(source.Now());
  // calls, p50 and p99 of the last minute; calls, p50, p99, mean since start
  EXPECT_THAT(
      page,
      HasSubstr("<tr><td>miss<td class=wide>0<td><span class=zero>–</span>"
                "<td><span class=zero>–</span><td class=wide>3<td>2.00 s<td>"
                "2.00 s<td class=wide>2.00 s</tr>"));
  EXPECT_THAT(page,
              HasSubstr("<tr><td>hit<td class=wide>1<td>61 µs<td>61 µs<td "
                        "class=wide>1<td>61 µs<td>61 µs<td class=wide>61 µs"));
  EXPECT_THAT(page, HasSubstr("<tr><td>function<td class=wide>0"));
  EXPECT_THAT(page, Not(HasSubstr("<tr><td>bypass")));
  EXPECT_THAT(page, HasSubstr("<tr class=of><th colspan=8>f</tr>"));
  EXPECT_THAT(page, Not(HasSubstr("<tr class=of><th colspan=8>idle</tr>")));
}

TEST(StatusPageTest, TellsOfEachTierHowFullItIs) {
  StatusSource source({"f"});
  source.instruments.WatchTier(cache::Tier::kDisk, [] {
    return cache::store::StoreStats{1'234'567, 1ull << 30, 4ull << 30};
  });
  source.instruments.observer()->OnRemoved(
      cache::Tier::kDisk, cache::Removal::kEvicted, 0, true, 1000, 1);
  EXPECT_THAT(
      RowOf(RenderStatusPage(source.Now()), "disk"),
      HasSubstr("<td data-of=\"entries\">1,234,567<td data-of=\"used\">1.0 GiB"
                "<td data-of=\"of\">4.0 GiB<td data-of=\"full\">25.0 %<td "
                "data-of=\"evicted\">1,000<td data-of=\"expired\">0"));
}

TEST(StatusPageTest, TellsOfTheSharedTierWhereThereIsOne) {
  StatusSource source({"f"});
  EXPECT_THAT(RenderStatusPage(source.Now()), Not(HasSubstr("Shared tier")));
  cache::store::SharedFigures shared = SharedExample(source.clock.Now());
  source.instruments.WatchShared([&shared] { return shared; });
  EXPECT_THAT(
      RenderStatusPage(source.Now()),
      HasSubstr(
          "<h2>Shared tier</h2>\n<table class=settings>\n"
          "<tr><td>up since<td>2027-01-15 07:58:30 UTC</tr>\n"
          "<tr><td>server<td>version 7.2.4, a Cluster</tr>\n"
          "<tr><td>round trip<td>310 µs</tr>\n"
          "<tr><td>this clock<td>2.0 ms behind the server's</tr>\n"
          "<tr><td>record of bans<td>read 400 ms ago, has the bans of this "
          "daemon</tr>\n"
          "<tr><td>look-ups since the start<td>hit 1, miss 2, timeout 3, down "
          "4, rejected 5, purged 6</tr>\n"
          "<tr><td>writes since the start<td>stored 7, older 8, refused 9, "
          "dropped 10</tr>\n"
          "<tr><td>redis-0:6379<td>up since 2027-01-15 07:58:29 UTC</tr>\n"
          "<tr><td>redis-1:6379<td>down since 2027-01-15 07:59:58 UTC: "
          "Connection &lt;refused&gt;</tr>\n</table>"));
  shared.up = false;
  shared.why = "a <reason>";
  shared.bans_written = false;
  EXPECT_THAT(RenderStatusPage(source.Now()),
              AllOf(HasSubstr("<td><span class=bad>down</span> since<td>"
                              "2027-01-15 07:58:30 UTC: a &lt;reason&gt;"),
                    HasSubstr("ago, lacks some of the bans of this daemon")));
  shared.bans_age = absl::InfiniteDuration();
  EXPECT_THAT(RenderStatusPage(source.Now()),
              HasSubstr("<td>record of bans<td>not read yet</tr>"));
}

TEST(StatusPageTest, TellsOfTheAccessLogWhereThereIsOne) {
  StatusSource source({"f"});
  EXPECT_THAT(RenderStatusPage(source.Now()), Not(HasSubstr("Access log")));
  source.instruments.access_log().written.Add(1234);
  source.instruments.access_log().dropped.Add(1);
  const std::string page = RenderStatusPage(source.Now());
  EXPECT_THAT(page, HasSubstr("<h2>Access log</h2>"));
  EXPECT_THAT(page, HasSubstr(Cell("written", "1,234", "1,234")));
  EXPECT_THAT(page, HasSubstr("<td data-of=\"dropped\"><span class=\"bad\">1"
                              "</span><small class=\"\">1</small>"));
}

TEST(StatusPageTest, FunctionsWithoutAMissHaveNoReasons) {
  StatusSource source({"f", "idle"});
  source.Call(0, Outcome::kMiss, absl::Seconds(1));
  const std::string page = RenderStatusPage(source.Now());
  const std::string reasons =
      page.substr(page.find("<h2>Why calls missed"),
                  page.find("<h2>How long") - page.find("<h2>Why calls"));
  EXPECT_THAT(reasons, HasSubstr("<td class=name>f"));
  EXPECT_THAT(reasons, Not(HasSubstr("idle")));
}

TEST(StatusPageTest, TellsWhatIsWrongFirst) {
  StatusSource source({"f"});
  EXPECT_THAT(RenderStatusPage(source.Now()),
              HasSubstr("<p class=good>Nothing is wrong.</p>"));
  source.instruments.function(0).Unreachable(source.clock.Now(), "gone");
  source.instruments.HandshakeFailed(TlsSide::kClient,
                                     HandshakeFault::kWrongName);
  const std::string page = RenderStatusPage(source.Now());
  EXPECT_THAT(page, Not(HasSubstr("Nothing is wrong")));
  const size_t error = page.find("<li class=error><b>error</b> <span>f cannot");
  const size_t warning = page.find("<li class=warning><b>warning</b>");
  EXPECT_LT(error, warning);
  EXPECT_LT(warning, page.find("<h2>"));
  EXPECT_THAT(RowOf(page, "f"), HasSubstr(">unreachable</span>"));
}

TEST(StatusPageTest, TellsCertificatesAndWhyHandshakesFailed) {
  StatusSource source({"f"});
  EXPECT_THAT(RenderStatusPage(source.Now()), Not(HasSubstr("Certificates")));
  source.instruments.WatchCertificate(
      TlsSide::kServer, [&] { return source.clock.Now() + absl::Hours(240); });
  source.instruments.HandshakeFailed(TlsSide::kServer,
                                     HandshakeFault::kNoCertificate);
  EXPECT_THAT(RenderStatusPage(source.Now()),
              HasSubstr("<tr><td>listener<td data-of=\"ends\">2027-01-25 "
                        "08:00:00 UTC (in 10d "
                        "0h 0m 0s)<td data-of=\"taken up\">0<td data-of=\""
                        "refused\">0<td data-of=\"failed handshakes, last "
                        "minute\">no_certificate 1<td data-of=\"failed "
                        "handshakes, since the start\">no_certificate 1</tr>"));
}

TEST(StatusPageTest, SettingsThatWereGivenComeFirstAndTheRestIsFolded) {
  Status status = StatusSource({"f"}).Now();
  status.settings = {
      {"", "admin", false, true, {"127.0.0.1:9901"}, false, "default", {}},
      {"", "cache.dir", false, false, {}, false, "default", {}},
      {"", "mask", true, true, {"a.b", "@times"}, true, "--mask", {"= x"}},
      {"f", "ttl.max", false, true, {"1h"}, true, "fncache.yaml:3", {}}};
  const std::string page = RenderStatusPage(status);
  const size_t folded = page.find("<details><summary>All others");
  const size_t mask = page.find(
      "<tr><td>mask<td><code>a.b\n@times</code><details><summary>what it "
      "stands for</summary><code>= x</code></details>"
      "<td class=dim>--mask</tr>");
  const size_t ttl = page.find(
      "<tr><td><span class=dim>f</span> ttl.max<td><code>1h</code><td "
      "class=dim>fncache.yaml:3</tr>");
  const size_t admin = page.find("<tr><td>admin<td><code>127.0.0.1:9901");
  const size_t dir =
      page.find("<tr><td>cache.dir<td><span class=dim>unset</span>");
  EXPECT_LT(mask, ttl);
  EXPECT_LT(ttl, folded);
  EXPECT_LT(folded, admin);
  EXPECT_LT(admin, dir);
  EXPECT_NE(dir, std::string::npos);
}

TEST(StatusPageTest, TellsWhyCallsMissed) {
  StatusSource source({"function-a", "idle"});
  EXPECT_THAT(RenderStatusPage(source.Now()), Not(HasSubstr("Why calls")));
  source.Call(0, Outcome::kMiss, absl::Seconds(2));
  Status status = source.Now();
  std::string page = RenderStatusPage(status);
  EXPECT_THAT(page, HasSubstr("<h2>Why calls missed"));
  EXPECT_THAT(page, HasSubstr(Cell("unknown", "1", "1")));
  EXPECT_THAT(page, Not(HasSubstr("what changed most")));
  status.functions[0].miss_paths = {{"context.now", 1234}, {"context.b", 2}};
  status.functions[0].miss_writers = {{"provider", 9}};
  page = RenderStatusPage(status);
  EXPECT_THAT(page,
              HasSubstr("<code>context.now</code> 1,234<br>"
                        "<code>context.b</code> 2<td data-of=\"written by\">"
                        "<code>provider</code> 9</tr>"));
}

TEST(StatusPageTest, NothingBreaksOutOfItsPlace) {
  const std::string evil = "</pre><script>alert(\"1\")</script>&amp;'";
  const std::string tame =
      "&lt;/pre&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;amp;"
      "&#39;";
  StatusSource source({evil});
  source.Call(0, Outcome::kMiss, absl::Seconds(1), 14);
  source.instruments.function(0).Unreachable(source.clock.Now(), evil);
  Status status = source.Now();
  status.version = evil;
  status.state = evil;
  status.functions[0].miss_paths = {{evil, 1}};
  status.functions[0].miss_writers = {{evil, 1}};
  status.settings = {{evil, evil, false, true, {evil}, true, evil, {evil}}};
  const std::string page = RenderStatusPage(status);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page,
              HasSubstr("<td class=name>" + tame + "<small>dns:///" + tame));
  EXPECT_THAT(page, HasSubstr("<code>" + tame + "</code>"));
  EXPECT_THAT(page, HasSubstr("UTC (for 0s): " + tame));
  EXPECT_THAT(RenderIndexPage(evil), Not(HasSubstr("<script")));
}

// Names and paths of requests, and what functions say, are of others' choosing.
TEST(StatusPageTest, WhatDoesNotShowOrReordersIsSpelledOut) {
  const std::string evil("a\0b\x1b[2Jc\xe2\x80\xae<d", 13);
  const std::string tame = "a\\x00b\\x1b[2Jc\\u202e&lt;d";
  StatusSource source({evil});
  source.Call(0, Outcome::kMiss, absl::Seconds(1), 14);
  source.instruments.function(0).Unreachable(source.clock.Now(), evil);
  Status status = source.Now();
  status.version = evil;
  status.functions[0].miss_paths = {{evil, 1}};
  status.functions[0].miss_writers = {{evil, 1}};
  status.functions[0].facts = FunctionFacts();
  status.functions[0].facts->masks = {{evil, 1, 1}};
  status.functions[0].facts->bans = {{evil, source.clock.Now(), false}};
  status.functions[0].facts->more = {{evil, evil, false}};
  status.settings = {
      {evil, evil, false, true, {evil, evil}, true, evil, {evil, evil}}};
  status.reload.file = evil;
  status.reload.last_successful = false;
  status.reload.error = evil;
  status.reload.restart = {evil, evil};
  for (const std::string& page :
       {RenderStatusPage(status), RenderIndexPage(evil)}) {
    EXPECT_THAT(page, Not(HasSubstr("\xe2\x80\xae")));
    for (const char c : page) {
      ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20)
          << static_cast<int>(c);
    }
    EXPECT_THAT(page, HasSubstr(tame));
  }
  const std::string page = RenderStatusPage(status);
  EXPECT_THAT(page, HasSubstr("<code>" + tame + "</code>"));
  EXPECT_THAT(page, HasSubstr("<code>" + tame + "\n" + tame + "</code>"));
}

TEST(StatusPageTest, NeedsNoScriptAndNothingFromElsewhere) {
  const std::string page = RenderStatusPage(StatusSource({"f"}).Now());
  for (const char* text : {"<script", "http:", "https:", "url(", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(text)));
  }
}

TEST(StatusPageTest, TheLivePageIsTheSameWithItsScript) {
  const Status status = StatusSource({"f"}).Now();
  const std::string page = RenderStatusPage(status);
  const std::string live = RenderLivePage(status);
  const auto main_of = [](const std::string& html) {
    const size_t begin = html.find("<main>");
    return html.substr(begin, html.find("</main>") - begin);
  };
  EXPECT_EQ(main_of(page), main_of(live));
  EXPECT_GT(main_of(page).size(), 1'000u);
  EXPECT_THAT(live, HasSubstr("<script>"));
  // Without scripts nothing of it is seen.
  EXPECT_THAT(live, HasSubstr("<p id=live hidden>"));
  for (const char* text :
       {"http:", "https:", "url(", "@import", "innerHTML", "eval(", "src="}) {
    EXPECT_THAT(live, Not(HasSubstr(text)));
  }
}

TEST(IndexPageTest, LinksEveryPage) {
  const std::string page = RenderIndexPage("1.2.3");
  for (const char* path : {"/statusz", "/metrics", "/healthz", "/readyz"}) {
    EXPECT_THAT(page, HasSubstr("<dt><a href=\"" + std::string(path) + "\">" +
                                path + "</a><dd>"));
  }
}

}  // namespace
}  // namespace fncache::proxy::telemetry
