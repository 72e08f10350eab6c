// SPDX-License-Identifier: Apache-2.0
// Each setting that may change while the daemon runs really does: the daemon is
// the same before and after, and behaves otherwise.
#include "proxy/live_settings.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "insight/trace/reader.h"
#include "insight/trace/ring.h"
#include "insight/trace/writer.h"
#include "proxy/settings/settings.h"
#include "tests/proxy/reload_testing.h"

namespace fncache::proxy {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class LiveSettingsTest : public ReloadTest,
                         public ::testing::WithParamInterface<std::string> {
 protected:
  using Check = void (LiveSettingsTest::*)();
  static const std::map<std::string, Check>& Checks();

  void Mode() {
    Start("");
    Call({});
    EXPECT_TRUE(Call({}).hit());
    Reload("mode: \"off\"\n");
    EXPECT_EQ(Call({}).cache, "fwd=bypass");
    Reload("");
    EXPECT_TRUE(Call({}).hit());
  }
  void TtlMax() { Served("ttl: {max: 10s}\n", {}, 3240, 9); }
  void TtlOverride() { Served("ttl: {override: 20s}\n", {}, 3240, 18); }
  void TtlMin() {
    Ask ask;
    ask.ttl_seconds = 10;
    Served("ttl: {min: 100s}\n", ask, 9, 90);
  }
  void TtlMargin() {
    Start("");
    Call({});
    EXPECT_EQ(Call({}).served(), 3240);
    Reload("ttl: {margin: 0.5}\n");
    EXPECT_EQ(Call({}).served(), 1800) << "the margin applies at read";
  }
  void TtlDefault() {
    Start("");
    Ask ask;
    ask.ttl_seconds = -1;
    Call(ask);
    EXPECT_FALSE(Call(ask).hit());
    Reload("ttl: {default: 100s}\n");
    Call(ask);
    EXPECT_EQ(Call(ask).served(), 90);
  }
  void TtlJitter() {
    Start("");
    const auto shortest = [this](int from) {
      int64_t least = 1 << 20;
      for (int i = from; i < from + 20; ++i) {
        Ask ask;
        ask.spec = absl::StrCat(i);
        Call(ask);
        least = std::min(least, Call(ask).served());
      }
      return least;
    };
    EXPECT_EQ(shortest(0), 3240);
    Reload("ttl: {jitter: 0.9}\n");
    EXPECT_LT(shortest(100), 3000);
  }
  void RequeueTtl() {
    Start("");
    Call({});
    clock_.Advance(absl::Seconds(100));
    EXPECT_EQ(Call({}).ttl, 3500);
    Reload("requeue_ttl: original\n");
    EXPECT_EQ(Call({}).ttl, 3600);
    Reload("requeue_ttl: 42s\n");
    EXPECT_EQ(Call({}).ttl, 42);
  }
  void StoreFatal() {
    Start("");
    Ask ask;
    ask.fatal = true;
    Call(ask);
    EXPECT_FALSE(Call(ask).hit());
    Reload("store_fatal: true\n");
    Call(ask);
    EXPECT_TRUE(Call(ask).hit());
  }
  void StoreSecrets() {
    Start("");
    Ask ask;
    ask.secret = true;
    Call(ask);
    EXPECT_TRUE(Call(ask).hit());
    Ask plain;
    plain.spec = "plain";
    Call(plain);
    Reload("store_secrets: none\n");
    EXPECT_THAT(Call(ask).cache, StartsWith("fwd=miss"))
        << "what was stored is not served any more";
    EXPECT_FALSE(Call(ask).hit()) << "nor stored again";
    EXPECT_TRUE(Call(plain).hit());
    EXPECT_EQ(Metric("fncache_tier_entries{tier=\"memory\"}"), 1) << "nor kept";
  }
  void MaxReleased() {
    Start("max_released: 1\n");
    Ask ask;
    ask.ttl_seconds = -1;  // an answer that cannot be shared
    ask.hold = true;
    std::vector<std::shared_ptr<serving::Caller>> callers;
    for (int i = 0; i < 5; ++i) callers.push_back(Send(ask));
    ASSERT_TRUE(Eventually([&] {
      return Metric(
                 "fncache_collapsed_callers_waiting{function_name="
                 "\"function\"}") == 4;
    }));
    ASSERT_TRUE(Eventually([&] { return held() == 1; }));
    ReleaseAll();
    ASSERT_TRUE(Eventually([&] {
      return Metric(
                 "fncache_released_callers_waiting{function_name="
                 "\"function\"}") == 3;
    }));
    // The call of the released caller may not have reached the function yet.
    EXPECT_TRUE(Eventually([&] { return held() == 1; }));
    Reload("max_released: 3\n");
    EXPECT_TRUE(Eventually([&] { return held() == 3; }));
    Reload("max_released: 1\n");
    ReleaseAll();  // three end; one may begin
    EXPECT_TRUE(Eventually([&] { return held() == 1; }));
    ReleaseAll();
    for (const auto& caller : callers) EXPECT_TRUE(caller->Wait().ok());
  }
  void MaxEntryBytes() {
    Start("");
    Ask ask;
    ask.bytes = 5000;
    Call(ask);
    EXPECT_TRUE(Call(ask).hit());
    Reload("max_entry_bytes: 4KiB\n");
    ask.spec = "2";
    Call(ask);
    EXPECT_FALSE(Call(ask).hit());
  }
  void Key() {
    Start("");
    const std::string tag(64, 'a');
    Ask one;
    one.tag = tag;
    Ask two = one;
    two.spec = "2";
    Call(one);
    EXPECT_FALSE(Call(two).hit());
    Reload("key: tag\n");
    one.spec = "3";
    Call(one);
    const Answer shared = AnswerOf(Send(two));
    EXPECT_TRUE(shared.hit()) << "the tag alone counts";
    Reload("");
    EXPECT_TRUE(Call(two).hit()) << "entries of before can be reached again";
  }
  void KeyHash() { MakesOthers("key_hash: sha256\n"); }
  void Generation() { MakesOthers("generation: build-2\n"); }
  void Mask() {
    Start("");
    Ask one;
    Ask two;
    two.version = "2";
    Call(one);
    EXPECT_FALSE(Call(two).hit());
    Reload("mask: [\"@versions\"]\n");
    EXPECT_FALSE(Call(one).hit());
    EXPECT_TRUE(Call(two, /*masked=*/true).hit());
    Reload("");
    EXPECT_TRUE(Call(one).hit());
    EXPECT_TRUE(Call(two).hit());
  }
  void Tune() {
    Start("");
    Ask one;
    Ask two;
    two.version = "2";
    Call(one);
    Reload("tune: on\n");
    EXPECT_FALSE(Call(one).hit());
    EXPECT_EQ(Call(two).cache, "fwd=miss; stored; detail=\"drift: unproven\"");
    Reload("tune: off\n");
    EXPECT_TRUE(Call(one).hit()) << "its entry of before";
    EXPECT_FALSE(Call(two).hit());
    Reload("tune: on\n");
    EXPECT_TRUE(Call(two).hit()) << "its entry of before";
  }
  void TuneShare() {
    const std::string runs =
        "fncache_upstream_requests_total{function_name=\"function\",code="
        "\"OK\"}";
    int calls = 0;
    const auto drift = [&] {
      Ask ask;
      ask.version = absl::StrCat(1000 + ++calls);
      clock_.Advance(absl::Milliseconds(1));
      EXPECT_FALSE(Call(ask).hit());
    };
    Start("tune: on\ntune_share: 0\n");
    for (int i = 0; i < 10; ++i) drift();
    EXPECT_EQ(Metric(runs), 10) << "nothing is asked";
    Reload("tune: on\ntune_share: 1\n");
    drift();
    EXPECT_TRUE(Eventually([&] { return Metric(runs) > calls; }));
  }
  void Vary() {
    Start("");
    Ask one;
    one.metadata = "x-hint";
    Ask two = one;
    two.version = "2";
    Call(one);
    EXPECT_FALSE(Call(two).hit());
    Reload("vary: on\n");
    // Calls that start at the time of the reload count as before it.
    clock_.Advance(absl::Milliseconds(1));
    one.spec = two.spec = "2";
    Call(one);
    EXPECT_TRUE(Call(two, /*masked=*/true).hit());
    Reload("");
    EXPECT_FALSE(Call(two).hit());
  }
  void BypassMetadata() {
    Start("");
    Ask ask;
    ask.metadata = "x-tenant";
    Call(ask);
    EXPECT_TRUE(Call(ask).hit());
    Reload("bypass_metadata: [x-tenant]\n");
    EXPECT_EQ(Call(ask).cache, "fwd=bypass");
  }
  void Operations() {
    Start("");
    Ask ask;
    ask.operation = true;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Call(ask).cache, "fwd=bypass; detail=operation");
    }
    Reload("operations: cache\n");
    EXPECT_EQ(Call(ask).cache, "fwd=miss; stored; detail=new");
    EXPECT_TRUE(Call(ask).hit());
    Reload("operations: bypass\n");
    EXPECT_EQ(Call(ask).cache, "fwd=bypass; detail=operation")
        << "what is stored is not served";
  }

  void CacheMemory() {
    Start("cache: {memory: 64MiB}\n");
    Ask ask;
    ask.bytes = 100'000;
    for (int i = 0; i < 100; ++i) {
      ask.spec = absl::StrCat(i);
      Call(ask);
    }
    const std::string bytes = "fncache_tier_bytes{tier=\"memory\"}";
    EXPECT_GT(Metric(bytes), 10e6);
    ::testing::internal::CaptureStderr();
    Reload("cache: {memory: 2MiB}\n");
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                Not(HasSubstr("larger answers")))
        << "one part, as after a start";
    EXPECT_LE(Metric(bytes), 2 << 20);
    EXPECT_GT(Metric("fncache_tier_entries{tier=\"memory\"}"), 5);
    EXPECT_TRUE(Call(ask).hit()) << "the newest is still there";
    Reload("cache: {memory: 32MiB}\n");
    EXPECT_EQ(Metric("fncache_tier_capacity_bytes{tier=\"memory\"}"), 32 << 20);
    for (int i = 0; i < 100; ++i) {
      ask.spec = absl::StrCat("more-", i);
      Call(ask);
    }
    EXPECT_GT(Metric(bytes), 10e6);
  }
  // Takes no restart; what it changes in a tier is tested in cache/store.
  void SharedTier() {
    Start("");
    ::testing::internal::CaptureStderr();
    Reload("shared: {timeout: 20ms, max_entry_bytes: 2MiB}\n");
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, HasSubstr("shared.timeout=\"50ms -> 20ms\""));
    EXPECT_THAT(log, HasSubstr("shared.max_entry_bytes=\"1MiB -> 2MiB\""));
    EXPECT_THAT(log, Not(HasSubstr("restart")));
  }
  void CacheDisk() {
    const std::string dir = absl::StrCat(
        "generation: g\ncache: {memory: 1MiB, "
        "dir: \"",
        dir_.File("cache"), "\", disk: ");
    Start(dir + "64MiB}\n");
    Ask ask;
    ask.bytes = 100'000;
    ask.secret = false;
    const std::string entries = "fncache_tier_entries{tier=\"disk\"}";
    for (int i = 0; i < 200; ++i) {
      ask.spec = absl::StrCat(i);
      Call(ask);
    }
    // They compress well, so that all fit.
    ASSERT_TRUE(Eventually([&] { return Metric(entries) == 200; }));
    Reload(dir + "1MiB}\n");
    EXPECT_EQ(Metric("fncache_tier_capacity_bytes{tier=\"disk\"}"), 1 << 20);
    ask.spec = "more";
    EXPECT_FALSE(Call(ask).hit());
    Reload(dir + "128MiB}\n");
    EXPECT_EQ(Metric("fncache_tier_capacity_bytes{tier=\"disk\"}"), 128 << 20);
  }

  void InflightBytes() {
    Start("");
    EXPECT_EQ(Metric("fncache_inflight_limit_bytes"), 256 << 20);
    // Capacity for one at the function, and none for the next.
    Reload("inflight: {bytes: 1MiB}\n");
    EXPECT_EQ(Metric("fncache_inflight_limit_bytes"), 1 << 20);
    Ask ask;
    ask.hold = true;
    ask.resource = std::string(900'000, 'r');
    const auto first = Send(ask);
    ASSERT_TRUE(Eventually([&] { return held() == 1; }));
    ask.spec = "2";
    const auto second = Send(ask);
    ASSERT_TRUE(Eventually([&] {
      return Metric("fncache_inflight_bytes{state=\"waiting\"}") > 900'000;
    }));
    EXPECT_EQ(held(), 1u);
    Reload("inflight: {bytes: 64MiB}\n");
    EXPECT_TRUE(Eventually([&] { return held() == 2; }));
    ReleaseAll();
    EXPECT_EQ(AnswerOf(first).code, StatusCode::OK);
    EXPECT_EQ(AnswerOf(second).code, StatusCode::OK);
  }
  void MaxRequestBytes() {
    Start("");
    Ask ask;
    ask.resource = std::string(4000, 'r');
    EXPECT_EQ(Call(ask).code, StatusCode::OK);
    Reload("max_request_bytes: 2KiB\n");
    const Answer answer = Call(ask);
    EXPECT_EQ(answer.code, StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(answer.message, HasSubstr("max_request_bytes, 2048"));
    EXPECT_EQ(Metric("fncache_requests_refused_total{function_name="
                     "\"function\",reason=\"size\"}"),
              1);
    Reload("");
    EXPECT_EQ(Call(ask).code, StatusCode::OK);
  }
  void MaxResponseBytes() {
    Start("mode: \"off\"\n");
    Ask ask;
    ask.bytes = 4000;
    EXPECT_EQ(Call(ask).code, StatusCode::OK);
    Reload("mode: \"off\"\nmax_response_bytes: 2KiB\n");
    const Answer answer = Call(ask);
    EXPECT_EQ(answer.code, StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(answer.message, HasSubstr("max_response_bytes, 2048"));
  }
  void MaxMetadataBytes() {
    Start("");
    Ask ask;
    ask.metadata = "x-much";
    ask.metadata_bytes = 6000;
    EXPECT_EQ(Call(ask).code, StatusCode::OK);
    Reload("max_metadata_bytes: 4KiB\n");
    EXPECT_EQ(Call(ask).code, StatusCode::RESOURCE_EXHAUSTED);
  }
  void MaxStreams() {
    Start("");
    Call({});
    Reload("max_streams: 1\n");
    Ask ask;
    ask.hold = true;
    const auto channel = Connect(daemon_->addresses()[0]);
    const auto first = Send(ask, channel);
    ASSERT_TRUE(Eventually([&] { return held() == 1; }));
    ask.spec = "2";
    // The caller knows the limit, and delays the call. A connection from before
    // the reload may have as many streams as its own limit said.
    const auto second = Send(ask, channel);
    ask.spec = "3";
    const auto third = Send(ask);
    ask.spec = "4";
    const auto fourth = Send(ask);
    ASSERT_TRUE(Eventually([&] { return held() == 3; }));
    absl::SleepFor(absl::Milliseconds(50));
    EXPECT_EQ(held(), 3u);
    EXPECT_EQ(second->answers(), 0);
    ReleaseAll();
    ASSERT_TRUE(Eventually([&] { return held() == 1; })) << "then it goes";
    ReleaseAll();
    EXPECT_TRUE(second->Wait().ok());
  }
  void MaxConnections() {
    Start("");
    Call({});
    Reload("max_connections: 1\n");
    EXPECT_EQ(AnswerOf(Send({}, Connect(daemon_->addresses()[0]))).code,
              StatusCode::UNAVAILABLE);
    EXPECT_TRUE(Call({}).hit()) << "the connection there is stays";
    Reload("");
    EXPECT_EQ(AnswerOf(Send({}, Connect(daemon_->addresses()[0]))).code,
              StatusCode::OK);
  }
  void IdleTimeout() { EndsTheConnection("idle_timeout: 1s\n"); }
  void MaxConnectionAge() { EndsTheConnection("max_connection_age: 1s\n"); }

  void TraceDir() {
    Start("");
    Call({});
    Reload(Trace());
    Call({});
    Reload("");
    Call({});
    EXPECT_EQ(Traced(), 1) << "those that came meanwhile";
  }
  void TraceLevel() {
    Start(Trace("level: keys"));
    Call({});
    Reload(Trace("level: full"));
    Ask ask;
    ask.spec = "the second";
    Call(ask);
    Reload("");
    auto reader = insight::trace::TraceReader::Open(dir_.File("trace"));
    ASSERT_TRUE(reader.ok()) << reader.status();
    insight::trace::ReadCall call;
    ASSERT_TRUE((*reader)->Next(&call));
    EXPECT_EQ(call.request_message, "");
    ASSERT_TRUE((*reader)->Next(&call));
    EXPECT_THAT(call.request_message, HasSubstr("the second"));
    EXPECT_FALSE((*reader)->Next(&call));
  }
  void TraceFileSize() {
    Start(Trace("level: full, files: 100"));
    Reload(Trace("level: full, files: 100, file_size: 64KiB"));
    WriteMuch();
    Reload("");
    EXPECT_GT(Files(), 3);
  }
  void TraceFiles() {
    Start(Trace("level: full, files: 100, file_size: 64KiB"));
    WriteMuch();
    EXPECT_TRUE(Eventually([&] { return Files() > 3; }));
    Reload(Trace("level: full, files: 2, file_size: 64KiB"));
    EXPECT_EQ(Files(), 2);
  }
  void TraceSample() {
    Start(Trace());
    Call({});
    Reload(Trace("sample: 0.000001"));
    // A sample knows composites by name only.
    const std::string out =
        "fncache_trace_records_total{result=\"sampled_out\"}";
    EXPECT_EQ(Metric(out), 0);
    auto reader = insight::trace::TraceReader::Open(dir_.File("trace"));
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->header().sample, 1);
    const auto files = insight::trace::TraceFiles(dir_.File("trace"));
    ASSERT_TRUE(files.ok());
    ASSERT_EQ(files->size(), 2u);
    auto second = insight::trace::TraceReader::Open(files->back());
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ((*second)->header().sample, 0.000001);
  }
  void StaleWhileRevalidate() {
    Start("");
    Call({});
    clock_.Advance(absl::Seconds(3300));
    Reload("stale_while_revalidate: 10m\n");
    EXPECT_THAT(Call({}).cache, StartsWith("hit; ttl=-"));
  }
  void StaleIfError() {
    Start("");
    Ask ask;
    ask.bytes = 5000;
    Call(ask);
    clock_.Advance(absl::Seconds(3300));
    // Which is an error of the function's.
    Reload("max_response_bytes: 1KiB\n");
    EXPECT_EQ(Call(ask).code, grpc::StatusCode::RESOURCE_EXHAUSTED);
    // A look-up has removed nothing: it is within its lifetime.
    Reload("max_response_bytes: 1KiB\nstale_if_error: 10m\n");
    EXPECT_THAT(Call(ask).cache, StartsWith("hit; ttl=-"));
  }
  void FinishAbandoned() {
    Start("");
    Reload("finish_abandoned: 1m\n");
    Ask ask;
    ask.hold = true;
    const auto caller = Send(ask);
    ASSERT_TRUE(Eventually([&] { return held() == 1; }));
    caller->context.TryCancel();
    EXPECT_FALSE(caller->Wait().ok());
    ReleaseAll();
    // The function would delay it, too, if the call had ended with its caller.
    EXPECT_EQ(Call(ask).code, grpc::StatusCode::OK);
    EXPECT_TRUE(Call(ask).hit());
  }
  std::string AccessLines(const std::string& settings) {
    const std::string log = dir_.File("access.log");
    Start("");
    Call({});
    Reload(absl::StrCat(settings, "  access_file: ", log, "\n"));
    Call({});
    // It is written behind the answer; what is open is closed with the daemon.
    daemon_->Drain();
    daemon_ = nullptr;
    return ::fncache::testing::ReadFile(log);
  }
  void LogAccess() {
    const std::string lines = AccessLines("log:\n  access: all\n");
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
    EXPECT_THAT(lines, HasSubstr("outcome=hit"));
  }
  void LogAccessFormat() {
    EXPECT_THAT(AccessLines("log:\n  access: all\n  access_format: json\n"),
                StartsWith("{"));
  }
  void LogAccessSample() {
    // The sample is so small that this call is not in it.
    EXPECT_EQ(
        AccessLines("log:\n  access: all\n  access_sample: 0.000000001\n"), "");
  }
  void LogLevelChanges() {
    Start("");
    ::testing::internal::CaptureStderr();
    Reload("log: {level: error}\n");
    Reload("log: {level: error}\nmode: \"off\"\n");
    Reload("");
    Reload("mode: \"off\"\n");
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, Not(HasSubstr("\"info -> error\"")));
    EXPECT_THAT(log, HasSubstr("log.level=\"error -> info\""));
    EXPECT_THAT(log, HasSubstr("mode=\"on -> off\""));
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
  }
  void LogFormatChanges() {
    Start("");
    ::testing::internal::CaptureStderr();
    Reload("log: {format: json}\n");
    const std::string log = ::testing::internal::GetCapturedStderr();
    Reload("");
    EXPECT_THAT(log, StartsWith("{\"time\":"));
    EXPECT_THAT(log, HasSubstr("\"log.format\":\"text -> json\""));
  }

 private:
  // How long a fresh answer is served, `before` and `after` the reload.
  void Served(const std::string& settings, Ask ask, int64_t before,
              int64_t after) {
    Start("");
    Call(ask);
    EXPECT_EQ(Call(ask).served(), before);
    Reload(settings);
    ask.spec = "2";
    Call(ask);
    EXPECT_EQ(Call(ask).served(), after);
  }
  // Other keys, and back.
  void MakesOthers(const std::string& settings) {
    Start("");
    Call({});
    EXPECT_TRUE(Call({}).hit());
    Reload(settings);
    EXPECT_FALSE(Call({}).hit());
    EXPECT_TRUE(Call({}).hit());
    Reload("");
    EXPECT_TRUE(Call({}).hit());
  }
  void EndsTheConnection(const std::string& settings) {
    const std::string connections =
        "fncache_connections{function_name=\"function\"}";
    Start("");
    Call({});
    EXPECT_EQ(Metric(connections), 1);
    Reload(settings);
    EXPECT_TRUE(Eventually([&] { return Metric(connections) == 0; }));
    EXPECT_TRUE(Call({}).hit()) << "the caller comes again";
  }
  std::string Trace(const std::string& more = "level: keys") const {
    return absl::StrCat("trace: {dir: \"", dir_.File("trace"), "\", ", more,
                        "}\n");
  }
  int Traced() const {
    auto reader = insight::trace::TraceReader::Open(dir_.File("trace"));
    EXPECT_TRUE(reader.ok()) << reader.status();
    int calls = 0;
    insight::trace::ReadCall call;
    while (reader.ok() && (*reader)->Next(&call)) ++calls;
    return calls;
  }
  int Files() const {
    const auto files = insight::trace::TraceFiles(dir_.File("trace"));
    return files.ok() ? static_cast<int>(files->size()) : 0;
  }
  // More than some files of the least size hold, however well it compresses.
  void WriteMuch() {
    uint64_t state = 1;
    for (int i = 0; i < 40; ++i) {
      Ask ask;
      for (int byte = 0; byte < 12'000; ++byte) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ask.spec += static_cast<char>('0' + (state >> 58));
      }
      Call(ask);
    }
  }
};

