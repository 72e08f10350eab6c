// SPDX-License-Identifier: Apache-2.0
// Settings that all users of libcurl need alike.
//
// Thread-safe.
#ifndef FNCACHE_COMMON_CURL_H_
#define FNCACHE_COMMON_CURL_H_

#include <curl/curl.h>

namespace fncache {

// A new easy handle, which the caller cleans up. Null if libcurl cannot be
// used.
CURL* MakeCurl();

// For CURLOPT_SSL_CTX_FUNCTION: leaves the check of a server's certificate to
// libcurl. Our own checks are for runners and functions.
CURLcode LeaveTlsToCurl(CURL* easy, void* context, void* unused);

struct CurlListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_CURL_H_
