// Traffic as a runner makes it: requests about composites with many observed
// buckets, encoded as Go does (map order random on every call), and a driver
// that sends them and keeps what came back.
#ifndef FNCACHE_RUNNER_DEMO_TRAFFIC_H_
#define FNCACHE_RUNNER_DEMO_TRAFFIC_H_

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "proto/function_v1.pb.h"

namespace fncache::runner {

// The request of composite number `composite`, which observes `buckets`
// buckets, without a tag. Its input is a template that renders them.
apiextensions::fn::proto::v1::RunFunctionRequest DemoRequest(int composite,
                                                             int buckets);

// A tag as the runner makes it: the hex SHA-256 of the request encoded
// deterministically. Other builds of the runner (`build`) make other tags.
std::string DemoTag(
    const apiextensions::fn::proto::v1::RunFunctionRequest& request, int build);

// `message` as bytes with the entries of every map in random order.
std::string EncodeShuffled(const google::protobuf::Message& message,
                           std::mt19937* random);

// One call, from request to answer.
struct DemoCall {
  int composite = 0;
  std::string tag;
  std::string bytes;  // the request; emptied once it is sent

  absl::Status status;
  absl::Duration latency;
  std::string cache_status;  // the response header, "" if absent
  apiextensions::fn::proto::v1::RunFunctionResponse response;
};

// Sends `calls` in order over one connection to `address`, at most `at_once` of
// them open and, as a runner does, one for each composite. Fills in what comes
// back. `progress` is told how many are done.
void Drive(const std::string& address, size_t at_once,
           const std::function<void(size_t)>& progress,
           std::vector<DemoCall>* calls);

}  // namespace fncache::runner

#endif  // FNCACHE_RUNNER_DEMO_TRAFFIC_H_
