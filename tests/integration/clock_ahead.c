// SPDX-License-Identifier: Apache-2.0
// Loaded before everything else into a process (LD_PRELOAD), it moves the
// process's clock of the day by CLOCK_AHEAD milliseconds. The clocks that only
// count, and every time limit, stay as they are. (Debian's libfaketime makes a
// wait of abseil longer by the same amount: that is a futex with a deadline of
// this clock.)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

// The raw system call, which syscall() below hides.
static long Raw(long number, long a, long b, long c, long d, long e, long f) {
  typedef long (*Syscall)(long, ...);
  static Syscall real;
  if (real == NULL) real = (Syscall)dlsym(RTLD_NEXT, "syscall");
  return real(number, a, b, c, d, e, f);
}

static struct timespec Moved(struct timespec time, int direction) {
  static long ahead;
  static int known;
  if (!known) {
    const char* const text = getenv("CLOCK_AHEAD");
    ahead = text == NULL ? 0 : atol(text);
    known = 1;
  }
  const long long moved = time.tv_sec * 1000000000LL + time.tv_nsec +
                          direction * ahead * 1000000LL;
  time.tv_sec = moved / 1000000000LL;
  time.tv_nsec = moved % 1000000000LL;
  return time;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int failed = (int)Raw(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0);
  if (failed == 0 &&
      (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    *time = Moved(*time, 1);
  }
  return failed;
}

int gettimeofday(struct timeval* time, void* zone) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) *result = now.tv_sec;
  return now.tv_sec;
}

// Abseil's waits. The kernel compares a deadline with its own clock.
long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  struct timespec deadline;
  if (number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) && a[3] != 0) {
    deadline = Moved(*(const struct timespec*)a[3], -1);
    a[3] = (long)&deadline;
  }
  return Raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
