# examples/moe_layer builds against the installation, trains to a falling loss that is the same on one
# rank and on four, and its gradients agree with finite differences.
cmake -S "$SOURCE/examples/moe_layer" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_PREFIX_PATH="$STAGE" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wshadow -Werror"
cmake --build build
build/moe_layer
build/moe_layer --check
