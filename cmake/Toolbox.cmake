# SPDX-License-Identifier: Apache-2.0
# Compiler settings shared by every target, and the three ways in which this
# project declares one: a module's library, a folder's tests, a fuzzer.

# Below 1 GB, gcc's garbage collector only costs time: 8 % to compile all of this.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=1000000)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

# mold links a sanitizer's test program in a second; GNU ld takes twenty.
find_program(FNCACHE_MOLD mold)
find_program(FNCACHE_LLD NAMES ld.lld)
if(FNCACHE_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(FNCACHE_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# The precompiled headers below must see the same macros as the files that
# include them. Some packages bring -pthread, so every target has it.
add_library(fncache_flags INTERFACE)
target_compile_options(fncache_flags INTERFACE -Wall -Wextra -Werror -Wno-unused-parameter -pthread)
target_include_directories(fncache_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_link_options(fncache_flags INTERFACE -pthread)

if(FNCACHE_SANITIZE)
  add_compile_options(-fsanitize=${FNCACHE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FNCACHE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # gcc loses track of what is initialised once checks stand in between.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  if(FNCACHE_SANITIZE MATCHES "address")
    # clang and gcc have different names for it.
    add_compile_definitions(FNCACHE_ASAN=1)
  endif()
  if(FNCACHE_SANITIZE MATCHES "undefined")
    # Address finds what these three do, and they make a quarter of the code.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=null,vptr,object-size)
  endif()
  if(FNCACHE_SANITIZE STREQUAL "thread")
    # gcc warns that it does not model atomic_thread_fence; none of ours is used.
    add_compile_options(-Wno-error=tsan)
    # protobuf's headers lay messages out differently where they see tsan, but
    # Debian's libprotobuf (Struct, Value, Duration) was built without: hide it
    # from headers, and tell our own another way.
    add_compile_options(-U__SANITIZE_THREAD__ -DFNCACHE_TSAN=1)
  endif()
endif()
if(FNCACHE_FUZZ)
  # libFuzzer sees which code an input reaches. Tests do not need that.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Headers of the standard library and of packages, compiled once for each kind of
# target. A header of this project is never among them: a change of one would
# compile everything again. Lint compiles without them (FNCACHE_PCH=OFF), so a
# source that does not include what it uses is found.
option(FNCACHE_PCH "Precompile the headers that most sources include" ON)
if(FNCACHE_PCH)
  # ccache needs this besides CCACHE_SLOPPINESS and CCACHE_PCH_EXTSUM (Makefile).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess> $<$<COMPILE_LANGUAGE:CXX>:-Wno-error=invalid-pch>)
  else()
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
    # clang finds the .pch beside it. In CMake's own form, ccache would not see a path
    # that differs between clones.
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include <PCH_HEADER>)
  endif()
endif()
file(WRITE ${CMAKE_BINARY_DIR}/generated/empty.cc.new "// Generated; has a precompiled header.\n")
file(COPY_FILE ${CMAKE_BINARY_DIR}/generated/empty.cc.new ${CMAKE_BINARY_DIR}/generated/empty.cc ONLY_IF_DIFFERENT)

# fncache_precompiled(NAME HEADERS header... LIBRARIES library...): headers that
# targets of the same compiler flags get by fncache_use_precompiled.
function(fncache_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;LIBRARIES;OPTIONS")
  if(NOT FNCACHE_PCH)
    return()
  endif()
  add_library(fncache_${name}_headers STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/empty.cc)
  target_link_libraries(fncache_${name}_headers PRIVATE fncache_flags ${arg_LIBRARIES})
  target_compile_options(fncache_${name}_headers PRIVATE ${arg_OPTIONS})
  target_precompile_headers(fncache_${name}_headers PRIVATE ${arg_HEADERS})
  if(CCACHE)
    set_target_properties(fncache_${name}_headers PROPERTIES CXX_COMPILER_LAUNCHER "${CMAKE_SOURCE_DIR}/cmake/precompile;${CCACHE}")
  endif()
endfunction()

function(fncache_use_precompiled target name)
  if(TARGET fncache_${name}_headers)
    target_precompile_headers(${target} REUSE_FROM fncache_${name}_headers)
  endif()
endfunction()

set(common_headers <algorithm> <array> <atomic> <cstdint> <deque> <functional> <limits> <map> <memory> <set> <string>
  <thread> <utility> <vector>
  <absl/container/flat_hash_map.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/match.h>
  <absl/strings/numbers.h> <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>
  <absl/strings/str_split.h> <absl/strings/string_view.h> <absl/strings/strip.h> <absl/synchronization/mutex.h>
  <absl/time/clock.h> <absl/time/time.h> <absl/types/optional.h> <absl/types/span.h>)
set(common_libraries absl::flat_hash_map absl::statusor absl::str_format absl::synchronization absl::time absl::span)
fncache_precompiled(common HEADERS ${common_headers} LIBRARIES ${common_libraries})

# fncache_library(MODULE deps...): the library of this folder is every .cc in it.
function(fncache_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(fncache_${name} STATIC ${sources})
  target_link_libraries(fncache_${name} PUBLIC fncache_flags ${ARGN})
  fncache_use_precompiled(fncache_${name} common)
endfunction()

# -O2 would double the compile time of tests, and their own speed matters to none.
# With the thread sanitizer they keep its -O1: without inlining, Debian's abseil,
# which tsan does not see into, calls the instrumented copies of its own inline
# functions in the test program, and tsan reports races that are none.
set(test_options -O0)
if(FNCACHE_SANITIZE STREQUAL "thread")
  set(test_options)
endif()
if(FNCACHE_SANITIZE MATCHES "undefined")
  # Checks of what tests themselves do would be half of the time to compile them.
  list(APPEND test_options -fno-sanitize=undefined)
endif()
if(FNCACHE_FUZZ)
  list(APPEND test_options -fno-sanitize=fuzzer-no-link)
endif()
if(FNCACHE_TESTS)
  set(test_headers ${common_headers} <filesystem> <fstream> <random> <gmock/gmock.h> <gtest/gtest.h>)
  set(test_libraries ${common_libraries} GTest::gmock GTest::gtest)
  fncache_precompiled(test OPTIONS ${test_options} HEADERS ${test_headers} LIBRARIES ${test_libraries})
  # For tests that call functions or are functions.
  fncache_precompiled(grpc_test OPTIONS ${test_options}
    HEADERS ${test_headers} <google/protobuf/struct.pb.h> <google/protobuf/util/json_util.h> <grpcpp/grpcpp.h> <nlohmann/json.hpp>
    LIBRARIES ${test_libraries} gRPC::grpc++ nlohmann_json::nlohmann_json)
endif()

# fncache_tests(FOLDER deps...): one executable FOLDER_test of every .cc in this
# folder and the modules below it. Each TEST is known to ctest under its own name,
# but with sanitizers, whose processes start slowly: there ctest knows shards of
# the program (FNCACHE_SHARDS). FNCACHE_TEST_ENVIRONMENT is added to the
# environment; FNCACHE_TEST_HEADERS names the precompiled headers.
#
# Tests that tests/clock_tests.txt names get the label `clock`, and are tests of
# their own with sanitizers, too.
function(fncache_tests name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT sources)
    message(FATAL_ERROR "tests/${name} has no sources")
  endif()
  if(FNCACHE_SANITIZE STREQUAL "thread")
    foreach(path ${FNCACHE_WITHOUT_THREADS})
      list(FILTER sources EXCLUDE REGEX "^${CMAKE_SOURCE_DIR}/tests/${path}(/[^/]*)?$")
    endforeach()
    if(NOT sources)
      return()
    endif()
  endif()
  add_executable(${name}_test ${sources} ${CMAKE_SOURCE_DIR}/tests/shards.cc)
  target_link_libraries(${name}_test PRIVATE fncache_flags ${ARGN} GTest::gmock GTest::gtest_main)
  target_compile_options(${name}_test PRIVATE ${test_options})
  if(FNCACHE_TEST_HEADERS)
    fncache_use_precompiled(${name}_test ${FNCACHE_TEST_HEADERS})
  else()
    fncache_use_precompiled(${name}_test test)
  endif()
  # Relative to the source folder, where ctest runs them: an absolute path would
  # keep clones from sharing compiled objects through ccache.
  file(RELATIVE_PATH build ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_compile_definitions(${name}_test PRIVATE
    FNCACHE_SOURCE_DIR="." FNCACHE_BINARY="${build}/fncache")
  if(FNCACHE_SANITIZE)
    fncache_test_shards(${name}_test)
    return()
  endif()
  gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    PROPERTIES TIMEOUT 300 ENVIRONMENT "${FNCACHE_TEST_ENVIRONMENT}")
  # ctest reads the file of the discovered tests first, then this.
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}_clock.cmake @ONLY CONTENT [[
foreach(test ${@name@_test_TESTS})
  if(test MATCHES "@clock_regex@")
    set_tests_properties("${test}" PROPERTIES LABELS clock)
  endif()
endforeach()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}_clock.cmake)
endfunction()
set(FNCACHE_SHARDS 4 CACHE STRING "With sanitizers: processes that the tests of one program are divided among")

# The patterns of clock_tests.txt as a regular expression and as a filter of
# GoogleTest's.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/clock_tests.txt)
file(STRINGS ${CMAKE_SOURCE_DIR}/tests/clock_tests.txt clock_lines REGEX "^[^# ]")
set(clock_regex)
set(clock_patterns)
foreach(line ${clock_lines})
  string(REGEX REPLACE " .*" "" pattern "${line}")
  list(APPEND clock_patterns ${pattern})
  string(REPLACE "." "[.]" pattern "${pattern}")
  string(REPLACE "*" ".*" pattern "${pattern}")
  list(APPEND clock_regex "^${pattern}$")
endforeach()
list(JOIN clock_regex "|" clock_regex)
list(JOIN clock_patterns ":" clock_filter)

# The tests of one program as `PROGRAM.shard-N`, and `PROGRAM.clock`. Each writes
# what ran and what was skipped to test_results/ (scripts/test reads it).
function(fncache_test_shards program)
  math(EXPR last "${FNCACHE_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${program}.shard-${shard} COMMAND ${program} "--gtest_filter=-${FNCACHE_NOT_SANITIZED}:${clock_filter}"
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${program}.shard-${shard} PROPERTIES TIMEOUT 1500 COST 1000 ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${FNCACHE_SHARDS};GTEST_SHARD_INDEX=${shard};GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/test_results/${program}.${shard}.xml;${FNCACHE_TEST_ENVIRONMENT}")
  endforeach()
  if(clock_filter)
    add_test(NAME ${program}.clock COMMAND ${program} "--gtest_filter=${clock_filter}-${FNCACHE_NOT_SANITIZED}" WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${program}.clock PROPERTIES TIMEOUT 600 LABELS clock ENVIRONMENT
      "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/test_results/${program}.clock.xml;${FNCACHE_TEST_ENVIRONMENT}")
  endif()
endfunction()

# fncache_fuzzer(NAME deps...): NAME_fuzzer.cc, a libFuzzer binary in the asan preset;
# elsewhere a program that replays corpus/NAME, registered with ctest.
# All of them are the target `fuzzers`.
add_custom_target(fuzzers)
function(fncache_fuzzer name)
  add_executable(${name}_fuzzer ${name}_fuzzer.cc)
  add_dependencies(fuzzers ${name}_fuzzer)
  target_link_libraries(${name}_fuzzer PRIVATE fncache_flags ${ARGN})
  fncache_use_precompiled(${name}_fuzzer common)
  if(FNCACHE_FUZZ)
    target_link_options(${name}_fuzzer PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name}_fuzzer PRIVATE replay_main.cc)
  endif()
  add_test(NAME fuzz_corpus.${name}
    COMMAND ${name}_fuzzer -runs=0 ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
endfunction()
