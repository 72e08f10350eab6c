// SPDX-License-Identifier: Apache-2.0
// Tells sanitizers what not to report of tests that run gRPC servers and
// clients of their own.
//
// tsan: hand-overs inside gRPC, which is not instrumented. Those servers and
// clients use its callback API, whose threads are gRPC's own: every frame that
// they run has one of gRPC's libraries below it. The proxy's own threads have
// not (they are workers, see proxy/transport/worker.h), so nothing of the proxy
// is hidden. And threads that gRPC starts, which have ended but which it has
// not joined yet as the process goes.
//
// LeakSanitizer: OpenSSL keeps a random number generator and a list of errors
// for each thread and frees them as the thread ends, and threads of gRPC's pool
// may still be there when the process goes. To tell them from other memory of
// OpenSSL, stacks must be unwound in full: fast_unwind_on_malloc=0 (see
// proxy/CMakeLists.txt). The resolver that gRPC uses loses a few bytes each
// time that it looks up `localhost`.
//
// And, as main.cc does: OpenSSL is not to clean up at exit, while such threads
// may still be connecting.
#include "common/mutex.h"
#include "openssl/crypto.h"

static const int kNoCleanUp =
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

#ifdef FNCACHE_TSAN
extern "C" const char* __tsan_default_suppressions() {
  return "race:libgrpc++.so\n"
         "race:libgrpc.so\n"
         "thread:libgpr.so\n";
}
#endif

#if defined(FNCACHE_ASAN)
extern "C" const char* __lsan_default_suppressions() {
  return "leak:EVP_RAND_CTX_new\n"
         "leak:ERR_clear_error\n"
         "leak:libcares.so\n";
}
#endif
