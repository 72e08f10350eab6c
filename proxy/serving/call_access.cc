// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/call_access.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "insight/request/outline.h"

namespace fncache::proxy::serving {
namespace {

using insight::request::CompositeName;

// Callers may give names of any length; the memory of long names is freed. Each
// text is cut after the bytes that are written, which end with a whole
// character.
void Bound(CompositeName* name) {
  constexpr size_t kMost = telemetry::AccessRecord::kMostText + 4;
  for (std::string* text : {&name->api_version, &name->kind,
                            &name->object_namespace, &name->name, &name->uid}) {
    if (text->size() > kMost) *text = text->substr(0, kMost);
    if (text->capacity() > 2 * kMost) text->shrink_to_fit();
  }
}

// The composite, in memory that the thread's next call overwrites.
const CompositeName& ReadName(absl::string_view request) {
  thread_local CompositeName name;
  insight::request::ReadComposite({request}, &name);
  Bound(&name);
  return name;
}

}  // namespace

void CallAccess::ReadRequest(absl::string_view request) {
  composite_ = std::make_unique<CompositeName>(ReadName(request));
}

void CallAccess::WriteLine(absl::string_view function,
                           const telemetry::CallRecord& call,
                           const insight::explain::Explanation& why,
                           const cache::key::Key& key,
                           absl::string_view request) {
  const CompositeName& composite =
      composite_ != nullptr ? *composite_ : ReadName(request);
  telemetry::AccessRecord record;
  record.ended = absl::Now();
  record.function = function;
  record.api_version = composite.api_version;
  record.kind = composite.kind;
  record.object_namespace = composite.object_namespace;
  record.name = composite.name;
  record.outcome = call.outcome;
  record.reason = why.reason;
  // Without a known path the detail is the section.
  const std::string section = why.detail.empty() && !why.section.empty()
                                  ? absl::StrCat("in ", why.section)
                                  : "";
  record.detail = section.empty() ? absl::string_view(why.detail) : section;
  record.key = key;
  record.latency = call.latency;
  record.upstream_latency = upstream_;
  record.code = call.code;
  log_->Write(record);
}

}  // namespace fncache::proxy::serving
