// SPDX-License-Identifier: Apache-2.0
// Loaded before everything else into a process (LD_PRELOAD), it lets that have
// at most FEW_THREADS threads besides its first one: every further one fails as
// it does at a limit of the system's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*),
                      void*);

typedef struct {
  void* (*run)(void*);
  void* argument;
} Start;

static atomic_int alive;

static void* Run(void* given) {
  const Start start = *(Start*)given;
  free(given);
  void* const result = start.run(start.argument);
  atomic_fetch_sub(&alive, 1);
  return result;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* how,
                   void* (*run)(void*), void* argument) {
  const Create create = (Create)dlsym(RTLD_NEXT, "pthread_create");
  const char* const most = getenv("FEW_THREADS");
  const int before = atomic_fetch_add(&alive, 1);
  Start* const start = malloc(sizeof *start);
  int failed = EAGAIN;
  if (start != NULL && before < (most == NULL ? 0 : atoi(most))) {
    start->run = run;
    start->argument = argument;
    failed = create(thread, how, Run, start);
  }
  if (failed != 0) {
    atomic_fetch_sub(&alive, 1);
    free(start);
  }
  return failed;
}
