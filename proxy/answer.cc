#include "proxy/answer.h"

#include <string>
#include <vector>

namespace fncache::proxy {

grpc::ByteBuffer EntryMessage(const cache::EntryRef& entry,
                              absl::string_view tag,
                              const absl::optional<absl::Duration>& ttl) {
  const std::string meta = cache::MakeMeta(tag, ttl, entry->meta_rest());
  const absl::string_view body = entry->body();
  grpc::Slice slices[2] = {grpc::Slice(meta.data(), meta.size())};
  if (body.empty()) return grpc::ByteBuffer(slices, 1);
  cache::EntryRef held = entry;
  // gRPC only reads it: the interface is older than const.
  slices[1] = grpc::Slice(
      const_cast<char*>(body.data()), body.size(),
      [](void* held) {
        cache::EntryRef(static_cast<const cache::Entry*>(held));
      },
      const_cast<cache::Entry*>(held.Release()));
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

}  // namespace fncache::proxy