const std::map<std::string, LiveSettingsTest::Check>&
LiveSettingsTest::Checks() {
  using Self = LiveSettingsTest;
  static const auto* const checks = new std::map<std::string, Check>{
      {"mode", &Self::Mode},
      {"ttl.max", &Self::TtlMax},
      {"ttl.override", &Self::TtlOverride},
      {"ttl.default", &Self::TtlDefault},
      {"ttl.min", &Self::TtlMin},
      {"ttl.jitter", &Self::TtlJitter},
      {"ttl.margin", &Self::TtlMargin},
      {"requeue_ttl", &Self::RequeueTtl},
      {"store_fatal", &Self::StoreFatal},
      {"store_secrets", &Self::StoreSecrets},
      {"max_released", &Self::MaxReleased},
      {"max_entry_bytes", &Self::MaxEntryBytes},
      {"key", &Self::Key},
      {"key_hash", &Self::KeyHash},
      {"mask", &Self::Mask},
      {"tune", &Self::Tune},
      {"vary", &Self::Vary},
      {"tune_share", &Self::TuneShare},
      {"bypass_metadata", &Self::BypassMetadata},
      {"operations", &Self::Operations},
      {"generation", &Self::Generation},
      {"cache.memory", &Self::CacheMemory},
      {"cache.disk", &Self::CacheDisk},
      {"shared.timeout", &Self::SharedTier},
      {"shared.max_entry_bytes", &Self::SharedTier},
      {"inflight.bytes", &Self::InflightBytes},
      {"max_request_bytes", &Self::MaxRequestBytes},
      {"max_response_bytes", &Self::MaxResponseBytes},
      {"max_metadata_bytes", &Self::MaxMetadataBytes},
      {"max_streams", &Self::MaxStreams},
      {"max_connections", &Self::MaxConnections},
      {"idle_timeout", &Self::IdleTimeout},
      {"max_connection_age", &Self::MaxConnectionAge},
      {"trace.dir", &Self::TraceDir},
      {"trace.level", &Self::TraceLevel},
      {"trace.file_size", &Self::TraceFileSize},
      {"trace.files", &Self::TraceFiles},
      {"trace.sample", &Self::TraceSample},
      {"stale_while_revalidate", &Self::StaleWhileRevalidate},
      {"stale_if_error", &Self::StaleIfError},
      {"finish_abandoned", &Self::FinishAbandoned},
      {"log.access", &Self::LogAccess},
      {"log.access_file", &Self::LogAccess},
      {"log.access_format", &Self::LogAccessFormat},
      {"log.access_sample", &Self::LogAccessSample},
      {"log.level", &Self::LogLevelChanges},
      {"log.format", &Self::LogFormatChanges},
  };
  return *checks;
}

