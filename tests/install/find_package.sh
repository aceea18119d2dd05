# find_package(moe_permute) works, also in a copy of the installation somewhere else.
cp -a "$STAGE" moved
for prefix in "$STAGE" "$PWD/moved"; do
  build=build-$(basename "$prefix")
  cmake -S "$SOURCE/tests/install/consumer" -B "$build" -G Ninja \
    -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS="-Wall -Werror"
  cmake --build "$build"
  [[ $("$build/consumer") == ok ]]
  grep -q "^moe_permute_DIR:PATH=$prefix/" "$build/CMakeCache.txt"
done
