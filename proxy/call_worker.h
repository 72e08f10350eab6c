// What each worker keeps for the calls of one function: buffers and a source of
// randomness, used on that worker's thread only.
#ifndef FNCACHE_PROXY_CALL_WORKER_H_
#define FNCACHE_PROXY_CALL_WORKER_H_

#include <vector>

#include "absl/random/random.h"
#include "absl/strings/string_view.h"
#include "cache/digest.h"
#include "grpcpp/support/slice.h"
#include "proxy/call.h"
#include "proxy/joined_message.h"

namespace fncache::proxy {

struct RunFunctionHandler::PerWorker {
  cache::DigestScratch scratch;
  std::vector<grpc::Slice> slices;
  std::vector<absl::string_view> views;
  JoinedMessage response;
  absl::InsecureBitGen random;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_CALL_WORKER_H_
