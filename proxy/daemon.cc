// SPDX-License-Identifier: Apache-2.0
#include "proxy/daemon.h"

#include <malloc.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "cache/store/open_tiers.h"
#include "cache/store/tiered_store.h"
#include "common/handshake_failure.h"
#include "common/log.h"
#include "common/log_limiter.h"
#include "common/status.h"
#include "common/thread_pool.h"
#include "common/threads.h"
#include "insight/explain/miss_memory.h"
#include "insight/trace/writer.h"
#include "proxy/serving/handler.h"
#include "proxy/telemetry/access_log.h"
#include "proxy/telemetry/admin.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/transport/inflight.h"
#include "proxy/transport/listener.h"
#include "proxy/transport/tls.h"
#include "proxy/transport/upstream.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy {
namespace {

// A worker that has not run a task for so long hangs.
constexpr absl::Duration kDeaf = absl::Seconds(10);

// Calls that are cancelled when the drain ends may take so long to go. Less
// than kLockGrace.
constexpr absl::Duration kGone = absl::Seconds(3);

// The directory's lock is waited for as long as a predecessor may drain, and so
// much longer.
constexpr absl::Duration kLockGrace = absl::Seconds(5);

// Streams are cancelled once there has been no unary call for so long: one may
// have been accepted and not been seen yet.
constexpr absl::Duration kSettled = absl::Milliseconds(20);

// Gives memory back that a burst of calls has left free: the C library keeps
// what lies below something that is in use. Free memory that stays for two
// looks is not needed for the calls that come.
class HeapKeeper {
 public:
  HeapKeeper() : thread_([this] { Run(); }) {}
  ~HeapKeeper() {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      stopped_.SignalAll();
    }
    thread_.join();
  }

 private:
  static constexpr absl::Duration kLook = absl::Seconds(5);
  static constexpr size_t kKept = 32 << 20;

  void Run() {
    bool much = false;
    MutexLock lock(&mutex_);
    while (!stop_) {
      if (!stopped_.WaitWithTimeout(&mutex_, kLook)) continue;
      const bool before = much;
      much = mallinfo2().fordblks > kKept;
      if (before && much) malloc_trim(kKept / 2);
    }
  }

  Mutex mutex_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

std::vector<std::string> Names(const settings::DaemonOptions& options) {
  std::vector<std::string> names;
  for (const settings::FunctionOptions& function : options.functions) {
    names.push_back(function.name);
  }
  return names;
}

// Workers beyond this have not been seen to pay.
constexpr int kMostWorkers = 8;

int Workers(const settings::DaemonOptions& options) {
  return options.workers > 0 ? options.workers
                             : std::min(UsableCores(), kMostWorkers);
}

// Threads that do the workers' jobs, for the cores that are left beside the
// worker which reads and writes; null where there are none.
std::unique_ptr<ThreadPool> MakeAssistants() {
  constexpr size_t kMostWaiting = 1024;  // more than workers hand over
  const int cores = UsableCores();
  if (cores == 1) return nullptr;
  return std::make_unique<ThreadPool>(std::min(cores, kMostWorkers) - 1,
                                      kMostWaiting);
}

}  // namespace

class Daemon::Impl {
 public:
  // A Function is all that one function's calls pass, in the order of the call:
  // listener, handler, upstream.
  struct Function {
    std::unique_ptr<transport::Upstream> upstream;
    std::unique_ptr<serving::FunctionHandler> handler;
    std::unique_ptr<transport::Listener> listener;
  };

  explicit Impl(const settings::DaemonOptions& options)
      : instruments(Names(options)),
        assistants(MakeAssistants()),
        inflight(options.inflight_bytes, Workers(options)),
        workers(transport::MakeWorkers(Workers(options), assistants.get())) {}
  ~Impl() {
    // Workers stop first, but are kept: the store's threads may post to them.
    for (Function& function : functions) {
      if (function.listener != nullptr) {
        function.listener->StopAccepting(absl::Now());
      }
    }
    for (Function& function : functions) {
      if (function.listener != nullptr) function.listener->Join();
    }
    StopWorkers();
    // The assistants end before the workers go: the one that brought the last
    // job back may still be on the way out of Worker::Post.
    assistants = nullptr;
    admin = nullptr;
    store = nullptr;
    for (Function& function : functions) function.listener = nullptr;
  }

