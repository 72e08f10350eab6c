// SPDX-License-Identifier: Apache-2.0
// The commit that this binary was built from.
#ifndef FNCACHE_COMMIT_H_
#define FNCACHE_COMMIT_H_

namespace fncache {

// The first digits of the commit's name, with "-modified" where files were
// changed since; empty where the sources came without their history. Defined in
// a file that cmake/commit.cmake writes during the build, and linked into the
// binary only, so that a new commit relinks that and nothing else.
const char* Commit();

}  // namespace fncache

#endif  // FNCACHE_COMMIT_H_
