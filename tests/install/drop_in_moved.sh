# A copy of the drop-in tree elsewhere compiles, links (by path and by -l name) and runs a program.
mkdir elsewhere
cp -a "$STAGE/acl" elsewhere/toolkit
unset LD_LIBRARY_PATH ASCEND_HOME_PATH
source elsewhere/toolkit/set_env.sh
[[ $ASCEND_HOME_PATH == "$PWD/elsewhere/toolkit" ]]

includes=(-I "$ASCEND_HOME_PATH/include" -I "$ASCEND_HOME_PATH/include/aclnn"
  -I "$ASCEND_HOME_PATH/include/aclnnop")
lib=$ASCEND_HOME_PATH/lib64
program=("$CXX" -std=c++11 "${includes[@]}" "$SOURCE/examples/drop_in/main.cc")
"${program[@]}" -o by_path "$lib/libascendcl.so" "$lib/libnnopbase.so" "$lib/libopapi.so"
"${program[@]}" -o by_name -L "$lib" -lascendcl -lnnopbase -lopapi -lopapi_transformer
"${program[@]}" -o by_runtime_name -L "$lib" -lacl_rt -lopapi
for name in by_path by_name by_runtime_name; do
  for mode in MOE_ACL_LAUNCH_BLOCKING=0 MOE_ACL_LAUNCH_BLOCKING=1 MOE_ACL_GUARD=1 MOE_ACL_GUARD=2; do
    echo "$name, $mode"
    env "$mode" "./$name" >output
    "$SOURCE/scripts/check_sample_output" output
  done
  # Not in a pipe, which grep may leave before ldd has written all: that would be a failure.
  ldd "./$name" >libraries
  grep -q "libascendcl.so.* => $PWD/elsewhere/toolkit/lib64/" libraries
done
