// SPDX-License-Identifier: Apache-2.0
// Takes secrets out of messages that are written down whole.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_INSIGHT_REQUEST_REDACT_H_
#define FNCACHE_INSIGHT_REQUEST_REDACT_H_

namespace apiextensions::fn::proto::v1 {
class RunFunctionRequest;
class RunFunctionResponse;
}  // namespace apiextensions::fn::proto::v1

namespace fncache::insight::request {

// Credentials, connection details, and data, stringData and binaryData of
// objects of apiVersion v1, kind Secret: their keys become `redacted-N`, values
// the text `redacted`. How many there were stays. Secrets are found wherever
// objects stand (observed, desired, required, extra) and in whatever else is a
// Struct (input, context, output), as deep as they are: a manifest in another
// object, an element of a list. Of an object that is or holds one the managed
// fields go, too, and the annotation
// `kubectl.kubernetes.io/last-applied-configuration`, which repeat it. A Secret
// that is a text within a text is not found.
void Redact(apiextensions::fn::proto::v1::RunFunctionRequest* request);
void Redact(apiextensions::fn::proto::v1::RunFunctionResponse* response);

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_REDACT_H_
