// SPDX-License-Identifier: Apache-2.0
// The common base of tests of a fleet: daemons in processes of their own with
// one server, a function that counts its runs, and callers that check every
// answer.
//
// An answer is wrong if it is another composite's, torn, older than its
// lifetime, or purged. The function's responses say whose they are, which run
// made them and when, so each caller sees that by itself.
//
// A test that needs an event waits for it, so no test depends on the machine's
// load but where it says so.
#ifndef FNCACHE_TESTS_INTEGRATION_FLEET_TESTING_H_
#define FNCACHE_TESTS_INTEGRATION_FLEET_TESTING_H_

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"
#include "tests/resp/redis_server.h"

namespace fncache::testing {

namespace fn = apiextensions::fn::proto::v1;
using resp::testing::RedisCluster;
using resp::testing::RedisOptions;
using resp::testing::RedisServer;

// A caller wants the response for one composite.
struct Wanted {
  Wanted(std::string name, int ttl = 3600,  // NOLINT: implicit
         int bytes = 1000, std::string note = "")
      : name(std::move(name)), ttl(ttl), bytes(bytes), note(std::move(note)) {}
  Wanted(const char* name) : Wanted(std::string(name)) {}  // NOLINT: implicit

  std::string name;
  int ttl;    // seconds
  int bytes;  // of padding in the response
  // Enters the request, and the function's answer.
  std::string note;
};

// The answer that it got.
struct Answered {
  int replica = 0;
  grpc::Status status;
  std::string cache;  // cache-status, after "fncache; "
  bool hit = false;
  int run = 0;       // of this composite, from 1 up
  absl::Time began;  // the run
  absl::Time sent;   // the call
  absl::Duration took;
};

// Servers with a free port of 127.0.0.1.
RedisOptions Tcp(std::vector<std::string> arguments = {});
RedisOptions Tls(const std::string& dir, bool asks_for_the_pair = false);
RedisOptions WithUsers(std::string acl);
RedisOptions ClockAhead(int milliseconds);
// The path of a library of this folder that LD_PRELOAD can name.
std::string Preload(const std::string& library);

// A function in this process. A response has the composite's name, the number
// of its runs, the time and the build, and padding that depends on them.
class FleetFunction final : public fn::FunctionRunnerService::Service {
 public:
  explicit FleetFunction(std::string build = "v1");
  ~FleetFunction() override;

  grpc::Status RunFunction(grpc::ServerContext* context,
                           const fn::RunFunctionRequest* request,
                           fn::RunFunctionResponse* response) override;

  std::string target() const;
  const std::string& build() const { return build_; }
  int runs() const;
  int RunsOf(const std::string& name) const;
  // From now on runs for this name wait for Release.
  void Hold(const std::string& name);
  int held() const;
  void Release();

 private:
  const std::string build_;
  mutable Mutex mutex_;
  CondVar released_;
  std::set<std::string> held_names_ ABSL_GUARDED_BY(mutex_);
  int held_ ABSL_GUARDED_BY(mutex_) = 0;
  int runs_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> runs_of_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

struct ReplicaOptions {
  ReplicaOptions(std::string url = "")  // NOLINT: implicit
      : url(std::move(url)) {}

  std::string url;     // empty: without the tier
  std::string shared;  // further lines below `shared:`
  std::string more;    // further lines of the settings file
  std::string generation = "v1";
  std::string secret = "the secret of the whole test fleet";
  FleetFunction* function = nullptr;  // null: the test's
  bool hides_notes = false;           // with a mask
  Process::Environment environment;
};

// The composites that a purge covers, and the replicas that are exempt from it.
struct Purged {
  Purged(std::string name = "", bool soft = false,  // NOLINT: implicit
         std::set<int> exempt = {})
      : name(std::move(name)), soft(soft), exempt(std::move(exempt)) {}

  std::string name;  // empty: all composites
  bool soft;
  std::set<int> exempt;
};

class FleetTest : public ::testing::Test {
 protected:
  using Stub = fn::FunctionRunnerService::Stub;

  // Further lines below `shared:` for tests in which no lookup may time out,
  // not on a busy machine either.
  static constexpr char kPatient[] = "  timeout: 1s\n";

  struct Replica {
    ReplicaOptions options;
    std::string socket;  // of fncache admin
    std::string admin;   // address
    std::unique_ptr<Process> process;
    std::shared_ptr<Stub> stub;
    // Not called by Load, and calls to it may fail.
    std::atomic<bool> away{false};
    std::atomic<int> calling{0};  // calls that have no answer yet
  };

  FleetTest();
  ~FleetTest() override;

  // ---------------------------------------------------------------- Replicas

