// SPDX-License-Identifier: Apache-2.0
#include "runner/load/load_line.h"

#include "common/help_text.h"

namespace fncache::runner::load {
namespace {

constexpr char kFooter[] = R"(
How pipelines start:
  By default the runner's reconciler is modelled: XRs are reconciled when their
  TTL, an event or a resync says so. With --rate or --stages (open loop) a
  pipeline starts when it is due, whatever came before, and its latency counts
  from then; with --concurrency (closed loop) when one before it has ended. Both
  send the requests of settled composites, in turn.

Who writes besides the runner (--churn KIND=PER_HOUR, for each composite):
  Crossplane is woken by every write, also by one that says nothing new. Each
  write here reconciles its composite once more:
    spec      somebody edits a field of the XR's spec
    status    somebody writes a field of the XR's status
    composed  a provider's heartbeat: one time in the status of a composed
              resource (--scenario can name other fields)
    noop      a controller writes what is there already: only resourceVersion
              and a managedFields time change
  --churn noop=60 --churn spec=1: a write of nothing a minute, an edit an hour.

Thresholds:
  METRIC[{step=S,function=F,outcome=O}]:AGG OP VALUE, such as
    pipeline:p(95)<2s   call{outcome=hit}:p(99)<5ms   errors:rate<0.01
    hits:rate>0.8       late:count==0                 runs:rate<50
  METRIC  pipeline service call (p(N) avg mean min max med count rate),
          errors hits late dropped runs ready (count rate)
  O       hit miss stale collapsed bypass none

Inputs, functions, TLS and --timeout: as `fncache render` takes them
(fncache render --help), among them --all, --function NAME=TARGET, --tls-dir,
--observed-resources, --required-resources, --function-credentials, --xrd.

Exit codes: 0; 1 the run could not be made (a missing file, a function that is
not reached), or every pipeline failed; 2 command line; 99 a threshold or the
baseline failed, or composites never settle and there is a threshold; 130
interrupted, after the report of what was measured.)";

}  // namespace

CommandLine MakeLine(Given* g) {
  CommandLine line(
      "Load-tests pipelines, or one function, and measures what a cache in "
      "front\nof it is worth.",
      "fncache load");
  line.Usage({"[flags] XR COMPOSITION [FUNCTIONS]",
              "[flags] --request FILE.binpb... TARGET",
              "report FILE... [--html FILE]"});
  line.NoHelpFlag();
  line.AllowExtras();
  line.Footer(kFooter);
  const auto text = [&](const char* name, std::string& value, const char* help,
                        const char* type) {
    const auto option = line.AddOption(name, &value, help).TypeName(type);
    if (!value.empty()) option.ShowDefault();
  };
  const auto list = [&](const char* name, Texts& value, const char* help,
                        const char* type) {
    line.AddOption(name, &value, help).TypeName(type).Repeats();
  };
  text("--composites", g->composites,
       "Copies of the XR, each with its own name, uid\nand cluster", "N");
  text("--start", g->start,
       "create: from nothing; steady: settled, phases\nspread over the TTL; "
       "cold: settled, all at once",
       "HOW");
  text("--workers", g->workers, "Reconciles at once", "N");
  text("--reconcile-timeout", g->reconcile_timeout, "For one reconcile",
       "DURATION");
  text("--realtime", g->realtime,
       "Composed resources' events reconcile their XR", "on|off");
  text("--poll-interval", g->poll_interval, "Time between two polls of an XR",
       "DURATION");
  text("--resync", g->resync, "Time between two polls of all; 0 = never",
       "DURATION");
  text("--breaker", g->breaker, "The circuit breaker of events", "on|off");
  text("--seed-requirements", g->seed_requirements,
       "The last requirements go with a first call", "on|off");
  text("--ready-after", g->ready_after,
       "After which a provider makes a resource ready", "DURATION");
  text("--ready-writes", g->ready_writes, "Number of its status writes", "N");
  list("--churn", g->churn,
       "Writes by others to each composite in an hour, of\nKIND spec, status, "
       "composed or noop (below); repeats",
       "KIND=N");
  text("--scenario", g->scenario,
       "These as YAML, and events over time\n(docs/load-testing.md); flags "
       "win",
       "FILE");
  text("-r,--rate", g->rate, "Open loop: pipelines a second", "N");
  text("--stages", g->stages,
       "Open loop: the rate goes to each in its time,\nsuch as 30s:10,2m:100",
       "STAGES");
  text("-c,--concurrency", g->concurrency, "Closed loop: pipelines at once",
       "N");
  text("--connections", g->connections, "For each function", "N");
  text("-z,--duration", g->duration, "To be measured", "DURATION");
  text("-n,--total", g->total, "Pipelines to be measured, instead of a time",
       "N");
  text("--warmup", g->warmup, "Before, and in no count", "DURATION");
  text("--seed", g->seed, "Decides what is random", "N");
  text("--max-in-flight", g->max_in_flight,
       "Open loop: beyond, starts are dropped", "N");
  list("--threshold", g->thresholds,
       "A condition that must hold (below); repeats", "EXPR");
  line.AddFlag("--abort-on-fail", &g->abort_on_fail,
               "End when a threshold that is a limit fails");
  list("--find-max", g->find_max,
       "Find the most --composites, or --rate, for which\nit holds; repeats",
       "EXPR");
  text("--json", g->json, "The results (docs/load-testing.md); - = stdout",
       "FILE");
  text("--html", g->html, "The results as a page", "FILE");
  text("--junit", g->junit, "The thresholds' results, as JUnit's XML", "FILE");
  text("--summary-markdown", g->summary_markdown,
       "A summary; $GITHUB_STEP_SUMMARY gets it, too", "FILE");
  text("--csv", g->csv, "A row for each second", "FILE");
  line.AddFlag("--percentiles", &g->percentiles,
               "The distribution as wrk2 writes it");
  text("--trace", g->trace, "Write a trace (docs/trace-format.md)", "DIR");
  text("--trace-level", g->trace_level, "keys, paths or full", "LEVEL");
  text("--progress", g->progress, "auto, plain or none", "HOW");
  text("--baseline", g->baseline, "Earlier results: worse is exit code 99",
       "FILE");
  text("--max-change", g->max_change, "By so much, and more than by chance",
       "SHARE");
  list("--admin-url", g->admin_urls,
       "A daemon's admin address: what it counted must\nagree; repeats",
       "HOST:PORT");
  list("--request", g->requests,
       "A RunFunctionRequest, as bytes, to be sent to\nTARGET repeatedly; "
       "repeats",
       "FILE");
  text("--tls-dir", g->tls_dir,
       "Folder of ca.crt, and of tls.crt and tls.key as\nthe runner has them; "
       "without, plaintext",
       "DIR");
  list("--metadata", g->metadata, "With --request: of every call; repeats",
       "K=V");
  line.AddFlag("-h,--help", &g->help, kHelpOfHelp);
  return line;
}

}  // namespace fncache::runner::load
