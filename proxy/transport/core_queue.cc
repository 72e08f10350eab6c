// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/core_queue.h"

namespace fncache::proxy::transport {
namespace {

// A user of gRPC's library, which counts its users and ends with the last.
class Library {
 public:
  Library() { grpc_init(); }
  ~Library() { grpc_shutdown(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

}  // namespace

grpc::CompletionQueue MakeQueue(grpc_cq_polling_type polling) {
  // gRPC must be initialised until the queue counts as a user itself.
  const Library library;
  grpc_completion_queue_attributes attributes;
  attributes.version = GRPC_CQ_CURRENT_VERSION;
  attributes.cq_completion_type = GRPC_CQ_NEXT;
  attributes.cq_polling_type = polling;
  attributes.cq_shutdown_cb = nullptr;
  return grpc::CompletionQueue(grpc_completion_queue_create(
      grpc_completion_queue_factory_lookup(&attributes), &attributes, nullptr));
}

}  // namespace fncache::proxy::transport
