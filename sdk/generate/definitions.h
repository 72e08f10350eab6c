// SPDX-License-Identifier: Apache-2.0
// The kinds that a document defines: a CRD (v1), an XRD (v1, v2) or an OpenAPI
// v3 document of an API server. Other documents define none.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_SDK_GENERATE_DEFINITIONS_H_
#define FNCACHE_SDK_GENERATE_DEFINITIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sdk/generate/documents.h"
#include "text/json.h"

namespace fncache::sdk {

// One kind in one served version. An XRD with claims defines two kinds.
struct Definition {
  std::string group;  // empty: the core group
  std::string version;
  std::string kind;
  std::shared_ptr<const YamlDocument> document;
  // Leads to the schema, or to the version that has none.
  DocumentPath path;
  const text::Json* schema = nullptr;  // into the document
  // In an OpenAPI document, the name of the kind's component.
  std::string component;
  // False: a header for it is made only if a wanted one refers to it.
  bool wanted = true;
  bool input = false;  // of a function: its header has the schema
};

// `Kind.group`
std::string QualifiedName(const Definition& definition);

// Appends the kinds of `document`. InvalidArgument `FILE:LINE: why` for a CRD
// or XRD without a group, kind or version name.
absl::Status FindDefinitions(
    const std::shared_ptr<const YamlDocument>& document,
    std::vector<Definition>* definitions);

// Whether any document of this form defines kinds, even if it has none.
bool DefinesKinds(const YamlDocument& document);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_GENERATE_DEFINITIONS_H_
