// SPDX-License-Identifier: Apache-2.0
// The limit of open files (RLIMIT_NOFILE). Each connection is one.
#ifndef FNCACHE_COMMON_FILE_LIMIT_H_
#define FNCACHE_COMMON_FILE_LIMIT_H_

namespace fncache {

// Sets this process's limit to the highest that it may have.
void RaiseFileLimit();

}  // namespace fncache

#endif  // FNCACHE_COMMON_FILE_LIMIT_H_
