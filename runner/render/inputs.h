// SPDX-License-Identifier: Apache-2.0
// RenderInputs: everything that `render` loads before anything is called, the
// composites and all that they share. The flags name the files, and the loader
// (loader.h) reads them. This class collects them, in the order of the
// reference command line, and reports errors in its words.
#ifndef FNCACHE_RUNNER_RENDER_INPUTS_H_
#define FNCACHE_RUNNER_RENDER_INPUTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/struct.pb.h"
#include "runner/client/function_client.h"
#include "runner/engine/composition.h"
#include "runner/engine/engine.h"
#include "runner/engine/schema_source.h"
#include "runner/render/flags.h"
#include "text/json.h"

namespace fncache::runner::render {

struct CompositeToRender {
  // With defaults filled in; null if it could not be loaded.
  std::shared_ptr<text::Json> object;
  std::string where;  // its file, with the document's number of several
  std::string file;
  engine::EngineInput::Objects observed;
  // A status that is not ok says why this one cannot be rendered, though others
  // of --all can.
  absl::Status status;
};

struct RenderInputs {
  std::vector<CompositeToRender> composites;  // in their order
  // The Composition has the context steps that the flags ask for.
  std::shared_ptr<const engine::Composition> composition;
  std::vector<client::FunctionTarget> functions;
  engine::EngineInput::Objects required;
  engine::EngineInput::Objects credentials;
  std::shared_ptr<engine::SchemaSource>
      schemas;  // null without --required-schemas
  std::shared_ptr<const google::protobuf::Struct> definition;
  google::protobuf::Struct context;
};

// The error's message is the text behind `crossplane: error: `.
absl::StatusOr<RenderInputs> LoadRenderInputs(const RenderFlags& flags);

// The input of the pipeline for one composite.
engine::EngineInput InputOf(const RenderInputs& inputs,
                            const CompositeToRender& composite);

// Whether of several composites `composite` is the one that `observed` belongs
// to: its controller reference names it, or without one its label
// crossplane.io/composite; what has neither belongs to all.
bool BelongsTo(const text::Json& observed, const text::Json& composite);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_INPUTS_H_
