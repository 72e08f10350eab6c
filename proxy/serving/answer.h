// SPDX-License-Identifier: Apache-2.0
// Makes the messages that answer RunFunction calls: of a stored response, whose
// bytes they share, or of one that has just arrived.
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

// The entry's response under the caller's tag, with this TTL (absent: none).
// The message refers to the entry's body and keeps the entry alive as long as
// it is being sent.
transport::Message EntryMessage(const cache::store::EntryRef& entry,
                                absl::string_view tag,
                                const absl::optional<absl::Duration>& ttl);

// The response that arrived, with another TTL. `view` is of `response`, whose
// bytes are shared.
transport::Message MessageWithTtl(const cache::ResponseView& view,
                                  const transport::Message& response,
                                  absl::Duration ttl);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_ANSWER_H_
