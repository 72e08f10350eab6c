# SPDX-License-Identifier: Apache-2.0
# Installs what the binary says of itself: a page of the manual for each command,
# and the scripts that complete its commands and flags in a shell.
set(manual ${CMAKE_BINARY_DIR}/manual)
set(outputs)

# fncache_says(FILE DESTINATION arguments...): what the binary prints for these
# arguments is FILE, installed below DESTINATION.
function(fncache_says file destination)
  add_custom_command(OUTPUT ${manual}/${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}
    COMMAND $<TARGET_FILE:fncache> ${ARGN} > ${manual}/${file}
    DEPENDS fncache VERBATIM)
  install(FILES ${manual}/${file} DESTINATION ${destination})
  set(outputs ${outputs} ${manual}/${file} PARENT_SCOPE)
endfunction()

fncache_says(fncache.1 share/man/man1 help --man)
foreach(command serve admin health demo function render explain load probe replay sdk internal help version completion)
  fncache_says(fncache-${command}.1 share/man/man1 help --man ${command})
endforeach()
fncache_says(fncache share/bash-completion/completions completion bash)
fncache_says(_fncache share/zsh/site-functions completion zsh)
fncache_says(fncache.fish share/fish/vendor_completions.d completion fish)
add_custom_target(fncache_manual ALL DEPENDS ${outputs})
