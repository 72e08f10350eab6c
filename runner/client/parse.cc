// SPDX-License-Identifier: Apache-2.0
#include "runner/client/parse.h"

#include <climits>

#include "google/protobuf/io/coded_stream.h"

namespace fncache::runner::client {

bool ParseNested(google::protobuf::io::ZeroCopyInputStream* in,
                 google::protobuf::MessageLite* message) {
  google::protobuf::io::CodedInputStream coded(in);
  coded.SetRecursionLimit(kMaxNesting);
  coded.SetTotalBytesLimit(INT_MAX);
  return message->ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage();
}

}  // namespace fncache::runner::client
