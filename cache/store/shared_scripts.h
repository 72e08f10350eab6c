// SPDX-License-Identifier: Apache-2.0
// The scripts that the shared server runs for us, each with one EVAL. (Never
// EVALSHA, which a restarted server does not know.)
//
// They compare clear headers (shared_value.h) as texts, because numbers of Lua
// are doubles and cannot hold nanoseconds. tests/cache/store has a model of
// them, which a test compares with real servers.
#ifndef FNCACHE_CACHE_STORE_SHARED_SCRIPTS_H_
#define FNCACHE_CACHE_STORE_SHARED_SCRIPTS_H_

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "resp/server.h"

namespace fncache::cache::store {

// The beginning of the two scripts below. KEYS[1]: an entry. ARGV: an entry's
// or a mark's value, the latest start that counts (a clear header), the value's
// time in milliseconds. Returns 0 if the value there started later. Also after
// the time of ARGV[2]: the client gave up the command long ago, but the network
// may deliver it yet.
#define FNCACHE_UNLESS_LATER                                                  \
  "local time = redis.call('TIME')\n"                                         \
  "local now = string.format('1%011d%09d', time[1], time[2] * 1000)\n"        \
  "if now > ARGV[2] then return 0 end\n"                                      \
  "local there = redis.call('GETRANGE', KEYS[1], 0, 20)\n"                    \
  "if #there == 21 and string.find(there, '^1%d+$') and\n"                    \
  "   there > string.sub(ARGV[1], 1, 21) and there <= ARGV[2] then return 0 " \
  "end\n"

// Stores the value and returns 1.
inline constexpr char kFillScript[] = FNCACHE_UNLESS_LATER R"(
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1)";

// Erases what started up to the start of a mark, and returns 1. The mark
// replaces it, so that an older fill in progress does not come after it, and
// neither does one that a purge's mark kept out. A full server has no mark.
inline constexpr char kEraseScript[] = FNCACHE_UNLESS_LATER R"(
if there == '' then return 1 end
if redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[3]).err then
  redis.call('DEL', KEYS[1])
end
return 1)";
#undef FNCACHE_UNLESS_LATER

// KEYS[1]: a value. ARGV: how its bytes begin. Deletes it if they still do, and
// returns whether it did.
inline constexpr char kRejectScript[] = R"(
if redis.call('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1]))";

// KEYS[1]: the record of bans. ARGV: the size of a beginning. Returns the
// record's beginning (empty if there is none), and the seconds and microseconds
// of the server's time.
inline constexpr char kLookScript[] = R"(
local time = redis.call('TIME')
return {redis.call('GETRANGE', KEYS[1], 0, ARGV[1] - 1), time[1], time[2]})";

// KEYS[1]: the record. ARGV: the beginning that it must have (empty: there must
// be none), the new record. Returns whether it was written.
inline constexpr char kRecordScript[] = R"(
local size = #ARGV[1]
if size == 0 then size = 1 end
if redis.call('GETRANGE', KEYS[1], 0, size - 1) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1)";

// The time of every command but look-ups.
inline constexpr absl::Duration kCommandLimit = absl::Seconds(1);

// Runs a command on the key `name`, whose reply has at most `max_bytes`.
resp::Answer RunCommand(resp::Server* server, absl::string_view name,
                        std::vector<absl::string_view> words,
                        size_t max_bytes = 64 << 10);
// Runs a script above on the key `name`.
resp::Answer RunScript(resp::Server* server, absl::string_view script,
                       absl::string_view name,
                       std::initializer_list<absl::string_view> arguments);

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_SHARED_SCRIPTS_H_
