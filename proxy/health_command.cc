// SPDX-License-Identifier: Apache-2.0
#include "proxy/health_command.h"

#include <curl/curl.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/command_line.h"
#include "common/duration.h"
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

size_t TakeBody(char* bytes, size_t size, size_t count, void* body) {
  auto* const text = static_cast<std::string*>(body);
  if (text->size() + size * count <= kMaxBody)
    text->append(bytes, size * count);
  return size * count;
}

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};

struct Answer {
  long code = 0;  // NOLINT(google-runtime-int): curl's
  std::string body;
};

absl::StatusOr<Answer> Get(const std::string& url, absl::Duration timeout) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return absl::InternalError("curl cannot be used");
  }
  const std::unique_ptr<CURL, EasyDeleter> easy(curl_easy_init());
  if (easy == nullptr) return absl::InternalError("curl cannot be used");
  CURL* const curl = easy.get();
  Answer answer;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // none of the environment's
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(  // NOLINT(google-runtime-int): curl's
                       absl::ToInt64Milliseconds(timeout)));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer.body);
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK) {
    return absl::UnavailableError(
        absl::StrCat(url, ": ", curl_easy_strerror(code)));
  }
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.code);
  return answer;
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
  const CommandLine::Outcome outcome = line.Parse(argc, argv);
  if (outcome == CommandLine::Outcome::kHelp) {
    return PrintResult("fncache health", HealthHelp());
  }
  if (outcome == CommandLine::Outcome::kError) {
    return Fail(kBadUsage,
                absl::StrCat(line.error(), "; see fncache health --help"));
  }
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
  const absl::StatusOr<Answer> answer = Get(url, *timeout);
  if (!answer.ok()) return Fail(kUnwell, answer.status().message());
  const absl::string_view said = absl::StripSuffix(answer->body, "\n");
  if (answer->code != 200) {
    return Fail(kUnwell,
                absl::StrCat(url, ": ", said, " (", answer->code, ")"));
  }
  return PrintResult("fncache health", absl::StrCat(Printable(said), "\n"));
}

}  // namespace fncache::proxy
