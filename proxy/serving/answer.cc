// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/answer.h"

#include <string>

#include "http2/slice.h"

namespace fncache::proxy::serving {
namespace {

// Bytes. A thread keeps the memory in which it writes metas up to this size.
constexpr size_t kKeptMeta = 4096;

const cache::store::Entry* EntryOf(void* owner) {
  return static_cast<const cache::store::Entry*>(owner);
}

// Counts references to entries, for slices of their bodies.
constexpr http2::Slice::Keeper kEntryKeeper = {
    [](void* owner) {
      cache::store::EntryRef share(EntryOf(owner));
      cache::store::EntryRef(share).Release();
      share.Release();
    },
    [](void* owner) { cache::store::EntryRef(EntryOf(owner)); },
    [](void* owner) { return EntryOf(owner)->in_memory(); }};

}  // namespace

transport::Message EntryMessage(const cache::store::EntryRef& entry,
                                absl::string_view tag,
                                const absl::optional<absl::Duration>& ttl) {
  thread_local std::string meta;
  cache::MakeMeta(tag, ttl, entry->meta_rest(), &meta);
  transport::Message message(http2::Slice::Copy(meta));
  if (meta.capacity() > kKeptMeta) std::string().swap(meta);
  const absl::string_view body = entry->body();
  if (body.empty()) return message;
  cache::store::EntryRef held = entry;
  message.Append(http2::Slice(
      body, const_cast<cache::store::Entry*>(held.Release()), &kEntryKeeper));
  return message;
}

transport::Message MessageWithTtl(const cache::ResponseView& view,
                                  const transport::Message& response,
                                  absl::Duration ttl) {
  transport::Message message(http2::Slice::Copy(cache::MetaWithTtl(view, ttl)));
  const http2::Slice& all = response.pieces()[0];
  for (const absl::string_view part : view.body) {
    http2::Slice piece = all;
    piece.RemovePrefix(static_cast<size_t>(part.data() - all.data()));
    message.Append(piece.TakeFront(part.size()));
  }
  return message;
}

}  // namespace fncache::proxy::serving
