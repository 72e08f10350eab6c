# SPDX-License-Identifier: Apache-2.0
# fncache_function_models(TARGET [FILES] files... [INPUTS inputs...]): C++ classes
# of the kinds that CRDs, XRDs and OpenAPI documents define. `files` are files or
# folders. `inputs` are files as well, or kinds of `files`: those kinds are
# inputs of the function (ctx.input<I>()).
#
# TARGET gets the headers. If there is no such target, it becomes an INTERFACE
# library, which all targets can link that use the models.
function(fncache_function_models target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;INPUTS")
  set(paths)
  set(flags)
  foreach(path ${arg_UNPARSED_ARGUMENTS} ${arg_FILES})
    cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    list(APPEND paths ${path})
  endforeach()
  foreach(input ${arg_INPUTS})
    cmake_path(ABSOLUTE_PATH input BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE path)
    if(EXISTS ${path})
      list(APPEND paths ${path})
      set(input ${path})
    endif()
    list(APPEND flags --input ${input})
  endforeach()
  set(read)
  foreach(path ${paths})
    if(IS_DIRECTORY ${path})
      file(GLOB_RECURSE found CONFIGURE_DEPENDS ${path}/*.yaml ${path}/*.yml ${path}/*.json)
      list(APPEND read ${found})
    else()
      list(APPEND read ${path})
    endif()
  endforeach()

  if(NOT TARGET ${target})
    add_library(${target} INTERFACE)
  endif()
  set(scope PUBLIC)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(scope INTERFACE)
  endif()
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${target}_models)
  target_include_directories(${target} ${scope} ${out})
  target_link_libraries(${target} ${scope} fncache::function)
  set(arguments sdk generate ${paths} ${flags} --out ${out})
  if(TARGET fncache)
    # Within fncache's own build, whose binary is not there yet.
    add_custom_command(OUTPUT ${out}/generated
      COMMAND fncache ${arguments}
      COMMAND ${CMAKE_COMMAND} -E touch ${out}/generated
      DEPENDS ${read} fncache VERBATIM)
    add_custom_target(${target}_generate DEPENDS ${out}/generated)
    add_dependencies(${target} ${target}_generate)
    return()
  endif()
  # When CMake runs, so that a build knows the headers before it begins. A change
  # of a file runs it again.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${read})
  execute_process(COMMAND ${FNCACHE_COMMAND} ${arguments} RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE why)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "fncache_function_models: ${why}")
  endif()
endfunction()
