// SPDX-License-Identifier: Apache-2.0
#include "common/curl.h"

#include "common/tls_contexts.h"

namespace fncache {

CURL* MakeCurl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  return started == CURLE_OK ? curl_easy_init() : nullptr;
}

CURLcode LeaveTlsToCurl(CURL* /*easy*/, void* context, void* /*unused*/) {
  LeaveToItsLibrary(static_cast<SSL_CTX*>(context));
  return CURLE_OK;
}

}  // namespace fncache
