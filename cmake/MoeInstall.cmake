# The installed library: headers, find_package(moe_permute), pkg-config.
include(CMakePackageConfigHelpers)

# Hidden visibility leaves the standard library's templates exported; the map keeps them inside.
target_link_options(moe_permute PRIVATE
  "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/moe_permute.map")
set_property(TARGET moe_permute APPEND PROPERTY LINK_DEPENDS
  "${PROJECT_SOURCE_DIR}/cmake/moe_permute.map")

set(MOE_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/moe_permute")

install(TARGETS moe_permute EXPORT moe_permute-targets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/moe" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "mpi.h" EXCLUDE)
install(EXPORT moe_permute-targets NAMESPACE moe:: DESTINATION "${MOE_PACKAGE_DIR}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/moe_permute-config.cmake.in"
  "${PROJECT_BINARY_DIR}/moe_permute-config.cmake" INSTALL_DESTINATION "${MOE_PACKAGE_DIR}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/moe_permute-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/moe_permute-config.cmake"
              "${PROJECT_BINARY_DIR}/moe_permute-config-version.cmake"
        DESTINATION "${MOE_PACKAGE_DIR}")

# The .pc file finds its prefix from its own place, so that a moved installation still works.
file(RELATIVE_PATH MOE_PC_TO_PREFIX
  "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
if(NOT BUILD_SHARED_LIBS)
  set(MOE_PC_LIBS "-pthread")
  set(MOE_PC_REQUIRES "libhwy")
  if(MOE_THREADS STREQUAL "tbb")
    string(APPEND MOE_PC_REQUIRES " tbb")
  endif()
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/moe_permute.pc.in"
  "${PROJECT_BINARY_DIR}/moe_permute.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/moe_permute.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
