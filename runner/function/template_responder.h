// SPDX-License-Identifier: Apache-2.0
// TemplateResponder: renders resources from the request's input, by the schema
// that docs/function.md describes.
//
// Desired state and context of earlier steps pass through. A request without an
// input is answered with just that. Thread-safe.
#ifndef FNCACHE_RUNNER_FUNCTION_TEMPLATE_RESPONDER_H_
#define FNCACHE_RUNNER_FUNCTION_TEMPLATE_RESPONDER_H_

#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "runner/function/responder.h"

namespace fncache::runner::function {

struct TemplateResponderOptions {
  // The TTL of the answers. Zero, which forbids caching, is written out; with
  // none the field is left out.
  absl::optional<absl::Duration> ttl = absl::Seconds(60);
  // If present, every answer has this FATAL result, and nothing is rendered.
  absl::optional<std::string> fatal;
};

class TemplateResponder : public Responder {
 public:
  explicit TemplateResponder(TemplateResponderOptions options);

  absl::Status Respond(const RunFunctionRequest& request,
                       RunFunctionResponse* response) const override;

 private:
  void PassThrough(const RunFunctionRequest& request,
                   RunFunctionResponse* response) const;

  const TemplateResponderOptions options_;
};

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_TEMPLATE_RESPONDER_H_
