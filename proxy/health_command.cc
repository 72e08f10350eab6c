// SPDX-License-Identifier: Apache-2.0
#include "proxy/health_command.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "common/http_client.h"
#include "common/listen_address.h"
#include "common/settings.h"
#include "common/standard_streams.h"
#include "common/status.h"
#include "common/utf8.h"
#include "proxy/settings/address.h"
#include "proxy/settings/settings.h"

namespace fncache::proxy {
namespace {

constexpr int kUnwell = 1;
constexpr int kBadUsage = 2;
// Bytes of the largest answer that is read. The pages have one line each.
constexpr size_t kMaxBody = 4096;

constexpr char kFooter[] = R"(
The address is found as fncache serve finds it: --admin, $FNCACHE_ADMIN, the key
`admin` of --config or $FNCACHE_CONFIG, else 127.0.0.1:9901. A daemon that
listens on every address is asked on this machine's own.

Example, in a Dockerfile:
  HEALTHCHECK CMD ["fncache", "health"]

Exit codes: 0 if the daemon is well; 1 if it is not, or cannot be asked; 2 for
flags that do not fit.)";

struct Flags {
  std::string admin;
  std::string config;
  std::string timeout = "2s";
  bool ready = false;
};

CommandLine MakeLine(Flags* flags) {
  CommandLine line(
      "Asks a daemon whether it is well (/healthz), or ready for calls "
      "(/readyz).",
      "fncache health");
  line.AddOption("--admin", &flags->admin,
                 "The daemon's admin address, HOST:PORT or :PORT")
      .TypeName("ADDR");
  line.AddOption("--config", &flags->config,
                 "The daemon's settings, where the address may be")
      .TypeName("FILE");
  line.AddFlag("--ready", &flags->ready,
               "Ask whether it is ready, not only alive");
  line.AddOption("--timeout", &flags->timeout, "How long it may take to answer")
      .TypeName("DURATION")
      .ShowDefault();
  line.Footer(kFooter);
  return line;
}

int Fail(int code, absl::string_view message) {
  std::fprintf(stderr, "fncache health: %s\n", Printable(message).c_str());
  return code;
}

absl::optional<std::string> Variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return absl::nullopt;
  return std::string(value);
}

// The setting `admin` as the daemon reads it. NotFound: a file cannot be read.
absl::StatusOr<std::string> AdminSetting(const CommandLine& line,
                                         const Flags& flags) {
  if (line.Given("--admin")) return flags.admin;
  SettingsInput input;
  input.environment = Variable;
  input.file_name = flags.config.empty()
                        ? Variable("FNCACHE_CONFIG").value_or("")
                        : flags.config;
  if (!input.file_name.empty()) {
    absl::StatusOr<YamlNode> file = ReadYamlFile(input.file_name);
    if (!file.ok()) {
      return Prefixed(flags.config.empty() ? "FNCACHE_CONFIG" : "--config",
                      file.status());
    }
    input.file = *std::move(file);
  }
  const absl::StatusOr<ResolvedSettings> resolved =
      settings::ServeSettings().Resolve(input);
  if (!resolved.ok()) return resolved.status();
  return resolved->top.at("admin").text();
}

// The address at which a daemon with this `admin` setting can be called.
std::string AddressToAsk(const std::string& setting) {
  const std::string listening = WithHost(setting);
  const size_t colon = listening.rfind(':');
  const std::string host = listening.substr(0, colon);
  const std::string port = listening.substr(colon);
  if (host == "0.0.0.0") return absl::StrCat("127.0.0.1", port);
  if (host == "[::]") return absl::StrCat("[::1]", port);
  return listening;
}

}  // namespace

std::string HealthHelp() {
  Flags flags;
  return MakeLine(&flags).Help();
}

std::vector<CommandFlag> HealthCommandFlags() {
  Flags flags;
  return MakeLine(&flags).Flags();
}

int HealthMain(int argc, char** argv) {
  Flags flags;
  CommandLine line = MakeLine(&flags);
  if (const auto code = line.ParseForMain(argc, argv)) return *code;
  const auto timeout = ParseGoDuration(flags.timeout);
  if (!timeout.ok() || *timeout < absl::Milliseconds(1) ||
      *timeout > absl::Hours(1)) {
    return Fail(kBadUsage,
                absl::StrCat("--timeout: \"", flags.timeout,
                             "\" is not accepted; accepted: a duration from "
                             "1ms to 1h"));
  }
  const absl::StatusOr<std::string> admin = AdminSetting(line, flags);
  if (!admin.ok()) {
    return Fail(absl::IsInvalidArgument(admin.status()) ? kBadUsage : kUnwell,
                admin.status().message());
  }
  if (admin->empty()) {
    return Fail(kUnwell,
                "the daemon has no admin endpoint to ask: admin is "
                "empty");
  }
  const absl::Status address = settings::CheckAddress(*admin);
  if (!address.ok() || absl::EndsWith(*admin, ":0")) {
    return Fail(kBadUsage,
                absl::StrCat("admin: \"", *admin,
                             "\" is not accepted; accepted: HOST:PORT, "
                             "[IPV6]:PORT or :PORT, with the port that the "
                             "daemon has"));
  }
  const std::string url = absl::StrCat("http://", AddressToAsk(*admin),
                                       flags.ready ? "/readyz" : "/healthz");
  HttpClient::Options options;
  options.timeout = *timeout;
  options.most_bytes = kMaxBody;
  const absl::StatusOr<HttpAnswer> answer = HttpClient().Get(url, options);
  if (!answer.ok()) return Fail(kUnwell, answer.status().message());
  if (answer->too_large) {
    return Fail(kUnwell, absl::StrCat(url, ": the answer is larger than ",
                                      kMaxBody, " bytes"));
  }
  const absl::string_view said = absl::StripSuffix(answer->body, "\n");
  if (answer->status != 200) {
    return Fail(kUnwell,
                absl::StrCat(url, ": ", said, " (", answer->status, ")"));
  }
  return PrintResult("fncache health", absl::StrCat(Printable(said), "\n"));
}

}  // namespace fncache::proxy
