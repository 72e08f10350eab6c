// SPDX-License-Identifier: Apache-2.0
// Declares the messages of google/protobuf/struct.proto for headers that only
// name them. The generated header costs a file about a second to compile; a
// source file that uses a message includes google/protobuf/struct.pb.h itself.
#ifndef FNCACHE_PROTO_STRUCT_FWD_H_
#define FNCACHE_PROTO_STRUCT_FWD_H_

namespace google::protobuf {

class ListValue;
class Struct;
class Value;

}  // namespace google::protobuf

#endif  // FNCACHE_PROTO_STRUCT_FWD_H_
