# libmoe_permute exports names of namespace moe and nothing else, and its parts stay inside.
nm -D --defined-only -C "$STAGE/lib/libmoe_permute.so" | cut -d' ' -f3- >symbols
grep -q '^moe::PermuteWithEpGrad::plan(' symbols
others=$(grep -v -E '^((typeinfo|typeinfo name|vtable) for )?moe::[A-Za-z_~]' symbols || true)
[[ -z $others ]] || { printf 'exported besides:\n%s\n' "$others"; exit 1; }

# Every function that is exported has to stand in a public header.
functions=$(grep -v ' for moe::' symbols | sed -E 's/\(.*//; s/\[abi:[^]]*\]//; s/.*:://; s/^~//' |
  sort -u)
for name in $functions; do
  grep -rqw -- "$name" "$STAGE/include/moe" || { echo "exported, but in no header: $name"; exit 1; }
done