std::vector<std::string> Reloading() {
  std::vector<std::string> keys;
  for (const Setting& setting : settings::ServeSettings().settings()) {
    if (setting.reloads) keys.push_back(setting.key);
  }
  return keys;
}

TEST_P(LiveSettingsTest, TakesEffectWhileTheDaemonRuns) {
  const auto check = Checks().find(GetParam());
  ASSERT_NE(check, Checks().end()) << "add what shows that it takes effect";
  (this->*check->second)();
}

INSTANTIATE_TEST_SUITE_P(Settings, LiveSettingsTest,
                         ::testing::ValuesIn(Reloading()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST_F(ReloadTest, PartsOfMemoryThatBecomeSmallAreWarnedOf) {
  Start("cache: {memory: 64MiB}\nmax_entry_bytes: 1MiB\n");
  ::testing::internal::CaptureStderr();
  Reload("cache: {memory: 16MiB}\nmax_entry_bytes: 1MiB\n");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("larger answers than this are not stored before a "
                             "restart"));
  Ask ask;
  ask.bytes = 900'000;
  Call(ask);
  EXPECT_FALSE(Call(ask).hit());
}

TEST_F(ReloadTest, TheLogsLevelIsAnotherForAWhile) {
  Start("");
  ::testing::internal::CaptureStderr();
  daemon_->SetLogLevel(LogLevel::kError, absl::InfiniteDuration());
  Reload("mode: \"off\"\n");  // said at level info
  Reload("log: {level: warn}\n");
  // The level that it returns to has changed meanwhile. An order that ends soon
  // replaces one that lasts, so that "said" cannot come too late.
  daemon_->SetLogLevel(LogLevel::kDebug, absl::Hours(1));
  Log(LogLevel::kDebug, "said");
  daemon_->SetLogLevel(LogLevel::kDebug, absl::Milliseconds(200));
  std::string log;
  EXPECT_TRUE(Eventually([&] {
    Log(LogLevel::kInfo, "unsaid");
    Log(LogLevel::kWarning, "a warning");
    log += ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    const size_t last = log.rfind("a warning");
    const size_t before = log.rfind("a warning", last - 1);
    // Nothing between the last two warnings.
    return before != std::string::npos &&
           log.find("unsaid", before) == std::string::npos;
  }));
  Reload("");
  log += ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, Not(HasSubstr("mode=\"on -> off\"")));
  EXPECT_THAT(log, HasSubstr("for=200ms"));
  EXPECT_THAT(log, HasSubstr("debug said"));
}

