# SPDX-License-Identifier: Apache-2.0
# What Debian wants packed: changelogs and pages of the manual. CPack runs this
# when all files are below CPACK_TEMPORARY_DIRECTORY; without times and names in
# them, so that the same sources give the same package.
file(GLOB wanted
  ${CPACK_TEMPORARY_DIRECTORY}/usr/share/man/man*/*.[0-9]
  ${CPACK_TEMPORARY_DIRECTORY}/usr/share/doc/fncache*/changelog*)
list(FILTER wanted EXCLUDE REGEX "\\.gz$")
foreach(file ${wanted})
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
