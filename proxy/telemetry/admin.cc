// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/admin.h"

#include <map>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/version.h"
#include "proxy/telemetry/process_metrics.h"
#include "proxy/telemetry/status.h"
#include "proxy/telemetry/status_json.h"
#include "proxy/telemetry/status_page.h"

namespace fncache::proxy::telemetry {

using metrics::AdminServer;

namespace {

constexpr char kHtml[] = "text/html; charset=utf-8";

// The headers of pages for people.
std::vector<std::pair<std::string, std::string>> PageHeaders() {
  return {{"Content-Security-Policy", std::string(PagePolicy())},
          {"Referrer-Policy", "no-referrer"}};
}

const char* State(const AdminView& view) {
  if (view.draining()) return "draining";
  if (view.ready()) return "ready";
  return view.started && view.started() ? "not_accepting" : "starting";
}

}  // namespace

Admin::Admin(Instruments* instruments, Clock* clock, AdminView view)
    : instruments_(instruments),
      view_(std::move(view)),
      started_(clock->Now()),
      history_(instruments, clock) {}

Admin::~Admin() {
  server_ = nullptr;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    stopped_.SignalAll();
  }
  if (feeder_.joinable()) feeder_.join();
}

AdminServer::Response Admin::Readiness() const {
  AdminServer::Response response;
  const std::string state = State(view_);
  response.code = state == "ready" ? 200 : 503;
  response.body = state + "\n";
  return response;
}

AdminServer::Response Admin::StatusPage(absl::string_view query) const {
  AdminServer::Response response;
  const bool json = query == "format=json";
  if (!json && !query.empty() && query != "format=html") {
    response.code = 400;
    response.body = "accepted: ?format=html and ?format=json\n";
    return response;
  }
  Status status;
  status.version = Version();
  status.state = State(view_);
  status.process = ReadProcess();
  status.reading = history_.Read();
  status.uptime = status.reading.now - started_;
  std::map<std::string, insight::explain::MissMemory::FunctionTop> tops;
  if (view_.misses) {
    for (auto& top : view_.misses()) {
      std::string name = top.function;
      tops.emplace(std::move(name), std::move(top));
    }
  }
  std::vector<FunctionFacts> facts;
  if (view_.facts) facts = view_.facts();
  for (size_t id = 0; id < instruments_->functions(); ++id) {
    const FunctionInstruments& function = instruments_->function(id);
    auto& top = tops[function.name()];
    status.functions.push_back(
        {function.name(),
         id < view_.upstreams.size() ? view_.upstreams[id] : "",
         function.reachability(), function.ReadGauges(), std::move(top.paths),
         std::move(top.writers), function.last_error(),
         id < facts.size() ? absl::make_optional(std::move(facts[id]))
                           : absl::nullopt,
         std::move(top.unread)});
  }
  status.shared = instruments_->ReadShared();
  status.certificates = instruments_->ReadCertificates();
  if (view_.settings) status.settings = view_.settings();
  if (view_.reload) status.reload = view_.reload();
  response.content_type = json ? "application/json" : kHtml;
  response.body = json ? RenderStatusJson(status) : RenderLivePage(status);
  if (!json) response.more_headers = PageHeaders();
  return response;
}

AdminServer::Pages Admin::Pages() {
  AdminServer::Pages pages;
  pages["/"] = [](absl::string_view) {
    AdminServer::Response response;
    response.content_type = kHtml;
    response.body = RenderIndexPage(Version());
    response.more_headers = PageHeaders();
    return response;
  };
  pages["/healthz"] = [this](absl::string_view) {
    AdminServer::Response response;
    const bool alive = view_.alive == nullptr || view_.alive();
    response.code = alive ? 200 : 503;
    response.body = alive ? "ok\n" : "a worker hangs\n";
    return response;
  };
  pages["/readyz"] = [this](absl::string_view) { return Readiness(); };
  pages["/metrics"] = [this](absl::string_view) {
    AdminServer::Response response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = instruments_->registry()->Expose();
    return response;
  };
  pages["/statusz"] = [this](absl::string_view query) {
    return StatusPage(query);
  };
  return pages;
}

void Admin::FeedHistory(absl::Duration tick) {
  MutexLock lock(&mutex_);
  while (!stop_) {
    if (stopped_.WaitWithTimeout(&mutex_, tick)) history_.Tick();
  }
}

absl::StatusOr<std::unique_ptr<Admin>> Admin::Start(const std::string& address,
                                                    Instruments* instruments,
                                                    Clock* clock,
                                                    AdminView view,
                                                    absl::Duration tick) {
  auto admin = absl::WrapUnique(new Admin(instruments, clock, std::move(view)));
  absl::StatusOr<std::unique_ptr<AdminServer>> server =
      AdminServer::Start(address, admin->Pages());
  if (!server.ok()) return server.status();
  admin->server_ = *std::move(server);
  instruments->WatchReadiness(
      [view = admin->view_] { return view.ready() && !view.draining(); });
  admin->feeder_ =
      std::thread([&feeding = *admin, tick] { feeding.FeedHistory(tick); });
  return admin;
}

}  // namespace fncache::proxy::telemetry
