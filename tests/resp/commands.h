// SPDX-License-Identifier: Apache-2.0
// Commands for tests of clients, and waiting for what nodes do.
#ifndef FNCACHE_TESTS_RESP_COMMANDS_H_
#define FNCACHE_TESTS_RESP_COMMANDS_H_

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "resp/client.h"
#include "tests/common/eventually.h"

namespace fncache::resp::testing {

// Long enough on any machine, where a test does not wait for the end of it.
inline constexpr absl::Duration kLong = absl::Seconds(30);

// Runs a command whose second word is the key.
inline Answer Ask(Server& server, std::vector<absl::string_view> words,
                  absl::Duration time = kLong, bool is_lookup = false,
                  size_t max_reply_bytes = 64 << 10) {
  Command command;
  command.words = std::move(words);
  if (command.words.size() > 1) command.key = command.words[1];
  command.deadline =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(time);
  command.is_lookup = is_lookup;
  command.max_reply_bytes = max_reply_bytes;
  return server.Run(command);
}

inline Answer LookUp(Server& server, absl::string_view key,
                     absl::Duration time = kLong) {
  return Ask(server, {"GET", key}, time, /*is_lookup=*/true);
}

inline Node::State StateOf(const Server& server, absl::string_view key = "") {
  return server.NodeOf(key).state;
}

inline bool ComesUp(const Server& server, absl::string_view key = "") {
  return Eventually([&] { return StateOf(server, key) == Node::State::kUp; });
}

inline bool GoesDown(const Server& server, absl::string_view key = "") {
  return Eventually([&] { return StateOf(server, key) == Node::State::kDown; });
}

// All nodes that are known are up, `count` of them.
inline bool AllUp(const Server& server, size_t count) {
  return Eventually([&] {
    const std::vector<Node> nodes = server.figures().nodes;
    return nodes.size() == count &&
           std::all_of(nodes.begin(), nodes.end(), [](const Node& node) {
             return node.state == Node::State::kUp;
           });
  });
}

}  // namespace fncache::resp::testing

#endif  // FNCACHE_TESTS_RESP_COMMANDS_H_
