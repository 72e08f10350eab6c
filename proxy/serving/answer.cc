// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/answer.h"

#include <string>
#include <vector>

#include "grpcpp/support/slice.h"

namespace fncache::proxy::serving {
namespace {

// The memory in which a thread writes metas is kept unless it grew beyond this.
constexpr size_t kKeptMeta = 4096;

}  // namespace

grpc::ByteBuffer EntryMessage(const cache::store::EntryRef& entry,
                              absl::string_view tag,
                              const absl::optional<absl::Duration>& ttl) {
  thread_local std::string meta;
  cache::MakeMeta(tag, ttl, entry->meta_rest(), &meta);
  const absl::string_view body = entry->body();
  grpc::Slice slices[2] = {grpc::Slice(meta.data(), meta.size())};
  if (meta.capacity() > kKeptMeta) std::string().swap(meta);
  if (body.empty()) return grpc::ByteBuffer(slices, 1);
  cache::store::EntryRef held = entry;
  // gRPC only reads it: the interface is older than const.
  slices[1] = grpc::Slice(
      const_cast<char*>(body.data()), body.size(),
      [](void* held) {
        cache::store::EntryRef(static_cast<const cache::store::Entry*>(held));
      },
      const_cast<cache::store::Entry*>(held.Release()));
  return grpc::ByteBuffer(slices, 2);
}

grpc::ByteBuffer MessageWithTtl(const cache::ResponseView& view,
                                absl::Duration ttl) {
  const std::string meta = cache::MetaWithTtl(view, ttl);
  std::vector<grpc::Slice> slices;
  slices.reserve(view.body.size() + 1);
  slices.emplace_back(meta.data(), meta.size());
  for (const absl::string_view part : view.body) {
    slices.emplace_back(part.data(), part.size());
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace fncache::proxy::serving
