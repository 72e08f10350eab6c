// SPDX-License-Identifier: Apache-2.0
// Loaded before everything else into a process (LD_PRELOAD), it makes the host
// `late.example` known once the file that LATE_NAME names exists: as 127.0.0.1.
// Until then no resolver knows it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char* host, const char* service,
                const struct addrinfo* hints, struct addrinfo** found) {
  typedef int (*Resolve)(const char*, const char*, const struct addrinfo*,
                         struct addrinfo**);
  const Resolve resolve = (Resolve)dlsym(RTLD_NEXT, "getaddrinfo");
  if (host != NULL && strcmp(host, "late.example") == 0) {
    const char* const file = getenv("LATE_NAME");
    if (file == NULL || access(file, F_OK) != 0) return EAI_NONAME;
    host = "127.0.0.1";
  }
  return resolve(host, service, hints, found);
}
