# pkg-config knows the library, also in a copy of the installation somewhere else.
cp -a "$STAGE" moved
for prefix in "$STAGE" "$PWD/moved"; do
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  read -ra flags <<<"$(pkg-config --cflags --libs moe_permute)"
  "$CXX" -std=c++20 "$SOURCE/tests/install/consumer/main.cc" -o consumer "${flags[@]}"
  [[ $(LD_LIBRARY_PATH=$prefix/lib ./consumer) == ok ]]
  [[ $(pkg-config --modversion moe_permute) == 0.* ]]
done
