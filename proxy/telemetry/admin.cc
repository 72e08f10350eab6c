#include "proxy/telemetry/admin.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/version.h"
#include "proxy/telemetry/process_metrics.h"
#include "proxy/telemetry/status_page.h"

namespace fncache::proxy::telemetry {

using metrics::AdminServer;

namespace {

const char* State(const AdminView& view) {
  if (view.draining()) return "draining";
  return view.ready() ? "ready" : "starting";
}

AdminServer::Response Readiness(const AdminView& view) {
  AdminServer::Response response;
  const std::string state = State(view);
  response.code = state == "ready" ? 200 : 503;
  response.body = state + "\n";
  return response;
}

AdminServer::Response Status(const Instruments& instruments,
                             const AdminView& view, absl::Time started) {
  StatusPageInput input;
  input.version = Version();
  input.now = absl::Now();
  input.uptime = input.now - started;
  input.state = State(view);
  for (size_t id = 0; id < instruments.functions(); ++id) {
    const FunctionInstruments& function = instruments.function(id);
    input.functions.push_back({function.name(), function.Summarize()});
  }
  input.tiers = instruments.Tiers();
  input.settings = view.settings;
  AdminServer::Response response;
  response.content_type = "text/html; charset=utf-8";
  response.body = RenderStatusPage(input);
  return response;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> StartAdmin(
    const std::string& address, Instruments* instruments, AdminView view) {
  const absl::Time started = ReadProcess().started;
  AdminServer::Pages pages;
  pages["/healthz"] = [] {
    AdminServer::Response response;
    response.body = "ok\n";
    return response;
  };
  pages["/readyz"] = [view] { return Readiness(view); };
  pages["/metrics"] = [instruments] {
    AdminServer::Response response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = instruments->registry()->Expose();
    return response;
  };
  pages["/statusz"] = [instruments, view, started] {
    return Status(*instruments, view, started);
  };
  absl::StatusOr<std::unique_ptr<AdminServer>> server =
      AdminServer::Start(address, std::move(pages));
  if (server.ok()) {
    instruments->WatchReadiness(
        [view] { return view.ready() && !view.draining(); });
  }
  return server;
}

}  // namespace fncache::proxy::telemetry
