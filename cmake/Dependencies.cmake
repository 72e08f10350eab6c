# SPDX-License-Identifier: Apache-2.0
# Everything comes from Debian 12 (packages.txt); nothing is vendored. Without
# GTest there are no tests, and the binary is built all the same.
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
find_package(GTest CONFIG QUIET)
include(GoogleTest)
