// SPDX-License-Identifier: Apache-2.0
// The common base of tests of tuning: a cluster that drifts, a function whose
// behaviour a test gives, a daemon between the two, and the comparison of each
// answer with the function's answer to that very request.
//
// The daemon runs in the test's process, with simulated time, or in a process
// of its own. A test that needs an event waits for it, so no test depends on
// the machine's load.
#ifndef FNCACHE_TESTS_INTEGRATION_TUNING_TESTING_H_
#define FNCACHE_TESTS_INTEGRATION_TUNING_TESTING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "google/protobuf/struct.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proxy/daemon.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {

namespace fn = apiextensions::fn::proto::v1;
namespace pb = google::protobuf;

using Request = fn::RunFunctionRequest;
using Response = fn::RunFunctionResponse;

// ------------------------------------------------------------------- Requests

// The value at a path of map keys. The first one makes what is missing.
pb::Value& At(pb::Struct* object, const std::vector<std::string>& path);
const pb::Value* Find(const pb::Struct& object,
                      const std::vector<std::string>& path);
// The text there, "" if there is none; and the number, -1 if there is none.
std::string Text(const pb::Struct& object,
                 const std::vector<std::string>& path);
double Number(const pb::Struct& object, const std::vector<std::string>& path);

// A moment of the tests' time scale, and back. As RFC 3339 without a fraction.
std::string TimeText(int64_t seconds);
int64_t SecondsOf(const std::string& time);

const pb::Struct& Composite(const Request& request);
const pb::Struct& Resource(const Request& request, const std::string& name);
const pb::Struct& Required(const Request& request);
std::string Version(const pb::Struct& object);

// A composite with two resources, a CronJob and a required object. Versions,
// heartbeats and schedules are drift; a test changes the rest.
struct Cluster {
  int64_t versions = 0;    // of all objects
  int64_t beats = 0;       // heartbeats, schedules and times in managedFields
  int64_t transition = 0;  // lastTransitionTime
  int64_t lead = 10;       // how much later b's heartbeat is than a's
  int64_t success = 5;     // how much later the success is than the schedule

  std::string name = "logs";
  std::string input = "A";
  std::string tier = "silver";
  std::string color = "blue";
  std::string ready = "True";
  std::string phase = "Active";
  int replicas = 3;
  int available = 3;
  int generation = 7;
  int observed_generation = 7;
  std::string manager = "provider";
  pb::Value finished;  // not set: it is absent

  void Tick() {
    ++versions;
    ++beats;
  }
  Request Make() const;
};

// -------------------------------------------------------------- The function

struct Reply {
  Reply(std::string text) : text(std::move(text)) {}  // NOLINT: implicit
  Reply(const char* text) : text(text) {}             // NOLINT: implicit
  Reply(bool yes) : text(yes ? "yes" : "no") {}       // NOLINT: implicit
  std::string text;
  int64_t ttl = 3600;  // seconds
  bool fatal = false;
  grpc::StatusCode code = grpc::StatusCode::OK;
};

using Behaviour = std::function<Reply(const Request&)>;

// A gRPC server. It may keep calls until the test releases them.
class Function final : public fn::FunctionRunnerService::Service {
 public:
  struct Asked {
    Request request;
    bool question;
    std::multimap<std::string, std::string> metadata;
  };

  explicit Function(Behaviour behaviour);
  ~Function() override;

  grpc::Status RunFunction(grpc::ServerContext* context, const Request* request,
                           Response* response) override;

  static void Fill(const Reply& reply, Response* response);

  std::string target() const;
  int runs() const;       // that began, questions included
  int questions() const;  // that began
  int running() const;
  int most_questions() const;  // at once
  std::vector<Asked> asked() const;

  // From now on calls of this kind wait for Release.
  void HoldQuestions();
  void HoldCalls();
  int held() const;
  void Release();
  // Releases those that wait now. Later ones wait.
  void Step();
  // Releases all, and waits for them. No later call comes.
  void Stop();

 private:
  const Behaviour behaviour_;
  mutable Mutex mutex_;
  CondVar released_;
  bool hold_questions_ ABSL_GUARDED_BY(mutex_) = false;
  bool hold_calls_ ABSL_GUARDED_BY(mutex_) = false;
  int released_times_ ABSL_GUARDED_BY(mutex_) = 0;
  int held_ ABSL_GUARDED_BY(mutex_) = 0;
  int questions_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_questions_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_questions_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Asked> asked_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// ------------------------------------------------------------------- The test

// The answer that a caller got.
struct Got {
  grpc::Status status;
  Response response;
  std::string cache;  // cache-status, after "fncache; "

  bool hit() const { return absl::StartsWith(cache, "hit; "); }
  bool across() const { return absl::EndsWith(cache, "; detail=drift"); }
  // The detail of a miss over drift, "" if it is none.
  std::string why() const;
};

class TuningTest : public ::testing::Test {
 protected:
  // Stops the function at its end. Declared after what the behaviour uses and
  // before Start, as the function may answer a question when a test ends.
  struct StopsFunction {
    TuningTest* test;
    ~StopsFunction() {
      if (test->function_ != nullptr) test->function_->Stop();
    }
  };

  ~TuningTest() override;

  // Starts the function, and a daemon in this process with simulated time. The
  // settings follow `tune: on` and `tune_share: 1`.
  void Start(Behaviour behaviour, const std::string& settings = "");
  // The same with a daemon in a process of its own.
  void StartProcess(Behaviour behaviour, const std::string& settings = "");
  // Once more, with these settings.
  void RestartProcess(const std::string& settings);
  // The settings of the daemon in this process become these.
  void Reload(const std::string& settings);
  std::string Settings(const std::string& more) const;

  // Calls with this request, and compares.
  Got Call(
      const Request& request,
      const std::vector<std::pair<std::string, std::string>>& metadata = {});
  Got CallOnce() { return Call(cluster_.Make()); }
  // Calls, and waits until the daemon asks nothing.
  Got CallAndWait();
  // Ticks and calls until `done` says so of the answer, at most `most` times.
  bool TickUntil(const std::function<bool(const Got&)>& done, int most = 300);
  // Ticks versions alone.
  bool TickVersionsUntil(const std::function<bool(const Got&)>& done,
                         int most = 300);
  static bool IsAcross(const Got& got) { return got.across(); }

  // Waits until the function has nothing to answer, and gets nothing more.
  void WaitUntilQuiet();
  std::unique_ptr<fn::FunctionRunnerService::Stub> Stub() const;
  std::string Get(const std::string& path) const;

  // Adds a row to the table that is printed after all tests.
  void Report(const std::string& name, const std::string& verdict);

  TempDir dir_;
  const std::string file_ = dir_.File("fncache.yaml");
  SimulatedClock clock_{absl::FromUnixSeconds(1'795'000'000)};
  std::unique_ptr<Function> function_;
  std::unique_ptr<proxy::Daemon> daemon_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<fn::FunctionRunnerService::Stub> stub_;
  Cluster cluster_;
  // The right answer to a request; absent: what the behaviour says.
  Behaviour expected_;
  // Replaces the comparison where the function has several right answers.
  std::function<bool(const Request&, const Response&)> accepts_;
  int calls_ = 0;
  int hits_ = 0;           // across drift
  int hits_of_times_ = 0;  // across times
  int wrong_ = 0;
  bool may_be_wrong_ = false;
  bool compresses_ = false;  // requests

 private:
  void Connect(const std::string& address);

  Behaviour behaviour_;
  int64_t last_beats_ = -1;
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_INTEGRATION_TUNING_TESTING_H_
