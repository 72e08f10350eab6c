// SPDX-License-Identifier: Apache-2.0
// Makes the messages that answer RunFunction calls from a stored response, or
// from one that has just arrived. They share the bytes of the response.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_PROXY_SERVING_ANSWER_H_
#define FNCACHE_PROXY_SERVING_ANSWER_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/response.h"
#include "cache/store/entry.h"
#include "proxy/transport/message.h"

namespace fncache::proxy::serving {

// The entry's response with the caller's tag and this TTL (absent: none). The
// message refers to the entry's body, and keeps the entry alive until it is
// sent.
transport::Message EntryMessage(const cache::store::EntryRef& entry,
                                absl::string_view tag,
                                const absl::optional<absl::Duration>& ttl);

// The response that arrived, with another TTL. `view` is a view of `response`.
// The message shares the bytes of `response`.
transport::Message MessageWithTtl(const cache::ResponseView& view,
                                  const transport::Message& response,
                                  absl::Duration ttl);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_ANSWER_H_
