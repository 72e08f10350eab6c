// SPDX-License-Identifier: Apache-2.0
#include "cache/store/shared_scripts.h"

#include <chrono>
#include <utility>

namespace fncache::cache::store {

resp::Answer RunCommand(resp::Server* server, absl::string_view name,
                        std::vector<absl::string_view> words,
                        size_t max_bytes) {
  resp::Command command;
  command.words = std::move(words);
  command.key = name;
  command.deadline = std::chrono::steady_clock::now() +
                     absl::ToChronoNanoseconds(kCommandLimit);
  command.max_reply_bytes = max_bytes;
  return server->Run(command);
}

resp::Answer RunScript(resp::Server* server, absl::string_view script,
                       absl::string_view name,
                       std::initializer_list<absl::string_view> arguments) {
  std::vector<absl::string_view> words = {"EVAL", script, "1", name};
  words.insert(words.end(), arguments);
  return RunCommand(server, name, std::move(words));
}

}  // namespace fncache::cache::store