  // Precondition: no listener accepts calls any more.
  void StopWorkers() {
    for (const auto& worker : workers) worker->Stop();
  }

  int unary() const {
    int sum = 0;
    for (const auto& worker : workers) sum += worker->unary();
    return sum;
  }
  int calls() const {
    int sum = 0;
    for (const auto& worker : workers) sum += worker->calls();
    return sum;
  }

  telemetry::Instruments instruments;
  std::unique_ptr<HandshakeObserver> handshakes;
  // Null with explain.memory 0. As long.
  std::unique_ptr<insight::explain::MissMemory> misses;
  // Null without trace.dir. Calls write to it as long as there are any.
  std::unique_ptr<insight::trace::TraceWriter> trace;
  telemetry::AccessLog access_log{instruments.access_log()};
  SystemClock system_clock;
  std::unique_ptr<transport::ServerTls> server_tls;
  std::unique_ptr<transport::ClientTls> client_tls;
  std::unique_ptr<cache::store::TieredStore> store;
  std::unique_ptr<ThreadPool> assistants;
  transport::Inflight inflight;
  // One worker for each core, for all listeners together, so that a hundred
  // functions cost what one does.
  std::vector<std::unique_ptr<transport::Worker>> workers;
  std::vector<Function> functions;
  std::unique_ptr<telemetry::Admin> admin;
  HeapKeeper heap;
};

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(
    settings::DaemonOptions options, Extras extras) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options)));
  const absl::Status status = daemon->Open(std::move(extras));
  if (!status.ok()) return status;
  return daemon;
}

Daemon::Daemon(settings::DaemonOptions options)
    : options_(std::move(options)), impl_(std::make_unique<Impl>(options_)) {}

Daemon::~Daemon() {
  ready_ = false;
  // Its pages look at all the rest.
  impl_->admin = nullptr;
  impl_ = nullptr;
}

int Daemon::calls() const { return impl_->calls(); }

absl::Status Daemon::OpenTls(absl::Duration interval) {
  telemetry::Instruments* const instruments = &impl_->instruments;
  const auto watch = [&](const std::string& dir, TlsSide side)
      -> absl::StatusOr<std::unique_ptr<transport::TlsWatcher>> {
    auto watcher = transport::TlsWatcher::Create(
        dir, side,
        [instruments, side](bool taken_up) {
          if (taken_up) {
            instruments->CertificateReloaded(side);
          } else {
            instruments->CertificateReloadFailed(side);
          }
        },
        interval);
    if (watcher.ok()) {
      instruments->WatchCertificate(
          side, [watcher = watcher->get()] { return watcher->expiry(); });
    }
    return watcher;
  };
  impl_->handshakes = std::make_unique<HandshakeObserver>(
      [instruments](const HandshakeFailure& failure) {
        instruments->HandshakeFailed(failure.side, failure.fault);
      });
  if (options_.tls_dir.has_value()) {
    auto watcher = watch(*options_.tls_dir, TlsSide::kServer);
    if (!watcher.ok()) return watcher.status();
    impl_->server_tls =
        std::make_unique<transport::ServerTls>(*std::move(watcher));
  }
  if (options_.upstream_tls_dir.has_value()) {
    auto watcher = watch(*options_.upstream_tls_dir, TlsSide::kClient);
    if (!watcher.ok()) return watcher.status();
    impl_->client_tls =
        std::make_unique<transport::ClientTls>(*std::move(watcher));
  }
  return absl::OkStatus();
}

