#include "runner/render/flags.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/duration.h"
#include "common/utf8.h"

namespace fncache::runner::render {
namespace {

using apiextensions::fn::proto::v1::Capability;
using Texts = std::vector<std::string>;

constexpr char kHelp[] =
    R"(Renders what Crossplane would apply for a composite resource (XR): runs the
Composition's pipeline against running functions, and prints the XR, its composed
resources and, where asked for, results and context. Requests, documents,
messages and exit codes are those of `crossplane render`; it needs no cluster and
no Docker.

Usage: fncache render [flags] XR COMPOSITION [FUNCTIONS]
       fncache render [flags] --all PATH COMPOSITION [FUNCTIONS]

  XR           YAML file of the composite resource
  COMPOSITION  YAML file of the Composition, of mode Pipeline
  FUNCTIONS    YAML file, or folder of such files, of the Functions and where
               they listen (below); not needed where --function names them all

What exists already (a PATH is a YAML file, or a folder of such files):
  -o, --observed-resources PATH   composed resources, as the cluster has them
  -e, --required-resources PATH   what functions may require; repeats, or A,B
      --extra-resources PATH      the same, by its older name
  -s, --required-schemas DIR      OpenAPI v3 documents, *.json, from
                                  kubectl get --raw /openapi/v3/GROUP-VERSION
      --openapi-url URL           schemas from an API server instead, such as
                                  http://127.0.0.1:8001 of kubectl proxy
      --openapi-token-file FILE   bearer token for it
      --openapi-ca FILE           PEM of the authority that signed it
      --function-credentials PATH Secrets for the steps' credentials
      --xrd FILE                  the XR's definition: fills in defaults, tells
                                  a legacy XR from a modern one
      --context-values KEY=YAML   context before the first step; repeats
      --context-files KEY=FILE    the same from files; values win

Functions:
      --function NAME=TARGET      where NAME listens, HOST:PORT or any gRPC
                                  target; adds to FUNCTIONS, or replaces; repeats
  -a, --function-annotations KEY=VALUE
                                  annotation for all Functions; repeats
      --tls-dir DIR               tls.crt, tls.key and ca.crt that the runner
                                  has; without, functions are called in plaintext
      --without-capability NAME   do not advertise it, as an older runner would:
                                  CAPABILITIES, REQUIRED_RESOURCES, CREDENTIALS,
                                  CONDITIONS or REQUIRED_SCHEMAS; repeats
      --timeout DURATION          for everything, or for each XR of --all (1m)
      --step-timeout DURATION     for all calls of one step together

Output:
  -r, --include-function-results  a document of kind Result for every event
  -x, --include-full-xr           the XR with all that its file has
  -c, --include-context           the context that the last step left
      --trace                     on stderr, for each call: how long it took,
                                  what a cache in front said, what it changed
      --watch                     render again whenever an input file changes

Many at once:
      --all PATH                  every document of a file, or of the *.yaml and
                                  *.yml of a folder, is an XR; repeats, or A,B.
                                  Documents come in the order of files; an
                                  observed resource goes to the XR that its
                                  controller reference names. Progress on stderr
      --jobs N                    so many at the same time (16)

Where functions listen, as FUNCTIONS has it:

  apiVersion: pkg.crossplane.io/v1
  kind: Function
  metadata:
    name: function-auto-ready
    annotations:
      render.crossplane.io/runtime: Development
      render.crossplane.io/runtime-development-target: localhost:9443

Try it, with a function that needs nothing else (fncache function --help has a
step for the Composition):

  fncache function --insecure --listen 127.0.0.1:9444 &
  fncache render xr.yaml composition.yaml \
    --function function-fncache=127.0.0.1:9444 --trace

See a cache at work: put it in front, and render through it twice. The mask is
for the time that an XR without conditions is stamped with on every run.

  fncache serve --insecure --listen 127.0.0.1:9443 --upstream 127.0.0.1:9444 \
    --mask @composite-conditions &
  fncache render xr.yaml composition.yaml \
    --function function-fncache=127.0.0.1:9443 --trace

More: render a whole folder of XRs; write a composition and see what it does.

  fncache render --all xrs/ composition.yaml functions.yaml -x > rendered.yaml
  fncache render xr.yaml composition.yaml functions.yaml -rxc --watch

Exit codes: 0; 1 where it cannot be rendered, with `crossplane: error: WHY` on
stderr; 80 for flags that do not fit and for an XR, Composition or XRD file that
is not there; 255 after --timeout; 130 after Ctrl-C. Of several XRs the highest.
)";

// What the reference command has and this one has no use for: which engine to
// run, and where packages are kept.
constexpr const char* kIgnored[] = {"--crossplane-version",
                                    "--crossplane-image", "--crossplane-binary",
                                    "--cache-dir", "--max-concurrency"};

absl::Status Refused(absl::string_view flag, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", why));
}

// `a,b` is two; `\,` is a comma.
Texts SplitEscaped(const std::string& text, char separator) {
  Texts parts;
  std::string part;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == separator) {
      part += text[++i];
    } else if (text[i] == separator) {
      parts.push_back(std::move(part));
      part.clear();
    } else {
      part += text[i];
    }
  }
  if (!part.empty()) parts.push_back(std::move(part));
  return parts;
}

