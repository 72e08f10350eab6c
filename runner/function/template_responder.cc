// SPDX-License-Identifier: Apache-2.0
#include "runner/function/template_responder.h"

#include <string>
#include <utility>

#include "proto/function_v1.pb.h"
#include "runner/function/template.h"

namespace fncache::runner::function {
namespace {

void AddFatal(absl::string_view message, RunFunctionResponse* response) {
  auto* result = response->add_results();
  result->set_severity(apiextensions::fn::proto::v1::SEVERITY_FATAL);
  result->set_message(std::string(message));
}

}  // namespace

TemplateResponder::TemplateResponder(TemplateResponderOptions options)
    : options_(std::move(options)) {}

// Fills in what the SDKs begin an answer with: tag, TTL, and what earlier steps
// want.
void TemplateResponder::PassThrough(const RunFunctionRequest& request,
                                    RunFunctionResponse* response) const {
  response->mutable_meta()->set_tag(request.meta().tag());
  if (options_.ttl.has_value()) SetTtl(*options_.ttl, response);
  if (request.has_desired()) *response->mutable_desired() = request.desired();
  if (request.has_context()) *response->mutable_context() = request.context();
}

absl::Status TemplateResponder::Respond(const RunFunctionRequest& request,
                                        RunFunctionResponse* response) const {
  PassThrough(request, response);
  if (options_.fatal.has_value()) {
    AddFatal(*options_.fatal, response);
    return absl::OkStatus();
  }
  if (!request.has_input()) return absl::OkStatus();
  const absl::Status rendered = RenderTemplate(request, response);
  if (!rendered.ok()) {
    // Nothing half-rendered may go out, because the runner deletes whatever a
    // response leaves out.
    response->Clear();
    PassThrough(request, response);
    AddFatal(rendered.message(), response);
  }
  return absl::OkStatus();
}

}  // namespace fncache::runner::function
