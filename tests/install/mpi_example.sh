# examples/expert_parallel_mpi builds against the installation, and agrees with one rank on any number.
# usage: mpi_example.sh MPIEXEC...
cmake -S "$SOURCE/examples/expert_parallel_mpi" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_PREFIX_PATH="$STAGE" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wshadow -Werror"
cmake --build build
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export MOE_NUM_THREADS=1
for ranks in 1 2 3 5; do
  timeout 120 "$@" "$ranks" build/expert_parallel_mpi | tee "$ranks.log"
  [[ $(grep -c " on $ranks ranks: outputs and gradients are one rank's" "$ranks.log") == 2 ]]
done

# libmoe_permute_mpi exports names of namespace moe and nothing else.
nm -D --defined-only -C "$STAGE/lib/libmoe_permute_mpi.so" | cut -d' ' -f3- >symbols
grep -q '^moe::mpi::ExpertExchange::route(' symbols
others=$(grep -v -E '^(moe::mpi::(ExpertExchange|RoutedTokens)::|(typeinfo|typeinfo name|vtable) for moe::)' symbols || true)
[[ -z $others ]] || { printf 'exported besides:\n%s\n' "$others"; exit 1; }
