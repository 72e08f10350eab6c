#include "runner/template_responder.h"

#include <utility>

namespace fncache::runner {

TemplateResponder::TemplateResponder(TemplateResponderOptions options)
    : options_(std::move(options)) {}

absl::Status TemplateResponder::Respond(const RunFunctionRequest& request,
                                        RunFunctionResponse* response) const {
  response->mutable_meta()->set_tag(request.meta().tag());
  if (options_.ttl.has_value()) {
    auto* ttl = response->mutable_meta()->mutable_ttl();
    absl::Duration rest = *options_.ttl;
    ttl->set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
    ttl->set_nanos(static_cast<int32_t>(
        absl::IDivDuration(rest, absl::Nanoseconds(1), &rest)));
  }
  if (request.has_desired()) *response->mutable_desired() = request.desired();
  if (request.has_context()) *response->mutable_context() = request.context();
  if (options_.fatal.has_value()) {
    auto* result = response->add_results();
    result->set_severity(apiextensions::fn::proto::v1::SEVERITY_FATAL);
    result->set_message(*options_.fatal);
  }
  return absl::OkStatus();
}

}  // namespace fncache::runner
