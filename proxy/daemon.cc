// SPDX-License-Identifier: Apache-2.0
#include "proxy/daemon.h"

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "cache/store/tiered_store.h"
#include "common/log.h"
#include "common/status.h"
#include "common/thread_pool.h"
#include "insight/explain/miss_memory.h"
#include "insight/trace/writer.h"
#include "proxy/admin/server.h"
#include "proxy/admin/start.h"
#include "proxy/admin_actions.h"
#include "proxy/alarms.h"
#include "proxy/daemon_facts.h"
#include "proxy/daemon_store.h"
#include "proxy/daemon_threads.h"
#include "proxy/daemon_tls.h"
#include "proxy/heap_keeper.h"
#include "proxy/limits/budget.h"
#include "proxy/peer_events.h"
#include "proxy/purge.h"
#include "proxy/serving/handler.h"
#include "proxy/serving/tuning.h"
#include "proxy/settings/settings.h"
#include "proxy/telemetry/access_log.h"
#include "proxy/telemetry/admin.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/telemetry/purge_metrics.h"
#include "proxy/trace_switch.h"
#include "proxy/transport/listener.h"
#include "proxy/transport/upstream.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy {
namespace {

// A worker that has not run a task for this time hangs.
constexpr absl::Duration kDeaf = absl::Seconds(10);

// The time in which calls that are cancelled at the end of the drain must end.
// It is less than kLockGrace (daemon_store.cc).
constexpr absl::Duration kGone = absl::Seconds(3);

// Streams are cancelled after this time without a unary call: a call may have
// been accepted but not counted yet.
constexpr absl::Duration kSettled = absl::Milliseconds(20);

std::vector<std::string> Names(const settings::DaemonOptions& options) {
  std::vector<std::string> names;
  for (const settings::FunctionOptions& function : options.functions) {
    names.push_back(function.name);
  }
  return names;
}

}  // namespace

class Daemon::Impl {
 public:
  // The objects that one function's calls pass, in this order: listener,
  // handler, upstream.
  struct Function {
    std::unique_ptr<transport::Upstream> upstream;
    std::unique_ptr<serving::FunctionHandler> handler;
    std::unique_ptr<transport::Listener> listener;
  };

