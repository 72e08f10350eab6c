// The command line of `fncache render`: names and meanings of the reference
// runner's own command (Crossplane v2.4), and what is ours besides.
#ifndef FNCACHE_RUNNER_RENDER_FLAGS_H_
#define FNCACHE_RUNNER_RENDER_FLAGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runner/client/function_client.h"
#include "runner/engine/pipeline.h"

namespace fncache::runner::render {

struct RenderFlags {
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  std::string composite;  // "" with `all`
  std::string composition;
  std::string functions;  // "" = none

  std::string observed;
  std::vector<std::string> required;
  std::vector<std::string> extra;  // as `required`, loaded behind them
  std::string schemas;
  std::string credentials;
  std::string definition;
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
  bool watch = false;
  std::vector<std::string> all;
  int jobs = 16;

  // Set where --help was asked for; then nothing else is.
  std::string help;
};

// InvalidArgument, which is bad usage, names the flag, or the file that is not
// there; FailedPrecondition is what the reference command does not count as
// such.
absl::StatusOr<RenderFlags> ParseRenderFlags(int argc, char** argv);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_FLAGS_H_
