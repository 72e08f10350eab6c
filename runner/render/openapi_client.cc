// SPDX-License-Identifier: Apache-2.0
#include "runner/render/openapi_client.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/file.h"
#include "common/http_client.h"
#include "common/utf8.h"
#include "nlohmann/json.hpp"

namespace fncache::runner::render {
namespace {

constexpr size_t kMaxSmallFile = 1 << 20;
constexpr int kMaxRedirects = 3;
constexpr char kIndexPath[] = "/openapi/v3";

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
// A part of a URL; "" if it has none.
std::string UrlField(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string result = text;
  curl_free(text);
  return result;
}

// `scheme://host:port` of a URL; "" if it is none of http or https.
std::string OriginOf(const std::string& text) {
  const std::unique_ptr<CURLU, UrlDeleter> url(curl_url());
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    return "";
  }
  const std::string scheme = UrlField(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return "";
  return absl::StrCat(
      scheme, "://", absl::AsciiStrToLower(UrlField(url.get(), CURLUPART_HOST)),
      ":", UrlField(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

// Whether what is sent to the host of `url` stays on this machine.
bool IsLoopback(CURLU* url) {
  const std::string host = absl::AsciiStrToLower(UrlField(url, CURLUPART_HOST));
  if (host == "localhost") return true;
  in_addr ipv4;
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) {
    return ntohl(ipv4.s_addr) >> 24 == 127;
  }
  // libcurl leaves the brackets of an IPv6 address.
  absl::string_view address = host;
  in6_addr ipv6;
  return absl::ConsumePrefix(&address, "[") &&
         absl::ConsumeSuffix(&address, "]") &&
         inet_pton(AF_INET6, std::string(address).c_str(), &ipv6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&ipv6);
}

absl::Status CheckUrl(const std::string& text, bool with_token) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", Printable(text), "\" is not accepted: ", why,
                     "; accepted: http(s)://HOST:PORT, without /openapi/v3"));
  };
  const std::unique_ptr<CURLU, UrlDeleter> url(curl_url());
  const CURLUcode code =
      curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0);
  if (code != CURLUE_OK) return refuse(curl_url_strerror(code));
  if (OriginOf(text).empty()) return refuse("it is none of http or https");
  if (!UrlField(url.get(), CURLUPART_USER).empty() ||
      !UrlField(url.get(), CURLUPART_PASSWORD).empty()) {
    return refuse("it has a user name");
  }
  if (!UrlField(url.get(), CURLUPART_QUERY).empty() ||
      !UrlField(url.get(), CURLUPART_FRAGMENT).empty()) {
    return refuse("it has more than a path");
  }
  if (absl::EndsWith(absl::StripSuffix(text, "/"), kIndexPath)) {
    return refuse("it ends in /openapi/v3");
  }
  if (with_token && UrlField(url.get(), CURLUPART_SCHEME) == "http" &&
      !IsLoopback(url.get())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", Printable(text),
        "\" is not accepted with a token: over http:// anybody on the way "
        "could read it; use https://, or a tunnel that ends on this machine "
        "(kubectl proxy), or leave the token out"));
  }
  return absl::OkStatus();
}

// A bearer token as files of Kubernetes have it, perhaps with a line's end.
absl::StatusOr<std::string> ReadToken(const std::string& path) {
  auto text = ReadSmallFile(path, kMaxSmallFile);
  if (!text.ok()) return text.status();
  absl::StripAsciiWhitespace(&*text);
  if (text->empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": holds no token"));
  }
  for (const char c : *text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) {
      return absl::FailedPreconditionError(
          absl::StrCat(path,
                       ": is not a token: it has blanks or bytes that "
                       "are no ASCII text"));
    }
  }
  return text;
}

absl::Status UrlError(const std::string& url, absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(url, ": ", what));
}

absl::Status TooLate(const std::string& url) {
  return absl::DeadlineExceededError(
      absl::StrCat(url, ": no whole answer in time"));
}

}  // namespace

struct OpenApiClient::Impl {
  OpenApiServer server;
  std::string origin;
  HttpClient client;
  std::atomic<bool> stop{false};
  absl::Time deadline;  // of the Get that is under way
  // The URLs of documents, by path, once the server has returned them. "" marks
  // a document whose URL from the server is not usable.
  absl::optional<std::map<std::string, std::string>> index;

  // Sends one request and returns whatever comes back.
  absl::StatusOr<HttpAnswer> Ask(const std::string& url) {
    HttpClient::Options options;
    options.headers = {"Accept: application/json"};
    if (!server.token_file.empty()) {
      const auto token = ReadToken(server.token_file);
      if (!token.ok()) return token.status();
      options.headers.push_back(absl::StrCat("Authorization: Bearer ", *token));
    }
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return TooLate(url);
    // curl counts in milliseconds, rounded down; the deadline shall be over
    // where it ended the transfer.
    options.timeout = std::min(server.timeout, left + absl::Milliseconds(2));
    options.most_bytes = kMaxOpenApiBytes;
    options.ca_file = server.ca_file;
    options.stop = &stop;
    auto answer = client.Get(url, options);
    if (absl::IsDeadlineExceeded(answer.status())) {
      if (left <= server.timeout) return TooLate(url);
      return absl::DeadlineExceededError(
          absl::StrCat(url, ": no whole answer within ",
                       absl::FormatDuration(server.timeout)));
    }
    if (answer.ok() && answer->too_large) {
      return UrlError(url, absl::StrCat("the answer is larger than ",
                                        kMaxOpenApiBytes >> 20, " MiB"));
    }
    return answer;
  }

