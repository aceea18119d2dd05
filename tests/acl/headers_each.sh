# Every foreign header compiles alone, as C++11 and as C99, without a warning; so does the header
# found through the folders that build instructions name.
include=$SOURCE/src/acl/include
flags=(-Wall -Wextra -Werror -pedantic -fsyntax-only
  -I "$include" -I "$include/aclnn" -I "$include/aclnnop")
headers=$(cd "$include" && find . -name '*.h' | sort)
[[ $(wc -l <<<"$headers") -ge 7 ]]
for header in $headers; do
  for name in "${header#./}" "${header##*/}"; do
    # acl/ itself is no include folder of such programs.
    [[ $name == */* || -e $include/aclnn/$name || -e $include/aclnnop/$name ]] || continue
    echo "$name"
    "$CXX" -std=c++11 "${flags[@]}" -x c++ - <<<"#include \"$name\""
    "$CC" -std=c99 "${flags[@]}" -x c - <<<"#include \"$name\""
  done
done

# Functions are functions: programs take their addresses. No header defines a name as a macro,
# include guards aside.
if grep -rn '#define' "$include" | grep -v '_H_$'; then exit 1; fi
