// fncache: dispatches to its commands. Each command owns its own flags.
#include <cstdio>
#include <cstring>
#include <string>

#include "absl/synchronization/mutex.h"
#include "common/grpc_log.h"
#include "common/utf8.h"
#include "common/version.h"
#include "openssl/crypto.h"
#include "proxy/serve_command.h"
#include "runner/demo/command.h"
#include "runner/function/command.h"
#include "runner/render/command.h"
#include "runner/render/internal_command.h"

namespace {

struct Command {
  const char* name;
  const char* purpose;
  int (*run)(int argc, char** argv);
};

constexpr Command kCommands[] = {
    {"serve", "answer a function's repeated calls from memory or disk",
     fncache::proxy::ServeMain},
    {"demo", "show the whole story on this machine, in under a minute",
     fncache::runner::demo::DemoMain},
    {"function", "a small composition function to put behind the proxy",
     fncache::runner::function::FunctionMain},
    {"render", "what Crossplane would apply for a composite resource",
     fncache::runner::render::RenderMain},
    {"internal", "the engine that crossplane render --crossplane-binary runs",
     fncache::runner::render::InternalMain},
};

void PrintHelp(std::FILE* out) {
  std::fprintf(
      out,
      "fncache: a caching proxy for Crossplane's composition functions\n\n"
      "Usage: fncache COMMAND [flags]\n\nCommands:\n");
  for (const Command& command : kCommands) {
    std::fprintf(out, "  %-9s %s\n", command.name, command.purpose);
  }
  std::fprintf(out,
               "\nfncache COMMAND --help explains a command; "
               "fncache --version prints the version.\n");
}

}  // namespace

int main(int argc, char** argv) {
  // Debian's abseil detects deadlocks by default: 210 ns a lock instead of 7.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // At exit OpenSSL would free what gRPC's threads, which nobody can wait for,
  // may still be connecting with.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  fncache::TakeGrpcLog();
  if (argc < 2) {
    PrintHelp(stderr);
    return 2;
  }
  const char* const name = argv[1];
  if (std::strcmp(name, "--help") == 0 || std::strcmp(name, "-h") == 0 ||
      std::strcmp(name, "help") == 0) {
    PrintHelp(stdout);
    return 0;
  }
  if (std::strcmp(name, "--version") == 0) {
    std::printf("fncache %s\n", fncache::Version());
    return 0;
  }
  for (const Command& command : kCommands) {
    if (std::strcmp(name, command.name) == 0) {
      return command.run(argc - 1, argv + 1);
    }
  }
  const std::string shown =
      fncache::Printable(std::string(name).substr(0, 100));
  std::fprintf(stderr,
               "fncache: unknown command \"%s\"; accepted: serve, demo, "
               "function, render, internal (see fncache --help)\n",
               shown.c_str());
  return 2;
}
