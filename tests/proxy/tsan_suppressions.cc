// What tsan must not report of these tests: hand-overs inside gRPC, which is
// not instrumented. The servers and clients that the tests put around the proxy
// use its callback API, whose threads are gRPC's own: every frame that they run
// has one of gRPC's libraries below it. The proxy's own threads have not (they
// are workers, see worker.h), so nothing of ours is hidden.
#include "common/mutex.h"

#ifdef FNCACHE_TSAN
extern "C" const char* __tsan_default_suppressions() {
  return "race:libgrpc++.so\n"
         "race:libgrpc.so\n";
}
#endif
