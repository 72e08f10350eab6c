# SPDX-License-Identifier: Apache-2.0
# The SDK as a library of others: the targets fncache::function and
# fncache::function_testing here, and the same as the CMake package
# fncache_function. Each installed archive has the objects of all modules that
# its target needs, because users have no use for their names.

# fncache_closure(TARGET MODULES OTHERS): the project's static libraries that
# TARGET links, and the targets of packages that those link.
function(fncache_closure target modules others)
  set(ahead ${target})
  set(seen)
  set(own)
  set(foreign)
  while(ahead)
    list(POP_FRONT ahead next)
    string(REGEX REPLACE "^[$]<LINK_ONLY:(.*)>$" "\\1" next "${next}")
    if(next IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${next})
    if(NOT next MATCHES "^fncache_")
      list(APPEND foreign ${next})
      continue()
    endif()
    get_target_property(type ${next} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND own ${next})
    endif()
    get_target_property(links ${next} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND ahead ${links})
    endif()
  endwhile()
  set(${modules} ${own} PARENT_SCOPE)
  set(${others} ${foreign} PARENT_SCOPE)
endfunction()

add_library(fncache_function INTERFACE)
target_link_libraries(fncache_function INTERFACE fncache_sdk_serve)
add_library(fncache::function ALIAS fncache_function)
add_library(fncache_function_testing INTERFACE)
target_link_libraries(fncache_function_testing INTERFACE fncache_runner_testing fncache_sdk_serve)
add_library(fncache::function_testing ALIAS fncache_function_testing)

fncache_closure(fncache_function function_modules FUNCTION_LIBRARIES)
fncache_closure(fncache_function_testing testing_modules TESTING_LIBRARIES)
list(REMOVE_ITEM testing_modules ${function_modules})
list(REMOVE_ITEM TESTING_LIBRARIES ${FUNCTION_LIBRARIES})
foreach(name function testing)
  list(TRANSFORM ${name}_modules REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(fncache_${name}_archive STATIC ${objects})
  set_target_properties(fncache_${name}_archive PROPERTIES LINKER_LANGUAGE CXX)
endforeach()
set_target_properties(fncache_function_archive PROPERTIES OUTPUT_NAME fncache_function)
set_target_properties(fncache_testing_archive PROPERTIES OUTPUT_NAME fncache_function_testing)
add_custom_target(fncache_sdk DEPENDS fncache_function_archive fncache_testing_archive)

# The libraries that a function links. Names stand for targets that need more
# than the library: Debian's gRPC wants its plugins for protoc, and pkg-config takes
# 20 s for abseil's modules.
set(LIBRARIES)
foreach(library ${FUNCTION_LIBRARIES} ${TESTING_LIBRARIES})
  if(library MATCHES "^(absl|protobuf|ZLIB|OpenSSL)::")
    list(APPEND LIBRARIES ${library})
  elseif(library MATCHES "^gRPC::grpc")
    list(APPEND LIBRARIES grpc++ grpc gpr)
  elseif(library MATCHES "^spdlog::")
    list(APPEND LIBRARIES spdlog fmt)
  elseif(library MATCHES "^(re2::|PkgConfig::lib|PkgConfig::)(re2|yaml|xxhash)$")
    list(APPEND LIBRARIES ${CMAKE_MATCH_2})
  # Headers alone, and a library that no object of a function needs.
  elseif(NOT library MATCHES "^(nlohmann_json::|CLI11::|CURL::)")
    message(FATAL_ERROR "cmake/Sdk.cmake: ${library}: how does a function link it?")
  endif()
endforeach()
list(REMOVE_DUPLICATES LIBRARIES)
set(cmake ${CMAKE_SOURCE_DIR}/sdk/cmake)
configure_file(${cmake}/fncache_functionConfig.cmake.in ${CMAKE_BINARY_DIR}/sdk/fncache_functionConfig.cmake @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sdk/fncache_functionConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
# In a Debian package of their own (Package.cmake).
install(DIRECTORY ${CMAKE_SOURCE_DIR}/sdk/include/fncache DESTINATION include COMPONENT sdk)
install(TARGETS fncache_function_archive fncache_testing_archive ARCHIVE DESTINATION lib COMPONENT sdk)
install(FILES ${cmake}/FncacheFunctionModels.cmake ${CMAKE_BINARY_DIR}/sdk/fncache_functionConfig.cmake
  ${CMAKE_BINARY_DIR}/sdk/fncache_functionConfigVersion.cmake
  DESTINATION lib/cmake/fncache_function COMPONENT sdk)
include(${cmake}/FncacheFunctionModels.cmake)
