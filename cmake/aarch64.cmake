# Toolchain file: aarch64 Linux, built by Debian's cross compiler with the arm64 libraries that
# scripts/test_aarch64 unpacks, and run by qemu-user. MOE_SYSROOT says where those libraries are.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MOE_SYSROOT)
set(CMAKE_FIND_ROOT_PATH "${MOE_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${MOE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR}
    "${MOE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${MOE_SYSROOT}/usr/share/pkgconfig")

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${MOE_SYSROOT}")
