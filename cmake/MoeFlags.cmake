# Flags of every target of this project, as one interface library: moe_flags.
add_library(moe_flags INTERFACE)
target_compile_features(moe_flags INTERFACE cxx_std_20)
target_compile_options(moe_flags INTERFACE
  -Wall -Wextra -Wshadow -Wno-psabi
  # GCC 12 sees strings overlap that do not.
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>"
  # Results are the same bits everywhere only if no compiler fuses a multiply and an add.
  -ffp-contract=off
  $<$<BOOL:${MOE_WERROR}>:-Werror>)
if(MOE_SANITIZE)
  target_compile_options(moe_flags INTERFACE
    -fsanitize=${MOE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Instrumented code makes GCC see uninitialised values that are not there.
  target_compile_options(moe_flags INTERFACE "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
  target_link_options(moe_flags INTERFACE -fsanitize=${MOE_SANITIZE})
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