Texts SplitAll(const Texts& texts, char separator) {
  Texts all;
  for (const std::string& text : texts) {
    for (std::string& part : SplitEscaped(text, separator)) {
      all.push_back(std::move(part));
    }
  }
  return all;
}

absl::Status ParsePairs(const char* flag, const Texts& texts, char separator,
                        RenderFlags::Pairs* pairs) {
  for (const std::string& text : SplitAll(texts, separator)) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return Refused(flag, absl::StrCat("expected \"<key>=<value>\" but got \"",
                                        Printable(text), "\""));
    }
    pairs->emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return absl::OkStatus();
}

absl::Status ParseTimeout(const char* flag, const Texts& texts,
                          absl::Duration* into) {
  if (texts.empty()) return absl::OkStatus();
  const auto duration = ParseGoDuration(texts.back());
  if (!duration.ok() || *duration <= absl::ZeroDuration()) {
    return Refused(
        flag, absl::StrCat("expected ", kDurationForm, ", above 0, but got \"",
                           Printable(texts.back()), "\""));
  }
  *into = *duration;
  return absl::OkStatus();
}

// Without prefix, in any case, with - for _: `required-resources`.
std::string CapabilityName(Capability capability) {
  constexpr absl::string_view kPrefix = "CAPABILITY_";
  return Capability_Name(capability).substr(kPrefix.size());
}

absl::Status DropCapabilities(const Texts& names,
                              std::vector<Capability>* capabilities) {
  const std::vector<Capability> all = *capabilities;
  for (const std::string& name : names) {
    std::string wanted = absl::StrReplaceAll(absl::AsciiStrToUpper(name),
                                             {{"-", "_"}, {"CAPABILITY_", ""}});
    const auto is_wanted = [&wanted](Capability capability) {
      return CapabilityName(capability) == wanted;
    };
    if (std::none_of(all.begin(), all.end(), is_wanted)) {
      return Refused(
          "--without-capability",
          absl::StrCat(
              "\"", Printable(name), "\" is not accepted; accepted: ",
              absl::StrJoin(all, ", ", [](std::string* out, Capability one) {
                *out += CapabilityName(one);
              })));
    }
    capabilities->erase(
        std::remove_if(capabilities->begin(), capabilities->end(), is_wanted),
        capabilities->end());
  }
  return absl::OkStatus();
}

absl::Status CheckFile(const char* what, const std::string& path,
                       bool or_directory = false) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) {
    std::string why = std::strerror(errno);
    why[0] = absl::ascii_tolower(why[0]);
    return Refused(what, absl::StrCat("stat ", Printable(path), ": ", why));
  }
  if (S_ISDIR(found.st_mode) && !or_directory) {
    return Refused(what, absl::StrCat("\"", Printable(path),
                                      "\" exists but is a directory"));
  }
  return absl::OkStatus();
}

// What CLI11 reads, before it is checked.
struct Raw {
  Texts files, observed, required, extra, schemas, credentials, definition;
  Texts annotations, context_values, context_files, timeout;
  Texts targets, tls_dir, without, step_timeout, openapi_url, openapi_token;
  Texts openapi_ca, all, jobs, project, ignored;
  bool help = false;
  bool verbose = false;
};

void Define(CLI::App* app, Raw* raw, RenderFlags* flags) {
  const auto value = [app](const std::string& names, Texts* into) {
    app->add_option(names, *into)
        ->type_size(1)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  app->set_help_flag();
  app->allow_extras();
  app->add_flag("-h,--help", raw->help);
  app->add_flag("--verbose", raw->verbose);
  app->add_option("FILES", raw->files)->expected(0, 1 << 20);
  value("-o,--observed-resources", &raw->observed);
  value("-e,--required-resources", &raw->required);
  value("--extra-resources", &raw->extra);
  value("-s,--required-schemas", &raw->schemas);
  value("--function-credentials", &raw->credentials);
  value("--xrd", &raw->definition);
  value("-a,--function-annotations", &raw->annotations);
  value("--context-values", &raw->context_values);
  value("--context-files", &raw->context_files);
  value("--timeout", &raw->timeout);
  value("--function", &raw->targets);
  value("--tls-dir", &raw->tls_dir);
  value("--without-capability", &raw->without);
  value("--step-timeout", &raw->step_timeout);
  value("--openapi-url", &raw->openapi_url);
  value("--openapi-token-file", &raw->openapi_token);
  value("--openapi-ca", &raw->openapi_ca);
  value("--all", &raw->all);
  value("--jobs", &raw->jobs);
  value("-f,--project-file", &raw->project);
  for (const char* name : kIgnored) value(name, &raw->ignored);
  app->add_flag("-r,--include-function-results", flags->include_results);
  app->add_flag("-x,--include-full-xr", flags->include_full_composite);
  app->add_flag("-c,--include-context", flags->include_context);
  app->add_flag("--trace", flags->trace);
  app->add_flag("--watch", flags->watch);
}

std::string Last(const Texts& texts) {
  return texts.empty() ? "" : texts.back();
}

absl::Status TakeFiles(const Raw& raw, RenderFlags* flags) {
  const Texts& files = raw.files;
  const size_t first = raw.all.empty() ? 1 : 0;
  if (files.size() < first + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected \"", first == 1 ? "<composite-resource> " : "",
        "<composition> [<functions>]\" (see fncache render --help)"));
  }
  if (files.size() > first + 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument ", Printable(files[first + 2]),
                     first == 0 ? "; --all repeats, or takes A,B"
                                : "; several XRs: --all PATH",
                     " (see fncache render --help)"));
  }
  if (first == 1) {
    flags->composite = files[0];
    if (const auto status = CheckFile("<composite-resource>", files[0]);
        !status.ok()) {
      return status;
    }
  }
  flags->composition = files[first];
  if (files.size() > first + 1) flags->functions = files[first + 1];
  if (const auto status = CheckFile("<composition>", flags->composition);
      !status.ok()) {
    return status;
  }
  flags->all = SplitAll(raw.all, ',');
  for (const std::string& path : flags->all) {
    const auto status = CheckFile("--all", path, /*or_directory=*/true);
    if (!status.ok()) return status;
  }
  flags->definition = Last(raw.definition);
  return flags->definition.empty() ? absl::OkStatus()
                                   : CheckFile("--xrd", flags->definition);
}

