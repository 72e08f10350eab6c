# SPDX-License-Identifier: Apache-2.0
# Compiler settings shared by every target, and the three ways in which this
# project declares one: a room's library, a folder's tests, a fuzzer.

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(fncache_flags INTERFACE)
target_compile_options(fncache_flags INTERFACE -Wall -Wextra -Werror -Wno-unused-parameter)
target_include_directories(fncache_flags INTERFACE ${CMAKE_SOURCE_DIR})

if(FNCACHE_SANITIZE)
  add_compile_options(-fsanitize=${FNCACHE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FNCACHE_SANITIZE})
  # gcc loses track of what is initialised once checks stand in between.
  add_compile_options(-Wno-maybe-uninitialized)
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
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer -DFNCACHE_FUZZ=1)
  add_link_options(-fsanitize=address,undefined)
endif()

# fncache_library(ROOM deps...): the library of this folder is every .cc in it.
function(fncache_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(fncache_${name} STATIC ${sources})
  target_link_libraries(fncache_${name} PUBLIC fncache_flags ${ARGN})
endfunction()

# fncache_tests(FOLDER deps...): one executable FOLDER_test of every .cc in this
# folder and the rooms below it, each TEST known to ctest under its own name, and
# run with what FNCACHE_TEST_ENVIRONMENT adds to its environment.
function(fncache_tests name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name}_test ${sources})
  target_link_libraries(${name}_test PRIVATE fncache_flags ${ARGN} GTest::gmock GTest::gtest_main)
  # Relative to the source folder, where ctest runs them: an absolute path would
  # keep clones from sharing compiled objects through ccache.
  file(RELATIVE_PATH build ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  if(FNCACHE_SANITIZE MATCHES "undefined")
    # Checks of what tests themselves do would be half of the time to compile them.
    target_compile_options(${name}_test PRIVATE -fno-sanitize=undefined)
  endif()
  target_compile_definitions(${name}_test PRIVATE
    FNCACHE_SOURCE_DIR="." FNCACHE_BINARY="${build}/fncache")
  gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    PROPERTIES TIMEOUT 300 ENVIRONMENT "${FNCACHE_TEST_ENVIRONMENT}")
endfunction()

# fncache_fuzzer(NAME deps...): NAME_fuzzer.cc, a libFuzzer binary in the fuzz preset;
# elsewhere a program that replays corpus/NAME, registered with ctest.
# All of them are the target `fuzzers`.
add_custom_target(fuzzers)
function(fncache_fuzzer name)
  add_executable(${name}_fuzzer ${name}_fuzzer.cc)
  add_dependencies(fuzzers ${name}_fuzzer)
  target_link_libraries(${name}_fuzzer PRIVATE fncache_flags ${ARGN})
  if(FNCACHE_FUZZ)
    target_link_options(${name}_fuzzer PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name}_fuzzer PRIVATE replay_main.cc)
  endif()
  add_test(NAME fuzz_corpus.${name}
    COMMAND ${name}_fuzzer -runs=0 ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
endfunction()
