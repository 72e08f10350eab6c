# SPDX-License-Identifier: Apache-2.0
# The Debian package (`make package`): the binary, its manual and completions,
# the service, its user, and an example of its settings. Dependencies are what
# dpkg-shlibdeps finds in the binary.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fncache)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "caching proxy for Crossplane's composition functions")
set(CPACK_PACKAGE_DESCRIPTION
"fncache stands between a function runner and its gRPC functions, answers what
was asked before from memory or disk while the answer is good, and exports
metrics. It also renders and load-tests pipelines.")
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The fncache authors <fncache@example.org>")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "ca-certificates, adduser, procps")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(deploy ${CMAKE_SOURCE_DIR}/deploy)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${deploy}/debian/conffiles ${deploy}/debian/postinst ${deploy}/debian/prerm ${deploy}/debian/postrm)
# In a package of their own component, so that `make install` does not install
# a service.
install(FILES ${deploy}/systemd/fncache.service DESTINATION lib/systemd/system COMPONENT package EXCLUDE_FROM_ALL)
install(FILES ${deploy}/systemd/fncache.sysusers DESTINATION lib/sysusers.d RENAME fncache.conf
  COMPONENT package EXCLUDE_FROM_ALL)
install(FILES ${deploy}/debian/fncache.yaml DESTINATION /etc/fncache COMPONENT package EXCLUDE_FROM_ALL)
install(FILES ${deploy}/debian/copyright DESTINATION share/doc/fncache COMPONENT package EXCLUDE_FROM_ALL)
install(FILES ${deploy}/debian/changelog DESTINATION share/doc/fncache RENAME changelog.Debian
  COMPONENT package EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_SOURCE_DIR}/CHANGELOG.md DESTINATION share/doc/fncache RENAME changelog
  COMPONENT package EXCLUDE_FROM_ALL)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian-docs.cmake)
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${CMAKE_BINARY_DIR};fncache;Unspecified;/" "${CMAKE_BINARY_DIR};fncache;package;/")
include(CPack)

# The package of the SDK, fncache-dev: headers, archives, CMake files. It depends
# on what linking a function needs, and on the generator.
install(FILES ${deploy}/debian/copyright DESTINATION share/doc/fncache-dev COMPONENT sdk-package EXCLUDE_FROM_ALL)
install(FILES ${deploy}/debian/changelog DESTINATION share/doc/fncache-dev RENAME changelog.Debian
  COMPONENT sdk-package EXCLUDE_FROM_ALL)
file(CONFIGURE OUTPUT CPackDevConfig.cmake @ONLY CONTENT [[
include("@CMAKE_BINARY_DIR@/CPackConfig.cmake")
set(CPACK_PACKAGE_NAME fncache-dev)
set(CPACK_DEBIAN_PACKAGE_NAME fncache-dev)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "SDK for Crossplane's composition functions in C++")
set(CPACK_PACKAGE_DESCRIPTION
"Headers and static libraries of the SDK of fncache, and CMake's package
fncache_function. Functions set fields of resources from the observed fields of
others; a missing value delays only what needs it.")
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA)
set(CPACK_DEBIAN_PACKAGE_DEPENDS
"fncache (= @PROJECT_VERSION@-1), libabsl-dev, libgrpc++-dev, libprotobuf-dev, libre2-dev, libspdlog-dev, libssl-dev, libxxhash-dev, libyaml-dev, zlib1g-dev")
set(CPACK_INSTALL_CMAKE_PROJECTS
  "@CMAKE_BINARY_DIR@;fncache;sdk;/" "@CMAKE_BINARY_DIR@;fncache;sdk-package;/")
]])
