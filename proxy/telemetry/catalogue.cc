// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/catalogue.h"

#include <cstdlib>

#include "common/log.h"

namespace fncache::proxy::telemetry {

using metrics::Family;
using metrics::Type;

const std::vector<Family>& Catalogue() {
  static const auto* const catalogue = new std::vector<Family>{
      // The names of the runner's built-in cache, which dashboards chart.
      {"function_run_function_response_cache_hits_total",
       Type::kCounter,
       {"function_name"},
       "RunFunction calls answered from the cache: hits, stale hits and "
       "collapsed answers."},
      {"function_run_function_response_cache_misses_total",
       Type::kCounter,
       {"function_name"},
       "Look-ups that went upstream, those answered UNIMPLEMENTED aside."},
      {"function_run_function_response_cache_errors_total",
       Type::kCounter,
       {"function_name"},
       "Failures of the cache, none of which failed a call."},
      {"function_run_function_response_cache_writes_total",
       Type::kCounter,
       {"function_name"},
       "Fills that were accepted."},
      {"function_run_function_response_cache_deletes_total",
       Type::kCounter,
       {"function_name"},
       "Entries expired or evicted from the last tier."},
      {"function_run_function_response_cache_bytes_written_total",
       Type::kCounter,
       {"function_name"},
       "Bytes of fills that were accepted."},
      {"function_run_function_response_cache_bytes_deleted_total",
       Type::kCounter,
       {"function_name"},
       "Bytes of entries expired or evicted from the last tier."},
      {"function_run_function_response_cache_read_seconds",
       Type::kHistogram,
       {"function_name"},
       "Time that the look-up of a hit took."},
      {"function_run_function_response_cache_write_seconds",
       Type::kHistogram,
       {"function_name"},
       "Time that a tier's write of an entry took."},

      // Calls.
      {"fncache_requests_total",
       Type::kCounter,
       {"function_name", "method", "outcome"},
       "Calls answered, by method (v1, v1beta1, other) and outcome (hit, "
       "stale_hit, miss, stale, collapsed, bypass, request)."},
      {"fncache_misses_total",
       Type::kCounter,
       {"function_name", "reason"},
       "Calls with the outcomes miss and stale, by why: new, expired, evicted, "
       "purged, generation, not-stored, unknown, changed, drift."},
      {"fncache_examined_runs_total",
       Type::kCounter,
       {"function_name"},
       "Runs for a miss whose answer was compared with the answer of before. "
       "Only with tune: off, and as far as explaining misses reads their "
       "requests."},
      {"fncache_repeats_total",
       Type::kCounter,
       {"function_name", "over"},
       "Examined runs that got the answer of before, by what they were over: "
       "drift (tune: on would save up to that many), time (the TTL was over: "
       "ttl.min), other (other paths, or an answer that was gone)."},
      {"fncache_bypasses_total",
       Type::kCounter,
       {"function_name", "reason"},
       "Calls with the outcome bypass, by why: authorization, metadata, "
       "mode-off, operation, unreadable, shadow, method."},
      {"fncache_request_seconds",
       Type::kHistogram,
       {"function_name", "outcome"},
       "Time from a RunFunction call's arrival to its answer, by outcome."},
      {"fncache_responses_total",
       Type::kCounter,
       {"function_name", "code"},
       "Calls answered, by the gRPC status code that the caller got."},
      {"fncache_requests_in_flight",
       Type::kGauge,
       {"function_name", "method"},
       "Calls that have arrived and are not answered yet."},
      {"fncache_streams_forwarded_total",
       Type::kCounter,
       {"function_name"},
       "Calls of other methods than RunFunction, forwarded as streams, that "
       "have ended."},
      {"fncache_function_seconds_saved_total",
       Type::kCounter,
       {"function_name"},
       "Function time saved: the filling call's latency, per hit and per "
       "collapsed answer."},

      // With `tune: on`.
      {"fncache_tune_hits_total",
       Type::kCounter,
       {"function_name"},
       "Hits across drift: the entry's request differs from the call's in "
       "drift."},
      {"fncache_tune_saved_seconds_total",
       Type::kCounter,
       {"function_name"},
       "Function time that these hits saved: the filling call's latency, per "
       "hit."},
      {"fncache_tune_revoked_hits_total",
       Type::kCounter,
       {"function_name"},
       "Those of these hits whose step was found later to read drift in which "
       "they differed."},
      {"fncache_tune_questions_total",
       Type::kCounter,
       {"function_name", "answer"},
       "Questions to the function about drift, by answer: same (the entry's), "
       "differs, none (an error or a time-out)."},
      {"fncache_tune_question_seconds_total",
       Type::kCounter,
       {"function_name"},
       "Time that the function took for questions."},
      {"fncache_tune_proofs_total",
       Type::kCounter,
       {"function_name", "result"},
       "Proofs that have ended, by result: proven, read (the step reads "
       "drift), varies (equal requests got other answers), failed (no answer, "
       "or stopped)."},
      {"fncache_tune_keys",
       Type::kGauge,
       {"function_name", "state"},
       "Keys whose answer was the same for three drifts or more, by state: "
       "repeating (not proven), proven."},
      {"fncache_tune_steps",
       Type::kGauge,
       {"function_name", "state"},
       "Steps about which fewer questions are asked, or none, by state: reads "
       "(drift), varies."},

      // With `vary: on`.
      {"fncache_vary_hits_total",
       Type::kCounter,
       {"function_name"},
       "Hits by hint: the call agrees with the entry's request on what the "
       "response depends on."},
      {"fncache_vary_hints_refused_total",
       Type::kCounter,
       {"function_name"},
       "Responses whose hint cannot be used; they are stored as without one."},
      {"fncache_vary_hints",
       Type::kGauge,
       {"function_name"},
       "Hints that are known, at most four for each input."},

      // Under `mode: shadow`.
      {"fncache_shadow_lookups_total",
       Type::kCounter,
       {"function_name"},
       "Calls under mode shadow that were looked up; the function answered all "
       "of them."},
      {"fncache_shadow_hits_total",
       Type::kCounter,
       {"function_name", "by"},
       "Calls under mode shadow that would have been hits, compared with the "
       "function's answer: by mask (the entry's request differs only in what "
       "the key leaves out), exact (it is the same request) or unknown (the "
       "entry's request is forgotten)."},
      {"fncache_shadow_differences_total",
       Type::kCounter,
       {"function_name", "by"},
       "Those of them where the function gave another answer than the cache "
       "would have."},
      {"fncache_shadow_uncompared_total",
       Type::kCounter,
       {"function_name"},
       "Calls under mode shadow that would have been hits, but the function "
       "gave no answer that could be compared."},

      // Upstream.
      {"fncache_upstream_requests_total",
       Type::kCounter,
       {"function_name", "code"},
       "Calls made to the function that have ended, by gRPC status code."},
      {"fncache_upstream_failures_total",
       Type::kCounter,
       {"function_name"},
       "Calls made to the function that ended with any status but OK, "
       "CANCELLED "
       "and UNIMPLEMENTED."},
      {"fncache_upstream_request_seconds",
       Type::kHistogram,
       {"function_name"},
       "Time that calls to the function took."},
      {"fncache_function_reachable",
       Type::kGauge,
       {"function_name"},
       "0 while no connection to the function can be made, else 1; also 1 "
       "before the first call."},

      // Flights.
      {"fncache_flights",
       Type::kGauge,
       {"function_name"},
       "Flights that are open: upstream calls that others may join."},
      {"fncache_flights_opened_total",
       Type::kCounter,
       {"function_name"},
       "Flights opened."},
      {"fncache_collapsed_callers_total",
       Type::kCounter,
       {"function_name"},
       "Callers that joined another call's flight."},
      {"fncache_collapsed_callers_waiting",
       Type::kGauge,
       {"function_name"},
       "Callers that wait for another call's flight."},
      {"fncache_released_callers_total",
       Type::kCounter,
       {"function_name"},
       "Joined callers released to call upstream themselves, because the "
       "flight's outcome may not be shared."},
      {"fncache_released_callers_waiting",
       Type::kGauge,
       {"function_name"},
       "Released callers that wait because max_released others call upstream."},
      {"fncache_released_callers_running",
       Type::kGauge,
       {"function_name"},
       "Released callers whose own upstream call runs."},

      // Stale serving and abandoned calls.
      {"fncache_refreshes_total",
       Type::kCounter,
       {"function_name"},
       "Calls of the function that were begun behind a stale hit."},
      {"fncache_refreshes_failed_total",
       Type::kCounter,
       {"function_name"},
       "Refreshes that brought no answer to store."},
      {"fncache_refreshes_refused_total",
       Type::kCounter,
       {"function_name"},
       "Refreshes not begun, because 16 calls without a caller ran already, or "
       "inflight.bytes was used up."},
      {"fncache_refreshes_running",
       Type::kGauge,
       {"function_name"},
       "Refreshes that run."},
      {"fncache_stale_if_error_total",
       Type::kCounter,
       {"function_name", "code"},
       "Errors instead of which a caller got an old answer, by gRPC status "
       "code; DEADLINE_EXCEEDED also where nine tenths of its time were over."},
      {"fncache_superseded_entries_total",
       Type::kCounter,
       {"function_name"},
       "Old answers dropped before their time, because the function's new "
       "answer may not be stored."},
      {"fncache_abandoned_calls_total",
       Type::kCounter,
       {"function_name"},
       "Calls of the function that continued when their last caller had left."},
      {"fncache_abandoned_calls_finished_total",
       Type::kCounter,
       {"function_name"},
       "Such calls whose answer was stored, although no caller waited for it."},
      {"fncache_abandoned_calls_refused_total",
       Type::kCounter,
       {"function_name"},
       "Calls cancelled instead, because 16 calls without a caller ran "
       "already, or inflight.bytes was used up."},
      {"fncache_abandoned_calls_running",
       Type::kGauge,
       {"function_name"},
       "Calls of the function that run without a caller, refreshes aside."},
      {"fncache_keys_backing_off",
       Type::kGauge,
       {"function_name"},
       "Keys that are not refreshed, and whose calls are not finished once "
       "abandoned, for 1 to 30 s, because that failed."},

      // Tiers.
      {"fncache_tier_entries",
       Type::kGauge,
       {"tier"},
       "Entries in the tier (disk: an estimate)."},
      {"fncache_tier_bytes",
       Type::kGauge,
       {"tier"},
       "Bytes that the tier uses, its overhead included."},
      {"fncache_tier_capacity_bytes",
       Type::kGauge,
       {"tier"},
       "Bytes that the tier may use."},
      {"fncache_tier_up",
       Type::kGauge,
       {"tier"},
       "1 while the tier takes look-ups and fills, else 0. The disk tier takes "
       "none while it cannot be opened (no space, a read-only file system)."},
      {"fncache_tier_writes_total",
       Type::kCounter,
       {"function_name", "tier"},
       "Entries written to the tier."},
      {"fncache_evictions_total",
       Type::kCounter,
       {"function_name", "tier", "reason"},
       "Entries that left the tier, by reason: expired, evicted (to free "
       "capacity), replaced (by a newer fill), dropped (corrupt, or from "
       "another time), purged."},
      {"fncache_purges_total",
       Type::kCounter,
       {"scope"},
       "Purges, by scope: all, function, generation, key."},
      {"fncache_bans",
       Type::kGauge,
       {"scope"},
       "Bans in force, by scope: all, function, generation, key."},
      {"fncache_bans_saved",
       Type::kGauge,
       {},
       "0 while a purge cannot be saved, so a restart would forget it, or "
       "other "
       "replicas do not know it; else 1."},
      {"fncache_tier_errors_total",
       Type::kCounter,
       {"tier", "kind"},
       "Failures of the tier by kind: read, write, corrupt, other."},
      {"fncache_fills_dropped_total",
       Type::kCounter,
       {"reason"},
       "Fills that did not reach a tier, by reason: queue_full, too_large, "
       "error, shutdown."},
      {"fncache_function_fills_dropped_total",
       Type::kCounter,
       {"function_name"},
       "Fills of the function that did not reach a tier, for any reason."},
      {"fncache_queue_depth",
       Type::kGauge,
       {"queue"},
       "Length of a queue: disk_fills, disk_lookups, shared_fills, "
       "shared_lookups."},

      // The shared tier.
      {"fncache_shared_nodes",
       Type::kGauge,
       {"state"},
       "Nodes of the server, by state: up, connecting, down."},
      {"fncache_shared_redirections_total",
       Type::kCounter,
       {},
       "Replies of a Cluster that name another node (MOVED, ASK)."},
      {"fncache_shared_clock_difference_seconds",
       Type::kGauge,
       {},
       "Difference of this machine's clock to the server's, corrected by half "
       "the round trip; positive if this one is ahead."},
      {"fncache_shared_bans_age_seconds",
       Type::kGauge,
       {},
       "Time since the record of bans was read, or found unchanged; +Inf "
       "before "
       "the first time."},
      {"fncache_shared_lookups_total",
       Type::kCounter,
       {"result"},
       "Look-ups in the shared tier, by result: hit, miss, timeout (no reply "
       "in time), down (not sent, or it failed), rejected (the value does not "
       "open), purged."},
      {"fncache_shared_lookup_seconds",
       Type::kHistogram,
       {},
       "Time of the look-ups that were sent, the wait for a thread included."},
      {"fncache_shared_writes_total",
       Type::kCounter,
       {"result"},
       "Fills of the shared tier, by result: stored, older (the entry there "
       "started later), refused (the server's error), dropped (not sent, or "
       "without a reply)."},

      // The trace.
      {"fncache_trace_records_total",
       Type::kCounter,
       {"result"},
       "Calls, by the outcome of their trace: written, dropped_queue, "
       "dropped_disk, sampled_out."},
      {"fncache_trace_read_share",
       Type::kGauge,
       {},
       "Fraction of composites whose requests are read for a trace above level "
       "keys; below 1, reading all would take more CPU than is allowed."},
      {"fncache_trace_up",
       Type::kGauge,
       {},
       "1 while the trace can be written, 0 since a write failed."},

      // The access log.
      {"fncache_access_log_lines_total",
       Type::kCounter,
       {},
       "Lines of the access log that were written."},
      {"fncache_access_log_dropped_total",
       Type::kCounter,
       {},
       "Lines of the access log that were not written: its queue was full, or "
       "its output accepted no more."},

      // Explaining misses.
      {"fncache_explain_memory_bytes",
       Type::kGauge,
       {},
       "Memory in which requests are remembered, to say why others missed."},
      {"fncache_explain_composites_share",
       Type::kGauge,
       {"of"},
       "Fraction of composites whose misses can be explained: paths, down to "
       "the path; reasons, at least the reason."},
      {"fncache_explain_cpu_seconds_total",
       Type::kCounter,
       {},
       "CPU time that explaining misses took."},

      // Connections, and the use of limits by peers.
      {"fncache_connections",
       Type::kGauge,
       {"function_name"},
       "Callers' connections."},
      {"fncache_connections_ended_total",
       Type::kCounter,
       {"function_name", "reason"},
       "Callers' connections that ended, by reason (done, peer_left, error, "
       "handshake, not_http2, timeout, protocol, too_much, idle, closed)."},
      {"fncache_connections_refused_total",
       Type::kCounter,
       {"function_name"},
       "Connections that were closed at once, beyond max_connections."},
      {"fncache_admin_connections_refused_total",
       Type::kCounter,
       {},
       "Connections to the admin socket that were closed at once, beyond 64."},
      {"fncache_accept_failures_total",
       Type::kCounter,
       {"function_name"},
       "Times at which no connection could be accepted, because files or "
       "memory ran out."},
      {"fncache_streams_refused_total",
       Type::kCounter,
       {"function_name"},
       "Calls that were refused, beyond max_streams."},
      {"fncache_requests_refused_total",
       Type::kCounter,
       {"function_name", "reason"},
       "Calls that were refused before the request was complete, or whose "
       "answer was too large or was not read, and relayed calls that were "
       "ended for the same, by reason (metadata, size, room, stalled, loop)."},
      {"fncache_connections_held_up_total",
       Type::kCounter,
       {"function_name"},
       "Times at which a caller's connection was paused, because 4 MiB of its "
       "compressed requests waited to be decompressed."},
      {"fncache_requests_abandoned_total",
       Type::kCounter,
       {"function_name"},
       "Calls that were reset before their request was complete."},
      {"fncache_upstream_connected",
       Type::kGauge,
       {"function_name"},
       "Connections to the function that calls can be sent on."},
      {"fncache_inflight_bytes",
       Type::kGauge,
       {"state"},
       "Bytes of calls that have not ended, by state (reading, waiting, "
       "running, relayed)."},
      {"fncache_inflight_limit_bytes",
       Type::kGauge,
       {},
       "Limit of the bytes of these calls (inflight.bytes)."},
      {"fncache_inflight_refused_total",
       Type::kCounter,
       {},
       "Calls refused because other calls had used up inflight.bytes: misses "
       "while none ended, requests, metadata of answers and relayed calls."},
      {"fncache_workers", Type::kGauge, {}, "Threads that serve calls."},

      // Certificates, by side: listener, upstream.
      {"fncache_certificate_expiry_timestamp_seconds",
       Type::kGauge,
       {"side"},
       "When the certificate in use ends, as Unix time."},
      {"fncache_certificate_reloads_total",
       Type::kCounter,
       {"side"},
       "Replaced certificates that came into use."},
      {"fncache_certificate_reload_failures_total",
       Type::kCounter,
       {"side"},
       "Replaced certificates that could not be used, the old ones kept."},
      {"fncache_handshakes_failed_total",
       Type::kCounter,
       {"side", "reason"},
       "TLS handshakes that failed, by reason (unknown_authority, expired, "
       "not_yet_valid, wrong_usage, wrong_name, bad_certificate, "
       "no_certificate, refused_by_peer, plaintext, protocol)."},

      // Reloads of settings.
      {"fncache_config_last_reload_successful",
       Type::kGauge,
       {},
       "0 if the last reload failed and the earlier settings stay in force; "
       "else 1, also before the first reload."},
      {"fncache_config_last_reload_success_timestamp_seconds",
       Type::kGauge,
       {},
       "When settings were last put in force, as Unix time; the start, before "
       "the first reload."},
      {"fncache_config_reloads_total",
       Type::kCounter,
       {"result"},
       "Reloads of the settings, by result (success, failure)."},

      // The process.
      {"fncache_build_info",
       Type::kGauge,
       {"version"},
       "1, labelled with the version."},
      {"fncache_ready",
       Type::kGauge,
       {},
       "1 while the daemon is ready, 0 before and once it drains."},
      {"process_start_time_seconds",
       Type::kGauge,
       {},
       "When the process started, as Unix time."},
      {"process_cpu_seconds_total",
       Type::kCounter,
       {},
       "CPU time that the process used, user and system."},
      {"process_resident_memory_bytes", Type::kGauge, {}, "Resident memory."},
      {"process_virtual_memory_bytes", Type::kGauge, {}, "Virtual memory."},
      {"process_open_fds", Type::kGauge, {}, "Open file descriptors."},
      {"process_max_fds", Type::kGauge, {}, "Limit of open file descriptors."},
  };
  return *catalogue;
}

const Family& Metric(absl::string_view name) {
  for (const Family& family : Catalogue()) {
    if (family.name == name) return family;
  }
  Log(LogLevel::kError, "a metric is not in the catalogue", {{"metric", name}});
  std::abort();
}

}  // namespace fncache::proxy::telemetry