absl::Status TakeFunctions(const Raw& raw, RenderFlags* flags) {
  RenderFlags::Pairs targets;
  auto status = ParsePairs("--function", raw.targets, '\0', &targets);
  if (!status.ok()) return status;
  for (auto& [name, target] : targets) {
    if (name.empty() || target.empty()) {
      return Refused("--function",
                     "expected NAME=TARGET, such as "
                     "function-auto-ready=127.0.0.1:9443");
    }
    flags->targets.push_back({std::move(name), std::move(target)});
  }
  for (const std::string& text : SplitAll(raw.annotations, ',')) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot apply function annotation overrides: invalid "
                       "function annotation format \"",
                       Printable(text), "\", expected key=value"));
    }
    flags->annotations.emplace_back(text.substr(0, equals),
                                    text.substr(equals + 1));
  }
  if (!raw.project.empty()) {
    return Refused("--project-file",
                   "projects are not supported; give FUNCTIONS or --function");
  }
  flags->tls_dir = Last(raw.tls_dir);
  return DropCapabilities(raw.without, &flags->capabilities);
}

absl::Status TakeSchemas(const Raw& raw, RenderFlags* flags) {
  flags->schemas = Last(raw.schemas);
  flags->openapi_url = Last(raw.openapi_url);
  flags->openapi_token_file = Last(raw.openapi_token);
  flags->openapi_ca = Last(raw.openapi_ca);
  if (!flags->openapi_url.empty() && !flags->schemas.empty()) {
    return Refused("--openapi-url", "not together with --required-schemas");
  }
  if (flags->openapi_url.empty() &&
      !(flags->openapi_token_file.empty() && flags->openapi_ca.empty())) {
    return Refused("--openapi-token-file, --openapi-ca",
                   "need --openapi-url URL");
  }
  return absl::OkStatus();
}

absl::Status TakeRest(const Raw& raw, RenderFlags* flags) {
  flags->observed = Last(raw.observed);
  flags->required = SplitAll(raw.required, ',');
  flags->extra = SplitAll(raw.extra, ',');
  flags->credentials = Last(raw.credentials);
  if (!raw.jobs.empty() &&
      (!absl::SimpleAtoi(raw.jobs.back(), &flags->jobs) || flags->jobs < 1)) {
    return Refused("--jobs", absl::StrCat("expected a whole number from 1 on, "
                                          "but got \"",
                                          Printable(raw.jobs.back()), "\""));
  }
  auto status = ParsePairs("--context-values", raw.context_values, ';',
                           &flags->context_values);
  if (!status.ok()) return status;
  status = ParsePairs("--context-files", raw.context_files, ';',
                      &flags->context_files);
  if (!status.ok()) return status;
  status = ParseTimeout("--timeout", raw.timeout, &flags->timeout);
  if (!status.ok()) return status;
  return ParseTimeout("--step-timeout", raw.step_timeout, &flags->step_timeout);
}

}  // namespace

absl::StatusOr<RenderFlags> ParseRenderFlags(int argc, char** argv) {
  RenderFlags flags;
  Raw raw;
  CLI::App app;
  Define(&app, &raw, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(absl::string_view(error.what()).substr(0, 300)),
                     " (see fncache render --help)"));
  }
  if (raw.help) {
    flags.help = kHelp;
    return flags;
  }
  const Texts unknown = app.remaining();
  if (!unknown.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown flag ", Printable(unknown[0]),
                     " (see fncache render --help)"));
  }
  for (const auto take : {TakeFiles, TakeFunctions, TakeSchemas, TakeRest}) {
    const absl::Status status = take(raw, &flags);
    if (!status.ok()) return status;
  }
  return flags;
}

}  // namespace fncache::runner::render
