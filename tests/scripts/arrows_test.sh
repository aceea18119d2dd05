# scripts/check_arrows accepts this repository and finds each kind of violation planted in a
# copy of its public headers (of all of it the check would take long).
"$SOURCE/scripts/check_arrows"

# plant FILE INCLUDE: expects the check to complain about exactly that line.
plant() {
  local file=$1 include=$2 output
  rm -rf tree
  mkdir tree
  cp -a "$SOURCE/include" tree/
  mkdir -p "tree/$(dirname "$file")"
  printf '\n  #  include %s\n' "$include" >>"tree/$file"
  if output=$("$SOURCE/scripts/check_arrows" "$PWD/tree"); then
    echo "not found: $file including $include"
    exit 1
  fi
  [[ $(grep -c "^$file:$(wc -l <"tree/$file"):" <<<"$output") == 1 ]] || { echo "$output"; exit 1; }
}

plant include/moe/tensor.h '"core/threads.h"'
plant src/core/new.cc '"ops/permute_with_ep_grad.h"'
plant src/ops/new.cc '"cpu/permute_with_ep_grad.h"'
plant src/cpu/new.cc '"acl/runtime/stream.h"'
plant src/cpu/new.cc '"cuda/permute_with_ep_grad.h"'
plant src/acl/new.cc '"core/threads.h"'
plant src/acl/include/acl/new.h '"moe/tensor.h"'
plant src/acl/runtime/new.cc '<ops/permute_with_ep_grad.h>'
plant src/mpi/new.cc '"core/threads.h"'
plant bench/new.cc '"core/threads.h"'
plant bench/floor/new.cc '"ops/permute_with_ep_grad.h"'
plant tools/new.cc '"cpu/permute_with_ep_grad.h"'
plant examples/new/main.cc '"core/threads.h"'
plant tests/ref/new.cc '"moe/tensor.h"'

# The same includes where they belong are no violations.
rm -rf tree
mkdir -p tree/src/{core,ops,cpu,acl} tree/bench/floor
echo '#include "core/threads.h"' | tee tree/src/ops/a.cc tree/src/cpu/a.cc tree/bench/floor/a.cc >tree/src/core/a.cc
echo '#include "cpu/permute_with_ep_grad.h"' >tree/src/backends.cc
echo '#include "moe/tensor.h"' >tree/src/acl/a.cc
"$SOURCE/scripts/check_arrows" "$PWD/tree"

# An empty tree is a mistake of the caller, not a clean one.
mkdir empty
if "$SOURCE/scripts/check_arrows" "$PWD/empty"; then exit 1; fi
