// SPDX-License-Identifier: Apache-2.0
// Slots, redirections and the slot map, as a client of a Cluster knows them.
//
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
// and https://redis.io/docs/latest/commands/cluster-slots/ are the sources.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_RESP_CLUSTER_H_
#define FNCACHE_RESP_CLUSTER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "resp/reply.h"

namespace fncache::resp {

inline constexpr int kSlots = 16384;

// The slot of a key: CRC16 (XMODEM) of its hash tag, or of all of it.
int SlotOf(absl::string_view key);

// Where a node says that a node is. Names have only characters of host names
// and of addresses.
struct Address {
  std::string host;  // empty: that of the node that was asked
  int port = 0;
  std::string name;  // the announced host name, if there is one
};

struct Redirection {
  bool ask = false;
  int slot = 0;
  Address to;
};
// The words of an error. None: it is no MOVED or ASK.
absl::optional<Redirection> ParseRedirection(absl::string_view words);

struct SlotRange {
  int first = 0;
  int last = 0;
  Address master;
};
// The reply to CLUSTER SLOTS. Leaves out what is no range of slots with a
// master.
std::vector<SlotRange> ParseSlots(const Reply& reply);

}  // namespace fncache::resp

#endif  // FNCACHE_RESP_CLUSTER_H_
