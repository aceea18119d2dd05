# usage: run_examples.sh DOCUMENT
# Takes each block that starts with ```cpp runnable out of the document, compiles it as a program of
# its own and runs it. A block ```text output right after it holds what it must print.
document=$1

awk '
  /^```cpp runnable/ { n++; out = sprintf("example%02d.cc", n); next }
  /^```text output/ { if (n) out = sprintf("example%02d.expected", n); next }
  /^```/ { out = ""; next }
  out != "" { print >out }
' "$document"
# A program for the C API is built as its users build it, the others as C++ users do.
num_examples=0
for source in example*.cc; do
  program=${source%.cc}
  num_examples=$((num_examples + 1))
  echo "$document: example $num_examples"
  if grep -q '"acl' "$source"; then
    ASCEND_HOME_PATH=$STAGE/acl
    "$CXX" -std=c++11 -Wall -Werror -I "$ASCEND_HOME_PATH/include" \
      -I "$ASCEND_HOME_PATH/include/aclnn" -I "$ASCEND_HOME_PATH/include/aclnnop" "$source" \
      -o "$program" -L "$ASCEND_HOME_PATH/lib64" -lascendcl -lopapi
  else
    "$CXX" -std=c++20 -Wall -Werror -I "$STAGE/include" "$source" -o "$program" \
      -L "$STAGE/lib" -lmoe_permute
  fi
  LD_LIBRARY_PATH=$STAGE/lib:$STAGE/acl/lib64 "./$program" >"$program.output"
  if [[ -f $program.expected ]]; then diff -u "$program.expected" "$program.output"; fi
done
((num_examples > 0))
