// SPDX-License-Identifier: Apache-2.0
// FileWatch: waits until input files change, for `render --watch`.
//
// It watches folders, not files. So it sees editors that write another file and
// rename it over the first, files that are removed and come back, and files
// that are not there yet. Changes before Create returned may be missed, so
// create it before the files are read, and a new one for every round: it does
// not follow folders that appear later.
//
// Linux only (inotify). Not thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_FILE_WATCH_H_
#define FNCACHE_RUNNER_RENDER_FILE_WATCH_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fncache::runner::render {

class FileWatch {
 public:
  // `paths` are files, or folders of which everything counts that lies in them,
  // at any depth. Links are followed: to a file's target, and through folders
  // that are links. An error where the system has no watch left.
  static absl::StatusOr<std::unique_ptr<FileWatch>> Create(
      const std::vector<std::string>& paths);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Blocks until something changed and then nothing more did for `quiet`, but
  // no longer than ten times that: a program that never stops writing must not
  // keep it waiting. The name of what changed first, or "" if it is not known.
  std::string WaitForChange(absl::Duration quiet);

 private:
  // A folder that is watched, and whose changes count: all, or of some names.
  struct Folder {
    std::string path;
    bool all = false;
    std::set<std::string> names;
  };

  explicit FileWatch(int fd);
  absl::Status AddPath(const std::string& path);
  absl::Status AddTree(const std::string& path, int depth);
  // Null if `path` cannot be watched since it is not there.
  absl::StatusOr<Folder*> AddFolder(const std::string& path);
  // Reads what there is, waiting for it at most `timeout`. Whether anything
  // that counts was among it.
  bool ReadEvents(absl::Duration timeout, std::string* changed);

  const int fd_;
  std::map<int, Folder> folders_;  // by watch descriptor
};

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_FILE_WATCH_H_
