#include "runner/demo_command.h"

#include <cstdio>

namespace fncache {

int DemoMain(int argc, char** argv) {
  std::fprintf(stderr, "fncache demo: needs fncache serve\n");
  return 1;
}

}  // namespace fncache
