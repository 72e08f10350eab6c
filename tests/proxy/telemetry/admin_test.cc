// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/admin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/http_get.h"

namespace fncache::proxy::telemetry {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AdminTest : public ::testing::Test {
 protected:
  void SetUp() override {
    AdminView view;
    view.ready = [this] { return ready_.load(); };
    view.started = [this] { return started_.load(); };
    view.draining = [this] { return draining_.load(); };
    view.upstreams = {"dns:///function-a:9443"};
    view.settings = [] {
      return std::vector<ListedSetting>{{"",
                                         "cache.memory",
                                         false,
                                         true,
                                         {"64MiB"},
                                         true,
                                         "--cache-memory",
                                         {}}};
    };
    auto admin = Admin::Start("127.0.0.1:0", &instruments_, &clock_, view,
                              /*tick=*/absl::Milliseconds(1));
    ASSERT_TRUE(admin.ok()) << admin.status();
    admin_ = *std::move(admin);
  }

  std::string Page(const std::string& path) {
    return ::fncache::testing::HttpGet(admin_->port(), path);
  }

  std::atomic<bool> ready_{false};
  std::atomic<bool> started_{false};
  std::atomic<bool> draining_{false};
  Instruments instruments_{{"function-a"}};
  SimulatedClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  std::unique_ptr<Admin> admin_;
};

TEST_F(AdminTest, ReadyOnceReadyAndNoMoreAsSoonAsDrainingStarts) {
  EXPECT_THAT(Page("/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Page("/readyz"), EndsWith("\r\n\r\nstarting\n"));
  ready_ = true;
  EXPECT_THAT(Page("/readyz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Page("/metrics"), HasSubstr("\nfncache_ready 1\n"));
  // It accepts no connections.
  started_ = true;
  ready_ = false;
  EXPECT_THAT(Page("/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Page("/readyz"), EndsWith("\r\n\r\nnot_accepting\n"));
  EXPECT_THAT(Page("/statusz"), HasSubstr("No new connections are accepted"));
  ready_ = true;
  draining_ = true;
  EXPECT_THAT(Page("/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Page("/readyz"), EndsWith("\r\n\r\ndraining\n"));
  EXPECT_THAT(Page("/metrics"), HasSubstr("\nfncache_ready 0\n"));
}

TEST_F(AdminTest, HealthyWhateverTheReadiness) {
  EXPECT_THAT(Page("/healthz"), StartsWith("HTTP/1.1 200 "));
  draining_ = true;
  EXPECT_THAT(Page("/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(AdminTest, ProbesDoNotDependOnTheSharedTier) {
  cache::store::SharedFigures shared;
  shared.why = "connection refused";
  instruments_.WatchShared([&shared] { return shared; });
  ready_ = true;
  EXPECT_THAT(Page("/readyz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Page("/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Page("/metrics"),
              HasSubstr("\nfncache_tier_up{tier=\"shared\"} 0\n"));
  EXPECT_THAT(Page("/statusz"), HasSubstr("The shared tier is down since "));
}

TEST_F(AdminTest, MetricsAreWhatWasCounted) {
  instruments_.function(0).RecordFill(1000);
  const std::string answer = Page("/metrics");
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(answer,
              HasSubstr("\nfunction_run_function_response_cache_bytes_written_"
                        "total{function_name=\"function-a\"} 1000\n"));
}

TEST_F(AdminTest, TheStatusPageTellsFunctionsAndSettings) {
  ready_ = true;
  const std::string answer = Page("/statusz");
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/html; charset=utf-8"));
  EXPECT_THAT(answer, HasSubstr(">ready<"));
  EXPECT_THAT(answer, HasSubstr("<td class=name>function-a<small>dns:///"
                                "function-a:9443</small>"));
  EXPECT_THAT(answer, HasSubstr("<td>cache.memory<td><code>64MiB</code>"));
  EXPECT_EQ(answer.substr(answer.find("<!DOCTYPE")),
            Page("/statusz?format=html").substr(answer.find("<!DOCTYPE")));
}

// The browser runs the script and applies the style sheet that the policy names
// by their hashes, and nothing else.
TEST_F(AdminTest, ThePolicyOfThePagesNamesTheirStyleAndScript) {
  const std::string answer = Page("/statusz");
  const auto hash_of = [&](const std::string& tag) {
    const size_t begin = answer.find("<" + tag + ">") + tag.size() + 2;
    const size_t end = answer.find("</" + tag + ">", begin);
    EXPECT_NE(end, std::string::npos);
    return absl::StrCat("'sha256-",
                        absl::Base64Escape(absl::HexStringToBytes(
                            Sha256Hex(answer.substr(begin, end - begin)))),
                        "'");
  };
  for (const std::string& page : {answer, Page("/")}) {
    EXPECT_THAT(
        page.substr(0, page.find("\r\n\r\n")),
        HasSubstr(absl::StrCat(
            "\r\nContent-Security-Policy: default-src 'none'; style-src ",
            hash_of("style"), "; script-src ", hash_of("script"),
            "; connect-src 'self'; img-src data:; base-uri 'none'; form-action "
            "'none'; frame-ancestors 'none'\r\n")));
  }
  EXPECT_EQ(answer.find("<script>"), answer.rfind("<script"));
  EXPECT_THAT(answer, Not(HasSubstr(" style=")));
  EXPECT_THAT(answer, Not(HasSubstr(" onclick=")));
  EXPECT_THAT(Page("/statusz?format=json"), Not(HasSubstr("Security-Policy")));
}

TEST_F(AdminTest, TheStatusIsThereForProgramsToo) {
  const std::string answer = Page("/statusz?format=json");
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(answer, HasSubstr("\n      \"name\": \"function-a\",\n"));
  EXPECT_THAT(Page("/statusz?format=xml"), StartsWith("HTTP/1.1 400 "));
}

TEST_F(AdminTest, TheLastMinuteEnds) {
  const FunctionInstruments& f = instruments_.function(0);
  f.Begin(Method::kV1);
  f.End({Method::kV1, Outcome::kMiss, 0, true, absl::Seconds(1)});
  const auto recent_calls = [&] {
    const std::string page = Page("/statusz?format=json");
    const size_t calls = page.find("\"calls\": ", page.find("\"last_minute\""));
    return page.substr(calls, page.find(',', calls) - calls);
  };
  EXPECT_EQ(recent_calls(), "\"calls\": 1");
  const absl::Time until = absl::Now() + absl::Seconds(60);
  // The endpoint's thread takes its readings in real time.
  do {
    clock_.Advance(absl::Minutes(2));
  } while (recent_calls() != "\"calls\": 0" && absl::Now() < until);
  EXPECT_EQ(recent_calls(), "\"calls\": 0");
}

TEST_F(AdminTest, TheIndexLinksThePages) {
  const std::string answer = Page("/");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(answer, HasSubstr("<a href=\"/statusz\">"));
}

TEST_F(AdminTest, NothingElseIsServed) {
  EXPECT_THAT(Page("/index.html"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Page("/debug"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(AdminTest, AnAddressThatIsTakenIsNamed) {
  Instruments instruments({"f"});
  AdminView view;
  view.ready = view.draining = [] { return false; };
  const auto second =
      Admin::Start(admin_->address(), &instruments, &clock_, view);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(admin_->address()));
}

}  // namespace
}  // namespace fncache::proxy::telemetry
