// The status page (/statusz): one plain HTML page for people, saying what the
// daemon is, how it does and what it was told. No script; nothing that is in it
// can break out of the text it stands in.
//
// Pure function of its input; thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_
#define FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proxy/telemetry/instruments.h"

namespace fncache::proxy::telemetry {

struct StatusPageInput {
  std::string version;
  absl::Time now;
  absl::Duration uptime;
  // "ready", "draining", "starting".
  std::string state;

  struct Function {
    std::string name;
    FunctionInstruments::Summary summary;
  };
  std::vector<Function> functions;
  std::vector<Instruments::TierSummary> tiers;
  // The effective settings as text, without secrets.
  std::string settings;
};

std::string RenderStatusPage(const StatusPageInput& input);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_