absl::Status Daemon::OpenStore(Clock* clock, const Extras& extras) {
  cache::store::TieredOptions tiers;
  tiers.memory_bytes = options_.cache_memory;
  tiers.max_entry_bytes = 0;
  for (const settings::FunctionOptions& function : options_.functions) {
    tiers.max_entry_bytes =
        std::max(tiers.max_entry_bytes, function.policy.max_entry_bytes);
    tiers.functions.push_back(
        {function.name, function.generation,
         function.policy.store_secrets == cache::StoreSecrets::kAll});
  }
  tiers.disk_dir = options_.cache_dir;
  tiers.disk_bytes = options_.cache_disk;
  tiers.lock_wait = options_.drain + options_.drain_delay + kLockGrace;
  tiers.cancelled = extras.cancelled;
  tiers.disk_retry = extras.disk_retry;
  auto store = cache::store::OpenTiers(std::move(tiers), clock,
                                       impl_->instruments.observer());
  if (!store.ok()) return store.status();
  impl_->store = *std::move(store);
  cache::store::TieredStore* const opened = impl_->store.get();
  impl_->instruments.WatchTier(cache::Tier::kMemory,
                               [opened] { return opened->Stats(); });
  // The disk tier is watched even while it cannot be opened, so that its
  // metrics are there when it can.
  if (options_.cache_dir.has_value()) {
    impl_->instruments.WatchTier(cache::Tier::kDisk,
                                 [opened] { return opened->LowerStats(); });
    impl_->instruments.WatchQueue("disk_fills",
                                  [opened] { return opened->QueueDepth(); });
    impl_->instruments.WatchQueue(
        "disk_lookups", [opened] { return opened->LookupQueueDepth(); });
  }
  return absl::OkStatus();
}

absl::Status Daemon::OpenTrace(const std::vector<ListedSetting>& settings) {
  if (options_.trace_dir.empty()) return absl::OkStatus();
  insight::trace::TraceOptions options;
  options.dir = options_.trace_dir;
  options.level = options_.trace_level;
  options.file_size = options_.trace_file_size;
  options.files = options_.trace_files;
  options.sample = options_.trace_sample;
  options.writer = "serve";
  // With what it costs besides, a miss pays a quarter for it at most. Who wants
  // the messages wants all of them.
  if (options.level == insight::trace::Level::kPaths) {
    options.read_limits = {/*of_process=*/0.1, /*of_core=*/0.05};
  }
  options.on_unread = [] {
    Log(LogLevel::kWarning,
        "the trace leaves the paths of some composites out: reading all "
        "requests takes more CPU than it may",
        {{"metric", "fncache_trace_read_share"}});
  };
  // One line for each failure and one for its end, however many records.
  options.on_failure = [](absl::string_view why) {
    if (why.empty()) {
      Log(LogLevel::kInfo, "the trace is written again");
    } else {
      Log(LogLevel::kWarning, "the trace cannot be written: calls go untraced",
          {{"why", why}});
    }
  };
  for (const ListedSetting& setting : settings) {
    if (!setting.set) continue;
    const std::string where =
        setting.function.empty()
            ? ""
            : absl::StrCat("functions.", setting.function, ".");
    options.settings[where + setting.key] = absl::StrJoin(setting.values, ",");
  }
  auto writer = insight::trace::TraceWriter::Create(std::move(options));
  if (!writer.ok()) {
    return absl::Status(writer.status().code(),
                        absl::StrCat("trace.dir: ", writer.status().message()));
  }
  impl_->trace = *std::move(writer);
  impl_->instruments.WatchTrace(
      [trace = impl_->trace.get()] { return trace->Stats(); });
  if (options_.trace_level == insight::trace::Level::kFull) {
    Log(LogLevel::kWarning,
        "trace.level: full writes requests and answers down, without secrets",
        {{"dir", options_.trace_dir}});
  }
  return absl::OkStatus();
}

