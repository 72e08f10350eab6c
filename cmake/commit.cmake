# SPDX-License-Identifier: Apache-2.0
# Run by every build (cmake -D SOURCE=… -D OUTPUT=… -P commit.cmake): writes the
# definition of fncache::Commit(), and leaves the file alone where it says so
# already, so that nothing is compiled again.
set(commit "")
# Not a repository that the sources only lie in, such as one of a packager's.
if(EXISTS ${SOURCE}/.git)
  execute_process(
    COMMAND git -C ${SOURCE} describe --always --exclude=* --abbrev=12 --dirty=-modified
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed EQUAL 0 OR NOT commit MATCHES "^[0-9a-f]+(-modified)?$")
    set(commit "")
  endif()
# Without a repository, as in the image's build, the caller may name the commit.
elseif("$ENV{FNCACHE_COMMIT}" MATCHES "^[0-9a-f]+(-modified)?$")
  set(commit $ENV{FNCACHE_COMMIT})
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "commit.h"

namespace fncache {

const char* Commit() { return "@commit@"; }

}  // namespace fncache
]])
