// SPDX-License-Identifier: Apache-2.0
// FullFileSystem: the system's files, on which writing can be made to fail.
#ifndef FNCACHE_TESTS_CACHE_STORE_FULL_FILE_SYSTEM_H_
#define FNCACHE_TESTS_CACHE_STORE_FULL_FILE_SYSTEM_H_

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace fncache::cache::store::testing {

// A file system on which writing can be made to fail as it does when full.
class FullFileSystem : public rocksdb::FileSystemWrapper {
 public:
  FullFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FullFileSystem"; }
  void set_full(bool full) { full_ = full; }

  rocksdb::IOStatus NewWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* result,
      rocksdb::IODebugContext* debug) override {
    if (full_) return Full();
    const rocksdb::IOStatus status =
        target()->NewWritableFile(name, options, result, debug);
    if (status.ok()) *result = std::make_unique<File>(std::move(*result), this);
    return status;
  }

 private:
  static rocksdb::IOStatus Full() {
    return rocksdb::IOStatus::NoSpace("injected");
  }

  class File : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, FullFileSystem* system)
        : FSWritableFileOwnerWrapper(std::move(file)), system_(system) {}
    using FSWritableFileOwnerWrapper::Append;
    rocksdb::IOStatus Append(const rocksdb::Slice& data,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      if (system_->full_) return Full();
      return FSWritableFileOwnerWrapper::Append(data, options, debug);
    }

   private:
    FullFileSystem* const system_;
  };

  std::atomic<bool> full_{false};
};

}  // namespace fncache::cache::store::testing

#endif  // FNCACHE_TESTS_CACHE_STORE_FULL_FILE_SYSTEM_H_