TEST_F(ReloadTest, AnOrderWithoutAnEndEndsWhereItsSettingChanges) {
  Start("");
  TraceOrder order;
  order.dir = dir_.File("ordered");
  daemon_->SetLogLevel(LogLevel::kError, absl::InfiniteDuration());
  ASSERT_TRUE(daemon_->StartTrace(order, absl::InfiniteDuration()).ok());
  ::testing::internal::CaptureStderr();
  Reload("mode: \"off\"\n");
  Log(LogLevel::kWarning, "unsaid");
  Reload(absl::StrCat("log: {level: warn}\ntrace: {dir: \"",
                      dir_.File("of-settings"), "\"}\n"));
  Log(LogLevel::kWarning, "said");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, Not(HasSubstr("unsaid")));
  EXPECT_THAT(log, HasSubstr("said"));
  EXPECT_EQ(daemon_->StopTrace(absl::InfiniteDuration()).dir,
            dir_.File("of-settings"));
  Reload("");
}

TEST_F(ReloadTest, AnOrderWithAnEndGoesBeforeTheSettingsAndSaysSo) {
  Start("");
  TraceOrder order;
  order.dir = dir_.File("ordered");
  daemon_->SetLogLevel(LogLevel::kWarning, absl::Hours(1));
  ASSERT_TRUE(daemon_->StartTrace(order, absl::Hours(1)).ok());
  ::testing::internal::CaptureStderr();
  Reload(absl::StrCat("log: {level: debug}\ntrace: {dir: \"",
                      dir_.File("of-settings"), "\"}\n"));
  Log(LogLevel::kInfo, "unsaid");
  std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, Not(HasSubstr("unsaid")));
  EXPECT_THAT(log, HasSubstr("log.level: fncache admin log has it at warn "
                             "until 2030-"));
  EXPECT_THAT(log, HasSubstr("trace.*: fncache admin trace start has it in " +
                             dir_.File("ordered")));
  // The daemon checks a folder now that it writes to later.
  Write("trace: {dir: /proc/none}\n");
  const auto refused = daemon_->Reload();
  EXPECT_THAT(refused.status().ToString(), HasSubstr("trace.dir: "));
  EXPECT_EQ(daemon_->StopTrace(absl::InfiniteDuration()).dir,
            dir_.File("ordered"));
  daemon_->SetLogLevel(LogLevel::kInfo, absl::InfiniteDuration());
}