  // Reads the document at `url`; nullopt if the server says that there is none.
  absl::StatusOr<absl::optional<text::Json>> Fetch(std::string url) {
    for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
      const auto answer = Ask(url);
      if (!answer.ok()) return answer.status();
      if (!answer->redirect.empty()) {
        if (OriginOf(answer->redirect) != origin) {
          return UrlError(url, absl::StrCat("redirects to another server: ",
                                            Printable(answer->redirect)));
        }
        url = answer->redirect;
        continue;
      }
      if (answer->status == 404) return absl::optional<text::Json>();
      if (answer->status != 200) return StatusError(url, *answer);
      auto json = text::ParseJson(answer->body);
      if (!json.ok()) {
        return UrlError(url, absl::StrCat("the answer is not JSON: ",
                                          json.status().message()));
      }
      return absl::optional<text::Json>(*std::move(json));
    }
    return UrlError(url, "redirects too often");
  }

  // Quotes the first words of the answer, since API servers say there which
  // user lacks which permission.
  static absl::Status StatusError(const std::string& url,
                                  const HttpAnswer& answer) {
    constexpr size_t kShown = 200;
    std::string words = Printable(answer.body.substr(0, kShown));
    const auto json = text::ParseJson(answer.body);
    if (json.ok() && json->is_object()) {
      const auto message = json->find("message");
      if (message != json->end() && message->is_string()) {
        words = Printable(
            message->get_ptr<const std::string*>()->substr(0, kShown));
      }
    }
    return UrlError(url, absl::StrCat("status ", answer.status,
                                      words.empty() ? "" : ": ", words));
  }

  // A document's URL from the path that the server returned. Paths below
  // /openapi/v3 may need our prefix, which the server cannot know.
  std::string UrlOf(const std::string& relative) const {
    return absl::StrCat(
        absl::StartsWith(relative, kIndexPath) ? server.url : origin, relative);
  }

  absl::Status ReadIndex() {
    const std::string url = server.url + kIndexPath;
    const auto json = Fetch(url);
    if (!json.ok()) return json.status();
    if (!json->has_value()) {
      return UrlError(url, "status 404: this is no API server's OpenAPI v3");
    }
    const text::Json& list = **json;
    const auto paths = list.is_object() ? list.find("paths") : list.end();
    if (!list.is_object() || paths == list.end() || !paths->is_object()) {
      return UrlError(url,
                      "the answer is not a list of documents: it has no "
                      "paths");
    }
    std::map<std::string, std::string> found;
    for (auto path = paths->begin(); path != paths->end(); ++path) {
      const auto at =
          path->is_object() ? path->find("serverRelativeURL") : path->end();
      const auto* const relative = path->is_object() && at != path->end()
                                       ? at->get_ptr<const std::string*>()
                                       : nullptr;
      // "//host" would be another server.
      const bool usable = relative != nullptr &&
                          absl::StartsWith(*relative, "/") &&
                          !absl::StartsWith(*relative, "//");
      found[path.key()] = usable ? *relative : "";
    }
    index = std::move(found);
    return absl::OkStatus();
  }
};

OpenApiClient::OpenApiClient(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}

OpenApiClient::~OpenApiClient() = default;

absl::StatusOr<std::unique_ptr<OpenApiClient>> OpenApiClient::Create(
    OpenApiServer server) {
  server.url = std::string(absl::StripSuffix(server.url, "/"));
  if (const absl::Status status =
          CheckUrl(server.url, !server.token_file.empty());
      !status.ok()) {
    return status;
  }
  if (server.timeout <= absl::ZeroDuration() ||
      server.timeout > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeout: ", absl::FormatDuration(server.timeout),
                     " is not accepted; accepted: more than 0, up to 24h"));
  }
  if (!server.token_file.empty()) {
    const auto token = ReadToken(server.token_file);
    if (!token.ok()) {
      return absl::InvalidArgumentError(token.status().message());
    }
  }
  if (!server.ca_file.empty()) {
    const auto ca = ReadSmallFile(server.ca_file, kMaxSmallFile);
    if (!ca.ok()) return absl::InvalidArgumentError(ca.status().message());
    if (!absl::StrContains(*ca, "-----BEGIN CERTIFICATE-----")) {
      return absl::InvalidArgumentError(
          absl::StrCat(server.ca_file, ": holds no certificate"));
    }
  }
  auto impl = std::make_unique<Impl>();
  impl->origin = OriginOf(server.url);
  impl->server = std::move(server);
  return std::unique_ptr<OpenApiClient>(new OpenApiClient(std::move(impl)));
}

absl::StatusOr<absl::optional<text::Json>> OpenApiClient::Get(
    const std::string& path, absl::Time deadline) {
  impl_->deadline = deadline;
  if (!impl_->index.has_value()) {
    const absl::Status status = impl_->ReadIndex();
    if (!status.ok()) return status;
  }
  const auto relative = impl_->index->find(path);
  if (relative == impl_->index->end()) return absl::optional<text::Json>();
  if (relative->second.empty()) {
    return UrlError(impl_->server.url + kIndexPath,
                    absl::StrCat("paths.\"", Printable(path),
                                 "\".serverRelativeURL is no path of this "
                                 "server"));
  }
  return impl_->Fetch(impl_->UrlOf(relative->second));
}

void OpenApiClient::Stop() { impl_->stop = true; }

}  // namespace fncache::runner::render