  // Starts one more, and does not wait for its tier. Returns its number.
  int StartReplica(ReplicaOptions options);
  // Starts `n` with this URL, and waits until the tier of each is up.
  void Start(int n, const std::string& url, const std::string& shared = "");
  // Starts replica `i` again, which has ended; with other options if given.
  void StartAgain(int i);
  // SIGKILL.
  void Kill(int i);
  Replica& replica(int i) { return *replicas_[i]; }
  int replicas() const { return count_; }

  std::string Metrics(int i) const;
  // The sum of all samples of a name whose labels contain `label`; -1 if there
  // is none.
  double Metric(int i, const std::string& name,
                const std::string& label = "") const;
  bool IsUp(int i) const;
  // Waits until the tier of each replica that is not away is (or is not) up.
  ::testing::AssertionResult TierBecomes(bool up) const;
  ::testing::AssertionResult TierOf(int i, bool up) const;
  // Waits until a counter or gauge has at least this value.
  ::testing::AssertionResult Reaches(int i, const std::string& name,
                                     const std::string& label,
                                     double value) const;

  struct Ended {
    int code = -1;
    std::string out;
    std::string err;
  };
  // Runs `fncache admin` on replica `i`.
  Ended Admin(int i, std::vector<std::string> arguments) const;
  // The key (hex) of the latest miss of a composite.
  std::string KeyOf(const std::string& name) const;

  // ------------------------------------------------------------------- Calls

  // Calls a replica and checks the answer. Thread-safe.
  Answered Call(int i, const Wanted& wanted);
  // A name that was not used before. Thread-safe.
  std::string NewName();

  // Calls `to` for a composite that `from` filled, until that is a hit which
  // did not run the function.
  ::testing::AssertionResult Shares(int from, int to, int bytes = 1000);
  // The same from each replica to the next one, all that are not away.
  ::testing::AssertionResult AllShare();
  // Calls `from` for a new composite, and waits until its fill is on the
  // server. Returns its name.
  std::string Filled(int from, int bytes = 1000);

  // ------------------------------------------------------------------ Purges

  // Runs `fncache admin purge` on replica `i`. From 2 s after its answer on,
  // every call that begins must be answered by a run that began after the
  // purge; after a soft purge, others must be stale.
  Ended Purge(int i, std::vector<std::string> arguments,
              const Purged& purged = {});
  // Replica `i` is exempt from no purge any more, for calls that begin `later`
  // from now.
  void EndExemption(int i, absl::Duration later);
  // Waits until calls begin more than 2 s after the answer of the last purge.
  void AwaitPurge() const;
  // When the last call began that was answered by something older than a purge,
  // counted from the purge's answer; below 0: before that. It ignores replicas
  // that are or were exempt.
  absl::Duration LastOld() const;

  // -------------------------------------------------------------------- Load

  // Callers that go round the replicas until the end of the object. Some of the
  // composites are always new, some live for a second.
  class Load {
   public:
    explicit Load(FleetTest* test, int callers = 2,
                  std::vector<Wanted> wanted = Usual());
    ~Load() { Stop(); }
    void Stop();
    // Calls that have been answered.
    int calls() const { return calls_; }
    // Waits for so many more.
    void Await(int more) const;
    static std::vector<Wanted> Usual();

   private:
    void Run(int caller);

    FleetTest* const test_;
    const std::vector<Wanted> wanted_;
    std::atomic<bool> ended_{false};
    std::atomic<int> calls_{0};
    std::vector<std::thread> callers_;
  };

  // Calls the replicas round robin for new composites, and a daemon without the
  // tier between the calls. A row of the table shows both. Fails if the median
  // of the replicas is above the other one by more than the time of a look-up
  // and what a busy machine adds.
  void MeasureMisses(const std::string& fault, int calls = 40);

  TempDir dir_;
  // How much later than its lifetime a response may be: the daemon reads its
  // clock once for several calls. Clocks that differ add that.
  absl::Duration lateness_ = absl::Milliseconds(200);
  std::unique_ptr<FleetFunction> function_;

 private:
  void StartProcess(Replica* replica);
  void Check(const Replica& replica, const Wanted& wanted,
             const fn::RunFunctionResponse& response, Answered* answered);

  // Answers to calls that begin at `from` or later must be of runs that began
  // at `floor` or later.
  struct Rule {
    Purged purged;
    absl::Time floor;
    absl::Time answered;
    std::map<int, absl::Time> from;  // by replica; absent: 2 s after `answered`
  };
  // A replica may start again meanwhile, so the caller owns it, too.
  std::shared_ptr<Stub> StubOf(const Replica& replica) const;

  static constexpr int kMost = 8;
  std::array<std::unique_ptr<Replica>, kMost> replicas_;
  std::atomic<int> count_{0};
  std::unique_ptr<Replica> alone_;  // without the tier
  std::atomic<int> names_{0};
  mutable Mutex mutex_;
  std::vector<Rule> rules_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_old_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_INTEGRATION_FLEET_TESTING_H_