absl::Status Daemon::OpenAccessLog() {
  return Prefixed("log.access_file",
                  impl_->access_log.Configure(options_.access_log));
}

void Daemon::ReopenLogs() { impl_->access_log.Reopen(); }

void Daemon::OpenExplain(Clock* clock) {
  if (options_.explain_memory == 0) return;
  insight::explain::MissMemoryOptions options;
  options.bytes = options_.explain_memory;
  impl_->misses =
      std::make_unique<insight::explain::MissMemory>(options, clock);
  impl_->instruments.WatchExplain([misses = impl_->misses.get()] {
    return telemetry::Instruments::ExplainFigures{
        misses->bytes(), misses->paths_share(), misses->share(), misses->cpu()};
  });
}

namespace {

absl::Duration OrNever(absl::Duration duration) {
  return duration == absl::ZeroDuration() ? absl::InfiniteDuration() : duration;
}

// One line a minute for each kind of thing that a listener's peers cause.
class PeerLog {
 public:
  explicit PeerLog(const telemetry::FunctionInstruments* function)
      : function_(function) {}
  void Tell(LogLimiter* lines, absl::string_view what, absl::string_view why) {
    uint64_t unlogged = 0;
    if (!lines->Allows(absl::Now(), &unlogged)) return;
    std::vector<LogField> fields = {{"function", function_->name()}};
    if (!why.empty()) fields.emplace_back("why", std::string(why));
    if (unlogged > 0) fields.emplace_back("unlogged", absl::StrCat(unlogged));
    Log(LogLevel::kWarning, what, fields);
  }

  LogLimiter connections{absl::Minutes(1)};
  LogLimiter streams{absl::Minutes(1)};
  LogLimiter accepting{absl::Minutes(1)};
  LogLimiter ended{absl::Minutes(1)};

 private:
  const telemetry::FunctionInstruments* const function_;
};

http2::ServerEvents Events(const telemetry::FunctionInstruments* function) {
  auto log = std::make_shared<PeerLog>(function);
  http2::ServerEvents events;
  events.ended = [function, log](http2::ConnectionEnd end,
                                 const std::string& words) {
    function->ConnectionEnded(static_cast<size_t>(end));
    switch (end) {
      case http2::ConnectionEnd::kNotHttp2:
      case http2::ConnectionEnd::kTimeout:
      case http2::ConnectionEnd::kProtocol:
      case http2::ConnectionEnd::kTooMuch:
        return log->Tell(&log->ended, "ended a caller's connection", words);
      default:
        return;
    }
  };
  events.connection_refused = [function, log] {
    function->ConnectionRefused();
    log->Tell(&log->connections, "closed a new connection: max_connections",
              "");
  };
  events.stream_refused = [function, log] {
    function->StreamRefused();
    log->Tell(&log->streams, "refused a call: max_streams", "");
  };
  events.abandoned = [function] { function->RequestAbandoned(); };
  events.accept_failed = [function, log](const std::string& why) {
    function->AcceptFailed();
    log->Tell(&log->accepting, "cannot accept connections, trying again", why);
  };
  return events;
}

}  // namespace

