# SPDX-License-Identifier: Apache-2.0
# Everything comes from Debian 12 (packages.txt); nothing is vendored.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
# RocksDB's own module brings lz4::lz4. A build folder that once asked pkg-config
# for it holds other results under the module's names.
foreach(result lz4_INCLUDE_DIRS lz4_LIBRARIES)
  if(NOT IS_ABSOLUTE "${${result}}")
    unset(${result} CACHE)
  endif()
endforeach()
find_package(RocksDB CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(CURL REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
pkg_check_modules(libyaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
# Not named lz4: those variables are RocksDB's, whose own search they would break
# when CMake runs again.
pkg_check_modules(liblz4 REQUIRED IMPORTED_TARGET liblz4)
# What `fncache load --request` and the benchmarks send with.
pkg_check_modules(nghttp2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(microhttpd REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET hiredis)
# Its _FILE_OFFSET_BITS would keep precompiled headers from use.
set_property(TARGET PkgConfig::hiredis PROPERTY INTERFACE_COMPILE_OPTIONS "")
# The tests are an option of their own, and what it needs is required then.
# libgtest-dev alone is found as GTest, without the target GTest::gmock.
if(FNCACHE_TESTS)
  find_package(GTest CONFIG QUIET)
  foreach(needed "GTest::gtest_main libgtest-dev" "GTest::gmock libgmock-dev")
    string(REPLACE " " ";" needed "${needed}")
    list(GET needed 0 library)
    list(GET needed 1 package)
    if(NOT TARGET ${library})
      # scripts/configure prints this line alone.
      message(FATAL_ERROR "fncache: the tests need ${library}, which is not there: apt-get install ${package}")
    endif()
  endforeach()
  # Debian's own sees Debian's packages for Python; another may come first in PATH.
  if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
    set(Python3_EXECUTABLE /usr/bin/python3)
  endif()
  find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
  if(NOT Python3_Interpreter_FOUND)
    message(FATAL_ERROR "fncache: the tests need Python 3.9, which is not there: apt-get install python3")
  endif()
  include(GoogleTest)
endif()
