// SPDX-License-Identifier: Apache-2.0
// The command line of `fncache render`: names and meanings of the reference
// runner's own command (Crossplane v2.4), and what is ours besides. One table
// in render_flags.cc defines every flag: its names, its argument, its default,
// its help and where it is stored.
#ifndef FNCACHE_RUNNER_RENDER_FLAGS_H_
#define FNCACHE_RUNNER_RENDER_FLAGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/command_flags.h"
#include "runner/client/function_client.h"
#include "runner/engine/pipeline.h"

namespace fncache::runner::render {

// Files are paths, in which standard input is kStandardInput of input_file.h.
struct RenderFlags {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  enum class Color { kAuto, kAlways, kNever };

  std::string composite;  // "" with `all`
  std::string composition;
  std::string functions;  // "" = none

  std::string observed;
  std::vector<std::string> required;
  std::vector<std::string> extra;  // as `required`, loaded behind them
  std::string schemas;
  std::string credentials;
  std::string definition;
  std::string project;  // read by the reference only
  Pairs annotations;
  Pairs context_values;
  Pairs context_files;
  bool include_results = false;
  bool include_full_composite = false;
  bool include_context = false;
  absl::Duration timeout = absl::Minutes(1);

  std::vector<client::FunctionTarget> targets;
  std::string tls_dir;
  std::vector<apiextensions::fn::proto::v1::Capability> capabilities =
      engine::AllCapabilities();
  absl::Duration step_timeout = absl::InfiniteDuration();
  std::string openapi_url;
  std::string openapi_token_file;
  std::string openapi_ca;
  bool trace = false;
  Color color = Color::kAuto;  // of the trace
  bool watch = false;
  std::vector<std::string> all;
  int jobs = 16;
  std::string expect;  // a folder; "" = what is rendered is printed
  bool update = false;

  // --help was asked for; nothing else is set then.
  bool help = false;
};

// InvalidArgument, which is bad usage, names the flag. NotFound names a file
// that is not there, which the reference command counts as bad usage, and other
// commands do not. FailedPrecondition is what the reference command does not
// count as such.
absl::StatusOr<RenderFlags> ParseRenderFlags(int argc, char** argv);

// The text that --help prints.
std::string RenderHelp();

// Every file and folder that is read because `flags` name it, those of
// --openapi-url aside.
std::vector<std::string> InputPaths(const RenderFlags& flags);

// The flags that the help explains.
std::vector<CommandFlag> RenderCommandFlags();

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_FLAGS_H_
