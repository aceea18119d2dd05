# The drop-in tree has the shape that build instructions expect: one library, the others links to it.
tree=$STAGE/acl
for header in acl/acl.h acl/acl_base.h acl/acl_rt.h aclnn/acl_meta.h aclnn/aclnn_base.h \
  aclnnop/aclnn_moe_token_permute{,_grad,_with_ep,_with_ep_grad}.h; do
  [[ -f $tree/include/$header ]] || { echo "missing: include/$header"; exit 1; }
done
[[ -f $tree/set_env.sh ]]

real=$(readlink -f "$tree/lib64/libascendcl.so")
for name in libascendcl libnnopbase libopapi libopapi_transformer libacl_rt; do
  [[ $(readlink -f "$tree/lib64/$name.so") == "$real" ]] || { echo "$name.so leads elsewhere"; exit 1; }
done
soname() { readelf -d "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'; }
[[ $(soname "$real") == libascendcl.so* ]]
[[ -e $tree/lib64/$(soname "$real") ]]

# Self-contained: what it needs from outside is the system's, oneTBB and Highway.
readelf -d "$real" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >needed
others=$(grep -v -E '^(libtbb|libhwy|libstdc\+\+|libgcc_s|libc|libm|libpthread|ld-linux.*)\.so' needed || true)
[[ -z $others ]] || { printf 'needs besides:\n%s\n' "$others"; exit 1; }
# A path of the build machine in it would break a moved copy.
if readelf -d "$real" | grep -E 'RPATH|RUNPATH' | grep -v ORIGIN; then exit 1; fi
