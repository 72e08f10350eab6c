// SPDX-License-Identifier: Apache-2.0
// The words of the status page with their meanings. They are the words of
// metrics and flags.
#ifndef FNCACHE_PROXY_TELEMETRY_PAGE_WORDS_H_
#define FNCACHE_PROXY_TELEMETRY_PAGE_WORDS_H_

#include <string>

namespace fncache::proxy::telemetry {

struct Word {
  const char* word;
  const char* meaning;
};
inline constexpr Word kHit = {"hit", "Answered from the cache."};
inline constexpr Word kStaleHit = {
    "stale hit",
    "Answered from the cache past its time to live: a refresh called the "
    "function (stale_while_revalidate), or it failed (stale_if_error)."};
inline constexpr Word kRefresh = {
    "refresh",
    "A call to the function after a stale hit, for which no caller waits. If "
    "it fails, its key is not refreshed for 1 to 30 s: it is backing off."};
inline constexpr Word kServedOver = {
    "served over",
    "An error of the function instead of which callers got an old answer "
    "(stale_if_error). It still counts as the function's error."};
inline constexpr Word kGivenUp = {
    "given up",
    "An old answer that is not served any longer, because the function gave a "
    "new answer that may not be stored."};
inline constexpr Word kAbandoned = {
    "abandoned",
    "A call to the function whose last caller has left. With finish_abandoned "
    "it continues, and its answer is stored."};
inline constexpr Word kRehearsed = {
    "rehearsed",
    "With mode: shadow, the answer that the cache would have given, compared "
    "with the function's: by mask (the requests differ only in masked fields), "
    "exact (the same request, the control), unknown (an older entry)."};
inline constexpr Word kRefusedWithoutCaller = {
    "refused",
    "A refresh that was not begun, or an abandoned call that was cancelled: at "
    "most 16 calls without a caller run for each function, with an eighth of "
    "inflight.bytes."};
inline constexpr Word kMiss = {
    "miss", "Looked up and not found: the function was asked."};
inline constexpr Word kStale = {
    "stale", "Found, but past its time to live: the function was called."};
inline constexpr Word kCollapsed = {
    "collapsed",
    "Came while the same question was being asked, and waited for that answer "
    "instead of asking the function, too."};
inline constexpr Word kBypass = {
    "bypass",
    "Not looked up and passed through: calls with authorization, operations, "
    "functions with mode: off or shadow, methods other than RunFunction."};
inline constexpr Word kRequest = {
    "request",
    "Not answered from the cache because the caller asked for that, with "
    "cache-control: no-cache or no-store."};
inline constexpr Word kHitRate = {
    "hit rate",
    "The share of look-ups that were answered from the cache: hits, stale hits "
    "and collapsed calls against calls that went to the function."};
inline constexpr Word kErrors = {
    "errors",
    "Calls to the function that failed: they ended neither with OK nor with "
    "CANCELLED or UNIMPLEMENTED, which callers cause."};
inline constexpr Word kFills = {"fills", "Responses that were stored."};
inline constexpr Word kDropped = {
    "dropped", "Responses that should have been stored and were not."};
inline constexpr Word kFailures = {
    "failures",
    "Failures of the cache itself. No call fails for them: they are misses."};
inline constexpr Word kSaved = {
    "time saved",
    "Function time that was not spent: for each hit, as long as the call took "
    "that filled the entry."};
inline constexpr Word kInFlight = {
    "in flight", "Calls that are being answered at this moment."};
inline constexpr Word kFlight = {
    "flight", "A call to the function and all the callers that wait for it."};
inline constexpr Word kTier = {"tier",
                               "A level of storage for responses: memory, and "
                               "disk or a shared server if that is set."};

// Appends the list of all words.
void Words(std::string* out);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_PAGE_WORDS_H_
