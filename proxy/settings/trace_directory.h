// SPDX-License-Identifier: Apache-2.0
// Finds out if a trace's directory is one that the disk tier removes or
// renames: no trace may be written there.
//
// Reads the file system to follow links; thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_TRACE_DIRECTORY_H_
#define FNCACHE_PROXY_SETTINGS_TRACE_DIRECTORY_H_

#include <string>

namespace fncache::proxy::settings {

// Whether the directory `trace` is the cache's directory, one that the disk
// tier makes in it, or below such a one. It need not exist. Other directories
// in the cache's are free: a pod may have one volume for both.
bool IsOfTheCache(const std::string& trace, const std::string& cache);

// The error text for such a directory; it follows the setting's name.
std::string OfTheCacheText(const std::string& trace, const std::string& cache);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_TRACE_DIRECTORY_H_
