// SPDX-License-Identifier: Apache-2.0
// Session: follows a page from its first block to its last, as a reader does.
// It runs in a clone with only examples/, proto/ and build/release/fncache, and
// with `fncache` in the PATH.
//
// Pages name fixed ports. Each session replaces them by others, so that tests
// can run beside each other and beside a reader's own.
//
// For one thread. The end of the Session, or of its process, however that ends,
// also ends all processes that the blocks left running.
#ifndef FNCACHE_TESTS_DOCS_SESSION_H_
#define FNCACHE_TESTS_DOCS_SESSION_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/common/temp_dir.h"

namespace fncache::docs {

class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Runs commands as bash does, in the folder where the last ones left off,
  // and waits for them; then for what they left in the background to listen.
  // An error has what was said, and comes at once where one of these ends.
  absl::Status Run(const std::string& commands);

  // Writes a script to run, `name` in the folder where the last commands left
  // off.
  void AddProgram(const std::string& name, const std::string& script);

  // Returns what all commands said so far on stdout and stderr, the background
  // included.
  std::string Output() const;

  // `text` with this session's ports.
  std::string WithPorts(std::string text) const;
  const std::string& folder() const { return clone_.path(); }

 private:
  // Five ports that are free, and no other Session's while this one lives.
  void TakePorts();
  bool Listens(const std::string& log, const std::string& commands) const;
  // An error if a command listens on a port that pages name, and not on this
  // session's port instead. Its port comes from a default. The error comes on
  // every machine, also where the port is free.
  absl::Status ListensOnItsPorts(const std::string& log) const;

  testing::TempDir clone_;
  testing::TempDir logs_;
  std::map<int, int> ports_;
  int ports_lock_ = -1;
  int alive_[2] = {-1, -1};  // a pipe that closes with this process
  std::string cwd_;
  std::vector<pid_t> groups_;
  std::vector<std::string> log_files_;
};

// `text` with what differs from run to run replaced: durations, ttl=N, times.
std::string Normalized(const std::string& text);
// As that, without any numbers: sizes, keys and counts are replaced too, and
// the columns of tables are one space apart.
std::string WithoutNumbers(const std::string& text);

// Whether all lines of `expected` are among those of `output`, in that order,
// once both are normalized. Else `missing` is the first that is not.
bool HasLines(const std::string& output, const std::string& expected,
              std::string* missing);

// Whether all lines of `expected` are among those of `output`, in any order,
// once both are without numbers, by which tables are sorted. Else `missing` is
// the first that is not.
bool HasLinesLike(const std::string& output, const std::string& expected,
                  std::string* missing);

}  // namespace fncache::docs

#endif  // FNCACHE_TESTS_DOCS_SESSION_H_
