# The drop-in library exports exactly the functions of the list, unmangled.
nm -D --defined-only "$STAGE/acl/lib64/libascendcl.so" | awk '{ print $NF }' | sort -u >exported
grep -v -E '^(#|$)' "$SOURCE/tests/install/drop_in_symbols.txt" | sort -u >listed
diff --label listed --label exported -u listed exported
