# The library built as an archive brings what it needs to a program, through CMake and pkg-config.
# Unoptimised: only linking is in question.
cmake -S "$SOURCE" -B library -G Ninja -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_BUILD_TYPE=Debug \
  -DBUILD_SHARED_LIBS=OFF -DMOE_BUILD_ACL=OFF -DMOE_BUILD_MPI=OFF -DMOE_BUILD_TESTS=OFF -DMOE_BUILD_BENCH=OFF \
  -DCMAKE_INSTALL_PREFIX="$PWD/prefix"
cmake --build library --target install
[[ -f prefix/lib/libmoe_permute.a ]]

cmake -S "$SOURCE/tests/install/consumer" -B consumer -G Ninja -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_PREFIX_PATH="$PWD/prefix"
cmake --build consumer
[[ $(consumer/consumer) == ok ]]

export PKG_CONFIG_PATH=$PWD/prefix/lib/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs moe_permute)"
"$CXX" -std=c++20 "$SOURCE/tests/install/consumer/main.cc" -o program "${flags[@]}"
[[ $(./program) == ok ]]
