// SPDX-License-Identifier: Apache-2.0
#include "common/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/curl.h"

namespace fncache {
namespace {

struct Transfer {
  const HttpClient::Options& options;
  HttpAnswer answer;
};

size_t TakeBody(char* bytes, size_t size, size_t count, void* transfer) {
  auto* const to = static_cast<Transfer*>(transfer);
  std::string& body = to->answer.body;
  const size_t taken =
      std::min(size * count, to->options.most_bytes - body.size());
  body.append(bytes, taken);
  to->answer.too_large = taken < size * count;
  return taken;  // less than there is ends the transfer
}

bool Stopped(const HttpClient::Options& options) {
  return options.stop != nullptr && options.stop->load();
}

int Progress(void* transfer, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return Stopped(static_cast<Transfer*>(transfer)->options) ? 1 : 0;
}

}  // namespace

void HttpClient::EasyDeleter::operator()(void* easy) const {
  curl_easy_cleanup(easy);
}

HttpClient::HttpClient() : easy_(MakeCurl()) {}

HttpClient::~HttpClient() = default;

absl::StatusOr<HttpAnswer> HttpClient::Get(const std::string& url,
                                           const Options& options) {
  const auto failed = [&url](absl::string_view why) {
    return absl::UnavailableError(absl::StrCat(url, ": ", why));
  };
  if (easy_ == nullptr) return failed("libcurl cannot be used");
  std::unique_ptr<curl_slist, CurlListDeleter> headers;
  for (const std::string& header : options.headers) {
    curl_slist* const more = curl_slist_append(headers.get(), header.c_str());
    if (more == nullptr) return failed("out of memory");
    if (headers == nullptr) headers.reset(more);
  }
  Transfer transfer{options, {}};
  char error[CURL_ERROR_SIZE] = "";
  CURL* const curl = easy_.get();
  curl_easy_reset(curl);  // connections stay
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // none of the environment's
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");  // all that curl knows
  curl_easy_setopt(
      curl, CURLOPT_TIMEOUT_MS,
      static_cast<long>(  // NOLINT(google-runtime-int): curl's
          std::max<int64_t>(1, absl::ToInt64Milliseconds(options.timeout))));
  curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, LeaveTlsToCurl);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!options.ca_file.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);  // it alone is trusted
  }
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, Progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (Stopped(options)) {
    return absl::CancelledError(absl::StrCat(url, ": cancelled"));
  }
  if (code != CURLE_OK && !transfer.answer.too_large) {
    const char* const why = error[0] != 0 ? error : curl_easy_strerror(code);
    if (code != CURLE_OPERATION_TIMEDOUT) return failed(why);
    return absl::DeadlineExceededError(absl::StrCat(url, ": ", why));
  }
  long status = 0;  // NOLINT(google-runtime-int): curl's
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  transfer.answer.status = static_cast<int>(status);
  const char* redirect = nullptr;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &redirect);
  if (redirect != nullptr) transfer.answer.redirect = redirect;
  return std::move(transfer.answer);
}

}  // namespace fncache