TEST_F(ReloadTest, ATraceThatIsStoppedTellsOfItself) {
  Start("");
  for (const int calls : {3, 1}) {
    TraceOrder order;
    order.dir = dir_.File(absl::StrCat("trace-", calls));
    ASSERT_TRUE(daemon_->StartTrace(order, absl::InfiniteDuration()).ok());
    for (int i = 0; i < calls; ++i) Call({});
    const EndedTrace ended = daemon_->StopTrace(absl::InfiniteDuration());
    EXPECT_EQ(ended.dir, *order.dir);
    EXPECT_EQ(ended.stats.written, static_cast<uint64_t>(calls));
  }
  const EndedTrace none = daemon_->StopTrace(absl::InfiniteDuration());
  EXPECT_EQ(none.dir, "");
  EXPECT_EQ(none.stats.written, 0u);
}

TEST_F(ReloadTest, AnOrderedTraceIsNotWrittenInWhatTheDiskTierRemoves) {
  Start(absl::StrCat("generation: g\ncache: {dir: \"", dir_.File("cache"),
                     "\"}\n"));
  std::filesystem::create_directory_symlink(dir_.File("cache"),
                                            dir_.File("link"));
  TraceOrder order;
  for (const char* const own : {"cache", "cache/db", "link/db/deeper"}) {
    order.dir = dir_.File(own);
    const auto refused = daemon_->StartTrace(order, absl::InfiniteDuration());
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << own << ": " << refused;
    EXPECT_THAT(refused.ToString(), HasSubstr("cache's own"));
  }
  order.dir = dir_.File("cache/trace");
  EXPECT_TRUE(daemon_->StartTrace(order, absl::InfiniteDuration()).ok());
}