absl::Status Daemon::OpenListeners(Clock* clock, absl::Duration connect_limit) {
  std::vector<transport::Worker*> workers;
  for (const auto& worker : impl_->workers) workers.push_back(worker.get());
  const int count = static_cast<int>(workers.size());
  impl_->instruments.WatchWorkers(count);
  impl_->instruments.WatchInflight([inflight = &impl_->inflight] {
    return telemetry::Instruments::InflightFigures{
        inflight->reading(), inflight->waiting(), inflight->running(),
        inflight->bound(), inflight->refused()};
  });
  impl_->functions.resize(options_.functions.size());
  for (size_t i = 0; i < options_.functions.size(); ++i) {
    const settings::FunctionOptions& options = options_.functions[i];
    Impl::Function& function = impl_->functions[i];
    transport::UpstreamOptions upstream;
    upstream.target = options.upstream;
    upstream.server_name = options_.upstream_server_name;
    upstream.connect_limit = connect_limit;
    upstream.max_response_bytes = options_.max_response_bytes;
    upstream.max_metadata_bytes =
        static_cast<uint32_t>(options_.max_metadata_bytes);
    upstream.inflight = &impl_->inflight;
    const telemetry::FunctionInstruments* const instruments =
        &impl_->instruments.function(static_cast<cache::FunctionId>(i));
    upstream.unreachable = [instruments, clock,
                            target = options.upstream](absl::string_view why) {
      instruments->Unreachable(clock->Now(), why);
      Log(LogLevel::kWarning, "cannot reach the function",
          {{"function", instruments->name()},
           {"upstream", target},
           {"why", why}});
    };
    upstream.reachable = [instruments, target = options.upstream] {
      instruments->Reachable();
      Log(LogLevel::kInfo, "the function can be reached again",
          {{"function", instruments->name()}, {"upstream", target}});
    };
    function.upstream = std::make_unique<transport::Upstream>(
        std::move(upstream), impl_->client_tls.get(), count);
    const auto id = static_cast<cache::FunctionId>(i);
    function.handler = std::make_unique<serving::FunctionHandler>(
        id, options, impl_->store.get(), clock, function.upstream.get(),
        *instruments, impl_->trace.get(), impl_->misses.get(),
        &impl_->access_log);
    transport::ListenerOptions listen;
    listen.address = options.listen;
    listen.workers = workers;
    listen.tls = impl_->server_tls.get();
    listen.max_request_bytes = options_.max_request_bytes;
    listen.inflight = &impl_->inflight;
    listen.max_streams = static_cast<uint32_t>(options_.max_streams);
    listen.max_metadata_bytes =
        static_cast<uint32_t>(options_.max_metadata_bytes);
    listen.max_connections = static_cast<size_t>(options_.max_connections);
    listen.idle_timeout = OrNever(options_.idle_timeout);
    listen.max_connection_age = OrNever(options_.max_connection_age);
    listen.events = Events(instruments);
    auto listener = transport::Listener::Create(std::move(listen));
    if (!listener.ok()) return listener.status();
    function.listener = *std::move(listener);
    impl_->instruments.WatchConnections(
        id,
        [listening = function.listener.get()] {
          return listening->connections();
        },
        [to = function.upstream.get()] {
          return static_cast<size_t>(to->connected());
        });
    addresses_.push_back(function.listener->address());
  }
  return absl::OkStatus();
}

std::vector<telemetry::FunctionFacts> Daemon::Facts() const {
  std::vector<telemetry::FunctionFacts> all;
  // The page is there before the functions are.
  if (!started_.load(std::memory_order_acquire)) return all;
  for (const Impl::Function& function : impl_->functions) {
    telemetry::FunctionFacts facts;
    facts.callers_connections = function.listener->connections();
    facts.upstream_connections =
        static_cast<size_t>(function.upstream->connected());
    facts.masks = function.handler->Masks();
    all.push_back(std::move(facts));
  }
  return all;
}

absl::Status Daemon::OpenAdmin(Clock* clock,
                               const std::vector<ListedSetting>& settings) {
  if (options_.admin.empty() || impl_->admin != nullptr) {
    return absl::OkStatus();
  }
  telemetry::AdminView view;
  view.ready = [this] { return ready() && Accepting(); };
  view.alive = [this] { return Alive(); };
  view.draining = [this] { return draining_.load(); };
  for (const settings::FunctionOptions& function : options_.functions) {
    view.upstreams.push_back(function.upstream);
  }
  view.settings = settings;
  view.facts = [this] { return Facts(); };
  view.misses = [this] {
    const insight::explain::MissMemory* const misses =
        ready() ? impl_->misses.get() : nullptr;
    return misses == nullptr
               ? std::vector<insight::explain::MissMemory::FunctionTop>()
               : misses->Tops(telemetry::kMissesListed);
  };
  auto admin = telemetry::Admin::Start(options_.admin, &impl_->instruments,
                                       clock, std::move(view));
  if (!admin.ok()) return admin.status();
  impl_->admin = *std::move(admin);
  admin_address_ = impl_->admin->address();
  return absl::OkStatus();
}

