// SPDX-License-Identifier: Apache-2.0
// Where no trace may be written: in what the disk tier removes and renames.
//
// Looks at the file system, to follow links; thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_TRACE_PLACE_H_
#define FNCACHE_PROXY_SETTINGS_TRACE_PLACE_H_

#include <string>

namespace fncache::proxy::settings {

// Whether the directory `trace`, which need not be there, is the cache's
// directory itself, or one that the disk tier makes in it, or below such a one.
// Others in it are nobody's: a pod may have one volume for both.
bool IsOfTheCache(const std::string& trace, const std::string& cache);

// What to say then, behind the setting's name.
std::string OfTheCacheText(const std::string& trace, const std::string& cache);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_TRACE_PLACE_H_
