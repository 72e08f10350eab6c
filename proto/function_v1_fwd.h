// SPDX-License-Identifier: Apache-2.0
// Declares those messages of the function protocol that headers only name. A
// source file that uses a message includes proto/function_v1.pb.h itself.
#ifndef FNCACHE_PROTO_FUNCTION_V1_FWD_H_
#define FNCACHE_PROTO_FUNCTION_V1_FWD_H_

namespace apiextensions::fn::proto::v1 {

// protoc gives every enum of proto3 this underlying type.
enum Capability : int;

class Condition;
class ResourceSelector;
class Resources;
class RunFunctionRequest;
class RunFunctionResponse;
class State;

}  // namespace apiextensions::fn::proto::v1

#endif  // FNCACHE_PROTO_FUNCTION_V1_FWD_H_
