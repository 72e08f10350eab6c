# SPDX-License-Identifier: Apache-2.0
# GTest as find_package sees it where libgtest-dev is installed and libgmock-dev
# is not; all of it once a file `whole` lies beside this one.
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/whole)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/whole real)
  string(STRIP "${real}" real)
  include(${real}/GTestConfig.cmake)
else()
  foreach(half gtest gtest_main)
    if(NOT TARGET GTest::${half})
      add_library(GTest::${half} INTERFACE IMPORTED)
    endif()
  endforeach()
endif()
