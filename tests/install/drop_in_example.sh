# examples/drop_in builds as its own CMake project, given nothing but ASCEND_HOME_PATH.
unset LD_LIBRARY_PATH ASCEND_HOME_PATH
source "$STAGE/acl/set_env.sh"
cmake -S "$SOURCE/examples/drop_in" -B build -G Ninja -DCMAKE_CXX_COMPILER="$CXX"
cmake --build build
build/drop_in >output
"$SOURCE/scripts/check_sample_output" output