TEST_F(ReloadTest, ATraceIsWrittenForAWhile) {
  Start("");
  const std::string dir = dir_.File("trace");
  const auto traced = [&] {
    auto reader = insight::trace::TraceReader::Open(dir);
    EXPECT_TRUE(reader.ok()) << reader.status();
    int calls = 0;
    insight::trace::ReadCall call;
    while (reader.ok() && (*reader)->Next(&call)) ++calls;
    return calls;
  };
  TraceOrder order;
  EXPECT_TRUE(absl::IsInvalidArgument(
      daemon_->StartTrace(order, absl::InfiniteDuration())))
      << "it needs a directory";
  order.dir = dir;
  order.level = insight::trace::Level::kKeys;
  order.sample = 2;
  EXPECT_TRUE(absl::IsInvalidArgument(
      daemon_->StartTrace(order, absl::InfiniteDuration())));
  order.sample = 1;
  ASSERT_TRUE(daemon_->StartTrace(order, absl::InfiniteDuration()).ok());
  Call({});
  Reload("mode: \"off\"\n");  // goes on meanwhile
  Call({});
  daemon_->StopTrace(absl::InfiniteDuration());
  Call({});
  EXPECT_EQ(traced(), 2);
  // It ends by itself, and what the settings say begins again.
  Reload(absl::StrCat("trace: {dir: \"", dir_.File("of-settings"), "\"}\n"));
  // The trace ends in real time: a call that a busy machine delays beyond its
  // end shows nothing, and the trace is started again.
  constexpr absl::Duration kLasts = absl::Milliseconds(200);
  bool in_time = false;
  for (int tries = 0; tries < 50 && !in_time; ++tries) {
    const int before = traced();
    const absl::Time start = absl::Now();
    ASSERT_TRUE(daemon_->StartTrace(order, kLasts).ok());
    Call({});
    in_time = absl::Now() - start < kLasts;
    EXPECT_TRUE(Eventually([&] {
      // The directory is let go of.
      auto writer = insight::trace::TraceWriter::Create([&] {
        insight::trace::TraceOptions options;
        options.dir = dir;
        return options;
      }());
      return writer.ok();
    }));
    if (in_time) {
      EXPECT_EQ(traced(), before + 1);
    }
  }
  EXPECT_TRUE(in_time) << "no call within " << kLasts;
  EXPECT_TRUE(Eventually([&] {
    Call({});
    daemon_->StopTrace(absl::Milliseconds(1));
    auto reader = insight::trace::TraceReader::Open(dir_.File("of-settings"));
    insight::trace::ReadCall call;
    return reader.ok() && (*reader)->Next(&call);
  }));
}

}  // namespace
}  // namespace fncache::proxy