  explicit Impl(const settings::DaemonOptions& options)
      : instruments(Names(options), !options.shared.url.empty()),
        trace(&instruments, options.cache_dir),
        assistants(MakeAssistants()),
        inflight(options.inflight_bytes, WorkersOf(options)),
        workers(transport::MakeWorkers(WorkersOf(options), assistants.get())) {}
  ~Impl() {
    // Settings of objects that end must not change. The socket ends before the
    // cache directory's lock, because that lock's next owner needs its path.
    admin_service = nullptr;
    alarms.Stop();
    // Workers stop first, but live on: the store's threads may post to them.
    for (Function& function : functions) {
      if (function.listener != nullptr) {
        function.listener->StopAccepting(absl::Now());
      }
    }
    for (Function& function : functions) {
      if (function.listener != nullptr) function.listener->Join();
    }
    StopWorkers();
    // The assistants end before the workers: one that returned the last job may
    // still be inside Worker::Post.
    assistants = nullptr;
    admin = nullptr;
    store.Close();
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
  // The settings of the start.
  std::vector<telemetry::ListedSetting> settings;
  // Null with explain.memory 0. It outlives calls.
  std::unique_ptr<insight::explain::MissMemory> misses;
  // It outlives calls.
  serving::Tuning tuning;
  // It outlives calls, because they write to its writers.
  TraceSwitch trace;
  telemetry::AccessLog access_log{instruments.access_log()};
  SystemClock system_clock;
  DaemonTls tls;
  // They outlive calls, because a call reports its end to them.
  const std::shared_ptr<cache::store::Bans> bans =
      std::make_shared<cache::store::Bans>();
  const telemetry::PurgeMetrics purges{instruments.registry(), bans};
  DaemonStore store;
  std::unique_ptr<ThreadPool> assistants;
  limits::Budget inflight;
  // One worker for each core, for all listeners together. So a hundred
  // functions cost as many threads as one.
  std::vector<std::unique_ptr<transport::Worker>> workers;
  std::vector<Function> functions;
  std::unique_ptr<Purger> purger;
  // Null until all objects that keep settings are open.
  std::unique_ptr<LiveSettings> live;
  // Null if the settings cannot be read again.
  std::unique_ptr<Reloader> reloader;
  std::unique_ptr<telemetry::Admin> admin;
  std::unique_ptr<DaemonActions> admin_actions;
  std::unique_ptr<admin::Server> admin_service;  // null: no socket
  HeapKeeper heap;
  Alarms alarms;
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
  // The admin endpoint's pages read all other objects.
  impl_->admin = nullptr;
  impl_ = nullptr;
}

int Daemon::calls() const { return impl_->calls(); }

std::vector<telemetry::ShadowReport> Daemon::Shadow() const {
  std::vector<telemetry::ShadowReport> reports;
  for (const Impl::Function& function : impl_->functions) {
    if (function.handler == nullptr) continue;
    auto report = function.handler->Shadow();
    if (report.has_value()) reports.push_back(*std::move(report));
  }
  return reports;
}

std::vector<telemetry::TuneReport> Daemon::Tune() const {
  std::vector<telemetry::TuneReport> reports;
  for (const Impl::Function& function : impl_->functions) {
    reports.push_back(function.handler->Tune());
  }
  return reports;
}

std::string Daemon::admin_socket() const {
  return impl_->admin_service == nullptr ? "" : impl_->admin_service->path();
}

absl::Status Daemon::OpenTrace(
    const std::vector<telemetry::ListedSetting>& settings) {
  return impl_->trace.Change(TraceSettingsOf(options_), settings);
}

void Daemon::OpenReload(Extras* extras) {
  if (!extras->start.has_value()) return;
  extras->settings = telemetry::ListSettings(
      settings::ServeSettings(), extras->start->resolved, "function");
  impl_->reloader = std::make_unique<Reloader>(
      *std::move(extras->start),
      [this](const settings::DaemonOptions& options,
             const std::vector<bool>& functions,
             const std::vector<telemetry::ListedSetting>& list) {
        return impl_->live->Apply(options, functions, list);
      },
      &impl_->alarms);
  impl_->instruments.WatchReload(
      [reloader = impl_->reloader.get()] { return reloader->figures(); });
}

void Daemon::OpenLiveSettings(
    Clock* clock, const std::vector<telemetry::ListedSetting>& settings) {
  LiveSettings::Receivers receivers;
  for (const Impl::Function& function : impl_->functions) {
    receivers.functions.push_back({function.handler.get(),
                                   function.listener.get(),
                                   function.upstream.get()});
  }
  receivers.store = impl_->store.get();
  receivers.inflight = &impl_->inflight;
  receivers.trace = &impl_->trace;
  receivers.access_log = &impl_->access_log;
  receivers.clock = clock;
  impl_->live = std::make_unique<LiveSettings>(std::move(receivers), options_,
                                               settings, &impl_->alarms);
}

absl::StatusOr<ReloadResult> Daemon::Reload() {
  if (impl_->reloader == nullptr || !ready()) {
    return absl::FailedPreconditionError(
        draining_ ? "the daemon is draining"
                  : "the daemon cannot reload its settings");
  }
  return impl_->reloader->Reload();
}

void Daemon::RequestReload() {
  if (impl_->reloader != nullptr) impl_->reloader->RequestReload();
}

std::vector<telemetry::ListedSetting> Daemon::Settings() const {
  return impl_->reloader == nullptr ? impl_->settings
                                    : impl_->reloader->settings();
}

void Daemon::SetLogLevel(LogLevel level, absl::Duration during) {
  impl_->live->SetLogLevel(level, during);
}

absl::Status Daemon::StartTrace(const TraceOrder& order,
                                absl::Duration during) {
  return impl_->live->StartTrace(order, during).status();
}

EndedTrace Daemon::StopTrace(absl::Duration during) {
  return impl_->live->StopTrace(during);
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

absl::Status Daemon::OpenListeners(Clock* clock, absl::Duration connect_limit) {
  std::vector<transport::Worker*> workers;
  for (const auto& worker : impl_->workers) workers.push_back(worker.get());
  const int count = static_cast<int>(workers.size());
  impl_->instruments.WatchWorkers(count);
  impl_->instruments.WatchInflight([inflight = &impl_->inflight] {
    return telemetry::Instruments::InflightFigures{
        inflight->reading(), inflight->waiting(), inflight->running(),
        inflight->relayed(), inflight->bound(),   inflight->refused()};
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
    SetUpstreamEvents(instruments, clock, &upstream);
    function.upstream = std::make_unique<transport::Upstream>(
        std::move(upstream), impl_->tls.client(), count);
    const auto id = static_cast<cache::FunctionId>(i);
    function.handler = std::make_unique<serving::FunctionHandler>(
        id, options, impl_->store.get(), clock, function.upstream.get(),
        *instruments, impl_->trace.shared(), impl_->misses.get(),
        &impl_->access_log, &impl_->tuning);
    transport::ListenerOptions listen;
    listen.address = options.listen;
    listen.workers = workers;
    listen.tls = impl_->tls.server();
    listen.limits = ListenerLimitsOf(options_);
    listen.inflight = &impl_->inflight;
    listen.events = ListenerEvents(instruments);
    auto listener = transport::Listener::Create(std::move(listen));
    if (!listener.ok()) return listener.status();
    function.listener = *std::move(listener);
    WatchFunction(id, *function.listener, *function.upstream,
                  function.handler.get(), &impl_->instruments);
    addresses_.push_back(function.listener->address());
  }
  return absl::OkStatus();
}

void Daemon::OpenPurger(Clock* clock) {
  Purger::Deps deps;
  deps.store = impl_->store.get();
  for (const Impl::Function& function : impl_->functions) {
    deps.functions.push_back(function.handler.get());
  }
  deps.clock = clock;
  deps.misses = impl_->misses.get();
  deps.metrics = &impl_->purges;
  impl_->purger = std::make_unique<Purger>(std::move(deps));
  impl_->store.SetLearner(impl_->purger.get());
}

absl::StatusOr<PurgeResult> Daemon::Purge(const PurgeOrder& order) {
  return impl_->purger->Purge(order);
}

absl::StatusOr<cache::key::Key> Daemon::KeyOf(const LookUpOrder& order) const {
  return impl_->purger->KeyOf(order);
}

absl::StatusOr<std::vector<EntryReport>> Daemon::LookUp(
    const LookUpOrder& order) const {
  return impl_->purger->LookUp(order);
}

std::vector<telemetry::FunctionFacts> Daemon::Facts() const {
  std::vector<telemetry::FunctionFacts> all;
  // The page exists before the functions do.
  if (!started_.load(std::memory_order_acquire)) return all;
  for (const Impl::Function& function : impl_->functions) {
    all.push_back(FactsOf(*function.listener, *function.upstream,
                          *function.handler, *impl_->bans));
  }
  return all;
}

absl::Status Daemon::OpenAdmin(Clock* clock) {
  if (options_.admin.empty() || impl_->admin != nullptr) {
    return absl::OkStatus();
  }
  telemetry::AdminView view;
  view.ready = [this] { return ready() && Accepting(); };
  view.started = [this] { return ready(); };
  view.alive = [this] { return Alive(); };
  view.draining = [this] { return draining_.load(); };
  for (const settings::FunctionOptions& function : options_.functions) {
    view.upstreams.push_back(function.upstream);
  }
  view.settings = [this] { return Settings(); };
  if (impl_->reloader != nullptr) {
    view.reload = [reloader = impl_->reloader.get()] {
      return reloader->figures();
    };
  }
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

absl::Status Daemon::OpenAdminSocket(Clock* clock) {
  DaemonActions::Sources sources;
  sources.instruments = &impl_->instruments;
  sources.inflight = &impl_->inflight;
  sources.misses = impl_->misses.get();
  sources.clock = clock;
  for (const settings::FunctionOptions& function : options_.functions) {
    sources.upstreams.push_back(function.upstream);
  }
  sources.state = [this] {
    if (draining_.load()) return "draining";
    if (!ready()) return "starting";
    return Accepting() ? "ready" : "not_accepting";
  };
  sources.settings = [this] {
    return impl_->reloader == nullptr ? "" : impl_->reloader->yaml();
  };
  sources.purger = impl_->purger.get();
  sources.live = impl_->live.get();
  sources.reload = [this] { return Reload(); };
  sources.shadow = [this] { return Shadow(); };
  sources.tune = [this] { return Tune(); };
  impl_->admin_actions = std::make_unique<DaemonActions>(std::move(sources));
  admin::StartOptions options;
  options.path = options_.admin_socket;
  options.cache_dir = options_.cache_dir;
  options.max_lookup_bytes = options_.max_request_bytes;
  options.connection_refused = [instruments = &impl_->instruments] {
    instruments->AdminConnectionRefused();
  };
  options.environment =
      [](const std::string& name) -> absl::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return absl::nullopt;
    return value;
  };
  auto service = admin::StartService(options, impl_->admin_actions.get());
  if (!service.ok()) return service.status();
  impl_->admin_service = *std::move(service);
  return absl::OkStatus();
}

absl::Status Daemon::Open(Extras extras) {
  Clock* const clock =
      extras.clock != nullptr ? extras.clock : &impl_->system_clock;
  OpenReload(&extras);
  impl_->settings = extras.settings;
  absl::Status status =
      impl_->tls.Open(options_, extras.tls_interval, &impl_->instruments);
  // The admin endpoint is opened early, so that it answers probes during the
  // wait for the store's lock. If a predecessor still has the port, it is tried
  // again after that.
  if (status.ok()) OpenAdmin(clock).IgnoreError();
  if (status.ok()) {
    status = impl_->store.Open(options_, impl_->bans, extras.cancelled,
                               extras.disk_retry, clock, &impl_->instruments);
  }
  if (status.ok()) status = OpenTrace(extras.settings);
  if (status.ok()) status = OpenAccessLog();
  if (status.ok()) OpenExplain(clock);
  if (status.ok()) status = OpenListeners(clock, extras.connect_limit);
  if (status.ok()) OpenPurger(clock);
  if (status.ok()) status = OpenAdmin(clock);
  if (status.ok()) {
    OpenLiveSettings(clock, extras.settings);
    status = OpenAdminSocket(clock);
  }
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
  if (!admin_socket().empty()) {
    Log(LogLevel::kInfo,
        absl::StrCat("serving fncache admin on ", admin_socket()));
  }
  if (impl_->reloader != nullptr) {
    impl_->reloader->Poll(extras.config_interval);
  }
  return absl::OkStatus();
}

bool Daemon::Alive() const {
  // Workers start last; before that none can hang.
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
  impl_->tuning.silent = true;
  ready_ = false;
  // A daemon that stops does not change its settings any more.
  impl_->alarms.Stop();
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
  // gRPC ends no connection while bytes are being written to it.
  std::thread patience([this, deadline, &gone, &overdue] {
    if (gone.WaitForNotificationWithTimeout(deadline + kGone - absl::Now()) ||
        overdue == nullptr) {
      return;
    }
    impl_->store.get()->Flush();
    Log(LogLevel::kWarning, "stopping without peers that do not read",
        {{"calls", calls()}});
    overdue();
  });
  for (Impl::Function& function : impl_->functions) function.listener->Join();
  impl_->StopWorkers();
  gone.Notify();
  patience.join();
  impl_->store.get()->Flush();
  Log(LogLevel::kInfo, "stopped");
}

}  // namespace fncache::proxy
