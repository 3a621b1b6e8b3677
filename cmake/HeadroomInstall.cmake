# `cmake --install`: library, public headers, program, and the package that find_package(headroom) reads.
include(CMakePackageConfigHelpers)

file(GLOB headroom_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/headroom/*.hpp)
target_sources(headroom PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headroom_headers})
set_target_properties(
  headroom PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      VERIFY_INTERFACE_HEADER_SETS ON)

set(headroom_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/headroom)
install(TARGETS headroom EXPORT headroom-targets FILE_SET HEADERS)
install(EXPORT headroom-targets NAMESPACE headroom:: DESTINATION ${headroom_package_dir})
configure_package_config_file(cmake/headroom-config.cmake.in headroom-config.cmake
                              INSTALL_DESTINATION ${headroom_package_dir})
write_basic_package_version_file(headroom-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/headroom-config.cmake ${PROJECT_BINARY_DIR}/headroom-config-version.cmake
              cmake/headroom-openblas.cmake DESTINATION ${headroom_package_dir})

if(TARGET headroom_program)
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(headroom_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                                                    INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS headroom_program)
endif()
