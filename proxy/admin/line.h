// SPDX-License-Identifier: Apache-2.0
// The command line of `fncache admin`: its commands, their flags and help, and
// the values that were given. command.cc checks them.
#ifndef FNCACHE_PROXY_ADMIN_LINE_H_
#define FNCACHE_PROXY_ADMIN_LINE_H_

#include <cstdint>
#include <string>

#include "common/command_line.h"

namespace fncache::proxy::admin {

struct Flags {
  std::string socket;
  std::string cache_dir;
  std::string watch;
  bool json = false;
  std::string key;
  std::string request;
  std::string function;
  std::string generation;
  std::string method;
  bool all = false;
  bool soft = false;
  uint32_t last = 20;
  std::string dir;
  std::string level;
  std::string for_time;
};

// The commands.
struct Line {
  CommandLine top{
      "Looks into a running daemon and changes it, over its admin socket.",
      "fncache admin"};
  CommandLine* stats;
  CommandLine* lookup;
  CommandLine* purge;
  CommandLine* explain;
  CommandLine* config;
  CommandLine* reload;
  CommandLine* trace;
  CommandLine* trace_start;
  CommandLine* trace_stop;
  CommandLine* log;
  CommandLine* shadow;
  CommandLine* tune;
  CommandLine::Option watch;
  CommandLine::Option generation;
};

// `flags` gets the values, and outlives the line.
Line MakeLine(Flags* flags);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_LINE_H_
