// SPDX-License-Identifier: Apache-2.0
// The memory of nghttp2's sessions, which is the recycler's.
#ifndef FNCACHE_HTTP2_SESSION_MEMORY_H_
#define FNCACHE_HTTP2_SESSION_MEMORY_H_

#include <nghttp2/nghttp2.h>

namespace fncache::http2 {

// As nghttp2 takes it; for ever. A session belongs to one thread.
nghttp2_mem* SessionMemory();

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_SESSION_MEMORY_H_