absl::Status Daemon::Open(Extras extras) {
  Clock* const clock =
      extras.clock != nullptr ? extras.clock : &impl_->system_clock;
  absl::Status status = OpenTls(extras.tls_interval);
  // The admin endpoint comes early, so that probes are answered while the
  // store's lock is waited for. Where a predecessor still holds the port, it is
  // tried again after that.
  if (status.ok()) OpenAdmin(clock, extras.settings).IgnoreError();
  if (status.ok()) status = OpenStore(clock, extras);
  if (status.ok()) status = OpenTrace(extras.settings);
  if (status.ok()) status = OpenAccessLog();
  if (status.ok()) OpenExplain(clock);
  if (status.ok()) status = OpenListeners(clock, extras.connect_limit);
  if (status.ok()) status = OpenAdmin(clock, extras.settings);
  if (!status.ok()) return status;
  for (const auto& worker : impl_->workers) worker->Start();
  for (Impl::Function& function : impl_->functions) {
    function.listener->Start(function.handler.get());
  }
  started_ = true;
  ready_ = true;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    Log(LogLevel::kInfo, absl::StrCat("listening on ", addresses_[i]),
        {{"function", options_.functions[i].name},
         {"upstream", options_.functions[i].upstream}});
  }
  if (!admin_address_.empty()) {
    Log(LogLevel::kInfo,
        absl::StrCat("listening on ", admin_address_,
                     " (admin: /metrics /healthz /readyz /statusz)"));
  }
  return absl::OkStatus();
}

bool Daemon::Alive() const {
  // Workers start last; before that there is nothing to hang.
  if (!started_.load(std::memory_order_acquire)) return true;
  for (const auto& worker : impl_->workers) {
    if (!worker->Alive(kDeaf)) return false;
  }
  return true;
}

bool Daemon::Accepting() const {
  for (const Impl::Function& function : impl_->functions) {
    if (!function.listener->accepting()) return false;
  }
  return Alive();
}

void Daemon::Drain(std::function<void()> overdue) {
  draining_ = true;
  ready_ = false;
  Log(LogLevel::kInfo, "draining", {{"calls", calls()}});
  absl::SleepFor(options_.drain_delay);
  const absl::Time deadline = absl::Now() + options_.drain;
  for (Impl::Function& function : impl_->functions) {
    function.listener->StopAccepting(deadline);
  }
  absl::Time unary_seen = absl::Now();
  for (absl::Time now = absl::Now(); now < deadline; now = absl::Now()) {
    if (impl_->unary() > 0) {
      unary_seen = now;
    } else if (now - unary_seen >= kSettled) {
      if (impl_->calls() == 0) break;
      for (Impl::Function& function : impl_->functions) {
        function.listener->CancelStreams();
      }
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  const int left = calls();
  if (left > 0) {
    Log(LogLevel::kWarning, "the drain is over, cancelling what is left",
        {{"calls", left}});
  }
  absl::Notification gone;
  // gRPC ends no connection to which something is being written.
  std::thread patience([this, deadline, &gone, &overdue] {
    if (gone.WaitForNotificationWithTimeout(deadline + kGone - absl::Now()) ||
        overdue == nullptr) {
      return;
    }
    impl_->store->Flush();
    Log(LogLevel::kWarning, "stopping without peers that do not read",
        {{"calls", calls()}});
    overdue();
  });
  for (Impl::Function& function : impl_->functions) function.listener->Join();
  impl_->StopWorkers();
  gone.Notify();
  patience.join();
  impl_->store->Flush();
  Log(LogLevel::kInfo, "stopped");
}

}  // namespace fncache::proxy
