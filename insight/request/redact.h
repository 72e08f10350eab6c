// SPDX-License-Identifier: Apache-2.0
// Removes secrets from messages that are written whole.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_INSIGHT_REQUEST_REDACT_H_
#define FNCACHE_INSIGHT_REQUEST_REDACT_H_

namespace apiextensions::fn::proto::v1 {
class RunFunctionRequest;
class RunFunctionResponse;
}  // namespace apiextensions::fn::proto::v1

namespace fncache::insight::request {

// Redacts credentials, connection details, and data, stringData and binaryData
// of objects of apiVersion v1, kind Secret. Their keys become `redacted-N`,
// values the text `redacted`; their number stays. Secrets are found wherever
// objects are (observed, desired, required, extra) and in every other Struct
// (input, context, output), at any depth: a manifest in another object, an
// element of a list.
//
// An object that is or contains a Secret also loses its managed fields and the
// annotation `kubectl.kubernetes.io/last-applied-configuration`, which repeat
// it. A Secret that is a text within a text is not found.
void Redact(apiextensions::fn::proto::v1::RunFunctionRequest* request);
void Redact(apiextensions::fn::proto::v1::RunFunctionResponse* response);

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_REDACT_H_
