# The check of the sample's 12 numbers accepts them however they are spelled, and notices a wrong or
# missing one.
check=$SOURCE/scripts/check_sample_output
must_fail() {
  if "$@"; then
    echo "should have failed: $*"
    exit 1
  fi
}
print() { printf 'mean result[0] is: %s\n' "$@" >output; }

print 1.0 1 4.000000 4 3 3 0.5 0 0.400000 0.2 0 4e-1
"$check" output
print 1 1 4 4 3 3 0.5 0 0.4 0.2 0 0.5
must_fail "$check" output
print 1 1 4 4 3 3 0.5 0 0.4 0.2 0
must_fail "$check" output
: >output
must_fail "$check" output
