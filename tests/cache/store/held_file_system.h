// SPDX-License-Identifier: Apache-2.0
// HeldFileSystem: the system's files, on which writers can be made to wait.
#ifndef FNCACHE_TESTS_CACHE_STORE_HELD_FILE_SYSTEM_H_
#define FNCACHE_TESTS_CACHE_STORE_HELD_FILE_SYSTEM_H_

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <memory>
#include <string>
#include <utility>

#include "common/mutex.h"

namespace fncache::cache::store::testing {

// A file system that can block writes to its logs: a thread that writes one
// waits.
class HeldFileSystem : public rocksdb::FileSystemWrapper {
 public:
  HeldFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "HeldFileSystem"; }

  void Hold() {
    MutexLock lock(&mutex_);
    held_ = true;
  }
  void LetGo() {
    MutexLock lock(&mutex_);
    held_ = false;
    changed_.SignalAll();
  }
  void AwaitWriter() {
    MutexLock lock(&mutex_);
    while (waiting_ == 0) changed_.Wait(&mutex_);
  }

  rocksdb::IOStatus NewWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* result,
      rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus status =
        target()->NewWritableFile(name, options, result, debug);
    const bool log = name.size() > 4 && name.substr(name.size() - 4) == ".log";
    if (status.ok() && log) {
      *result = std::make_unique<File>(std::move(*result), this);
    }
    return status;
  }

 private:
  class File : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, HeldFileSystem* system)
        : FSWritableFileOwnerWrapper(std::move(file)), system_(system) {}
    using FSWritableFileOwnerWrapper::Append;
    rocksdb::IOStatus Append(const rocksdb::Slice& data,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      system_->Pass();
      return FSWritableFileOwnerWrapper::Append(data, options, debug);
    }

   private:
    HeldFileSystem* const system_;
  };

  void Pass() {
    MutexLock lock(&mutex_);
    ++waiting_;
    changed_.SignalAll();
    while (held_) changed_.Wait(&mutex_);
    --waiting_;
  }

  Mutex mutex_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fncache::cache::store::testing

#endif  // FNCACHE_TESTS_CACHE_STORE_HELD_FILE_SYSTEM_H_
