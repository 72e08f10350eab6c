// SPDX-License-Identifier: Apache-2.0
// SimulatedServer: a Redis server in simulated time, for tests of the shared
// tier.
//
// It understands what the shared store sends: GET, DEL, and EVAL with the
// scripts of shared_scripts.h, which it recognises by their text. Their meaning
// is written here in C++. simulated_server_test.cc compares it with real
// servers.
//
// Each replica has a client of its own (Connect), and all of them have one
// state. The server's clock ends values (PX) and is what TIME says. Nothing
// here waits: a command that has no reply in time returns kTimeout at once, and
// its `deadline` is ignored.
//
// Faults come from Hooks, which see each command, and from the methods below.
// `Fault` says what becomes of one command.
//
// Thread-safe, but for SetHooks and SetDefect. Deterministic when one thread
// drives it. Clients may outlive the server object.
#ifndef FNCACHE_TESTS_CACHE_STORE_SIMULATED_SERVER_H_
#define FNCACHE_TESTS_CACHE_STORE_SIMULATED_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/clock.h"
#include "resp/server.h"

namespace fncache::cache::store::testing {

class SimulatedServer {
 public:
  enum class Fault {
    kNone,
    kLost,         // no reply in time; it never arrived
    kNoReply,      // no reply in time; it took effect
    kLate,         // no reply in time; it takes effect at DeliverLate
    kClosed,       // the connection was closed before it arrived
    kClosedAfter,  // the connection was closed after it took effect
    kDown,         // no node is up for it
    kError,        // an error of the server; it took no effect
  };

  // A value, and when it ends by the server's clock (milliseconds since the
  // Unix epoch). Absent: never.
  struct Value {
    std::string bytes;
    absl::optional<int64_t> ends;
    friend bool operator==(const Value& a, const Value& b) {
      return a.bytes == b.bytes && a.ends == b.ends;
    }
  };
  // All that a server has, by name.
  using Copy = std::map<std::string, Value>;

  // They run on the thread of the command, without a lock, and may call this
  // server. `replica` is Connect's.
  struct Hooks {
    // Before the command. Null: kNone.
    std::function<Fault(int replica, const resp::Command&)> before;
    // Once it has taken effect, and before its reply arrives.
    std::function<void(int replica, const resp::Command&)> after;
  };

  // Mistakes that a server could have. A test plants them to see that it finds
  // them.
  enum class Defect {
    kNone,
    kFillsOverLater,   // a fill does not compare what started when
    kErasesLater,      // likewise an erasure
    kNeverEnds,        // PX does nothing
    kWritesAnyRecord,  // the record is written without the comparison
  };

  // `clock` is the server's own, and outlives it and its clients.
  explicit SimulatedServer(Clock* clock);
  ~SimulatedServer();

  std::unique_ptr<resp::Server> Connect(int replica);

  void SetHooks(Hooks hooks);
  void SetDefect(Defect defect);

  // ------------------------------------------------------------------ Faults

  // False: each command of this replica (or of all) is kDown.
  void SetReachable(int replica, bool reachable);
  void SetUp(bool up);
  // Every SET fails with an OOM error.
  void SetFull(bool full);
  // Commands of Fault::kLate take effect now, in their order; or never.
  size_t DeliverLate();
  void DropLate();
  // The values are gone: FLUSHALL, and a death without a copy on disk.
  void Clear();
  bool Evict(absl::string_view name);
  // Failover: a copy that was taken earlier is the server from now on.
  Copy Take() const;
  void Promote(Copy copy);

  // ----------------------------------------------------------------- Contents

  std::vector<std::string> Names() const;
  // The value that a GET would reply.
  absl::optional<Value> Read(absl::string_view name) const;
  // Writes as a hostile client does.
  void Write(absl::string_view name, Value value);
  // The last values that were written under a name, the oldest first, at most
  // kHistory of them. Write is not counted.
  std::vector<Value> History(absl::string_view name) const;
  static constexpr size_t kHistory = 8;

  // Does one thing that a hostile writer can do to entries whose names `may`
  // accepts: swaps two values, flips a bit, cuts one, raises its clear header,
  // or writes an earlier value. Returns false if there was nothing to do.
  bool Meddle(std::mt19937* random,
              const std::function<bool(const std::string&)>& may);

 private:
  class Client;
  struct State;
  const std::shared_ptr<State> state_;
};

// How often each fault befalls a command, in thousandths.
struct FaultRates {
  int lost = 0;
  int no_reply = 0;
  int late = 0;
  int closed = 0;
  int closed_after = 0;
  int down = 0;
  int error = 0;
};
SimulatedServer::Fault DrawFault(const FaultRates& rates, std::mt19937* random);

}  // namespace fncache::cache::store::testing

#endif  // FNCACHE_TESTS_CACHE_STORE_SIMULATED_SERVER_H_
