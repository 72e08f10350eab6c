// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/line.h"

#include "absl/strings/str_cat.h"

namespace fncache::proxy::admin {
namespace {

constexpr char kFooter[] = R"(
The socket: --socket PATH, else DIR/admin.sock with --cache-dir DIR, and no
other; without these $FNCACHE_ADMIN_SOCKET, else the first that there is of
$FNCACHE_CACHE_DIR/admin.sock, $XDG_RUNTIME_DIR/fncache/admin.sock,
/run/fncache/admin.sock and /tmp/fncache-UID/admin.sock (UID: your user's
number). Who may open it (mode 0600: the daemon's user, and root) may
administer; nobody is asked whether they are sure.

Examples:
  fncache admin stats --watch
  fncache admin explain --last 5
  fncache admin purge --function function-auto-ready
  fncache admin COMMAND --help

Exit codes: 0; 1 if it cannot be done, or a part was not reached; 2 for flags
that do not fit.)";

CommandLine* AddCommand(CommandLine* line, const std::string& name,
                        const std::string& purpose, const std::string& footer) {
  CommandLine* const command = line->AddCommand(name, purpose);
  command->Footer(absl::StrCat(
      footer,
      "\n\n--socket and --cache-dir say which daemon: see fncache admin "
      "--help"));
  return command;
}

void AddJson(CommandLine* command, Flags* flags) {
  command->AddFlag("--json", &flags->json, "Print JSON");
}

void AddFor(CommandLine* command, Flags* flags, const char* help) {
  command->AddOption("--for", &flags->for_time, help).TypeName("DURATION");
}

}  // namespace

Line MakeLine(Flags* flags) {
  Line made;
  CommandLine* const top = &made.top;
  top->AddOption("--socket", &flags->socket, "The daemon's admin socket")
      .TypeName("PATH");
  top->AddOption("--cache-dir", &flags->cache_dir,
                 "The daemon's cache directory: its admin.sock is the socket")
      .TypeName("DIR");
  top->Footer(kFooter);

  made.stats = AddCommand(top, "stats",
                          "Activity of the daemon, now and since its start", R"(
On a terminal --watch is a live table (q ends it); elsewhere it prints one after
the other. Rates are of the time since the look before; in the first since the
start. With --json each look is an object on a line.

Example:
  fncache admin stats --json | jq '.functions[].since_start.hit_rate')");
  made.watch = made.stats
                   ->AddOption("--watch", &flags->watch,
                               "Time between two reports; alone: 1s")
                   .Expected(0, 1)
                   .TypeName("DURATION");
  AddJson(made.stats, flags);

  made.lookup = AddCommand(
      top, "lookup", "The entries of a key: tier, age, lifetimes, bans", R"(
A key is the 32 hex digits that logs, traces and fncache admin explain --json
show. A request is a RunFunctionRequest as it is on the wire.

Example:
  fncache admin lookup --key 5d41402abc4b2a76b9719d911017c592)");
  made.lookup->AddOption("--key", &flags->key, "The entries of this key")
      .TypeName("KEY");
  made.lookup
      ->AddOption("--request", &flags->request,
                  "Those that this request would find")
      .TypeName("FILE");
  made.lookup
      ->AddOption("--function", &flags->function,
                  "The function that it is for; needed with --request where "
                  "there are several")
      .TypeName("NAME");

  made.lookup
      ->AddOption("--method", &flags->method,
                  "The protocol's version that the request is of: v1 or "
                  "v1beta1; default: v1")
      .TypeName("VERSION");

  made.purge =
      AddCommand(top, "purge", "Make entries unreachable, in every tier", R"(
It is done when this returns: a purged entry is never served again, also after
kill -9. Calls under way are answered, but kept by nobody. --generation "" is
that of a function without one.

Examples:
  fncache admin purge --function function-auto-ready
  fncache admin purge --function function-auto-ready --generation REVISION
  fncache admin purge --key 5d41402abc4b2a76b9719d911017c592
  fncache admin purge --all)");
  made.purge->AddOption("--key", &flags->key, "The entry of this key")
      .TypeName("KEY");
  made.purge
      ->AddOption("--function", &flags->function,
                  "All of this function; with --key, only its")
      .TypeName("NAME");
  made.generation = made.purge
                        ->AddOption("--generation", &flags->generation,
                                    "Only this generation of the function")
                        .TypeName("TEXT");
  made.purge->AddFlag("--all", &flags->all, "Everything, of all functions");
  made.purge->AddFlag(
      "--soft", &flags->soft,
      "Make entries stale instead; refused where stale serving is off");

  made.explain = AddCommand(top, "explain",
                            "Why calls missed, and which masks would help", R"(
What fncache explain tells of a trace, this tells of the daemon's memory
(explain.memory): reasons since the start, and the last misses one by one.

Example:
  fncache admin explain --function function-auto-ready --last 5)");
  made.explain
      ->AddOption("--function", &flags->function, "Only of this function")
      .TypeName("NAME");
  made.explain
      ->AddOption("--last", &flags->last,
                  "Number of last misses to show; 0: none")
      .Check([](const std::string& text) {
        return WhyNoWholeNumber(text, UINT32_MAX);
      })
      .TypeName("N")
      .ShowDefault();
  AddJson(made.explain, flags);

  made.config =
      AddCommand(top, "config", "The settings in force, and their sources", R"(
It is YAML that fncache serve --config reads back.

Example:
  fncache admin config | grep -v default)");

  made.reload = AddCommand(top, "reload", "Reload the settings", R"(
Prints what changed, and what needs a restart to change. If the settings do not
fit, nothing changes, the reason is said, and the exit code is 1.

Example:
  fncache admin reload)");

  made.trace = AddCommand(top, "trace", "Trace calls, for fncache explain",
                          R"(
Example:
  fncache admin trace start --dir /var/tmp/trace --level paths --for 10m)");
  made.trace->AtMostOneCommand();
  made.trace_start = AddCommand(made.trace, "start", "Trace calls from now on",
                                R"(
Without --for it holds until trace stop, or a reload with another trace.*.

Example:
  fncache admin trace start --dir /var/tmp/trace --level paths --for 10m)");
  made.trace_start
      ->AddOption("--dir", &flags->dir,
                  "Where to: an absolute path on the daemon's machine; "
                  "default: trace.dir")
      .TypeName("DIR");
  made.trace_start
      ->AddOption("--level", &flags->level,
                  "keys, paths or full; default: trace.level")
      .TypeName("LEVEL");
  AddFor(made.trace_start, flags, "Only for this time");
  made.trace_stop = AddCommand(made.trace, "stop", "Trace no more",
                               R"(
Where the settings have a trace, it stays off until a reload with another
trace.*, or until what trace start --for begins is over.

Example:
  fncache admin trace stop)");

  made.log = AddCommand(top, "log", "Log from this level up", R"(
Without --for it holds until the next order, or a reload with another log.level.

Example:
  fncache admin log debug --for 10m)");
  made.log->AddOption("LEVEL", &flags->level, "debug, info, warn or error");
  made.log->Usage({"LEVEL [flags]"});
  AddFor(made.log, flags, "Only for this time; then as the settings say");

  made.shadow =
      AddCommand(top, "shadow", "The verdict of mode: shadow about masks", R"(
Example:
  fncache admin shadow)");
  AddJson(made.shadow, flags);

  made.tune = AddCommand(
      top, "tune", "The hits across drift, and the steps that read drift", R"(
With tune: on an entry also answers a request that differs only in drift:
resourceVersion, managedFields, and times in the status of resources. Before it
does, the function is asked made-up requests with other drift (questions). So on
is your promise: the function has no effect outside its answers, and no memory
of what it was asked.

Hits across drift are the gain, questions the cost: saved and spent are time of
the function. A key is repeating until four questions got its answer; then it is
proven. A step (an input and a kind of composites) that is listed reads drift,
or varies:
  times     its answers follow times: requests with other times are misses
  versions  they follow resourceVersion or managedFields, too: all other drift
            is a miss
  drift     it is not known yet which of the two
  varies    equal requests got other answers; it is asked later
Revoked hits were answered before that was found. They repeated an answer of the
same composite that may have been late.

The last table has the fields that changed without changing answers, each with
the mask that would hide it. The function was not asked about these: a mask is
your promise, too.

Examples:
  fncache admin tune --function function-auto-ready
  fncache admin tune --json | jq '.functions[].steps')");
  made.tune->AddOption("--function", &flags->function, "Only of this function")
      .TypeName("NAME");
  AddJson(made.tune, flags);
  return made;
}

}  // namespace fncache::proxy::admin
