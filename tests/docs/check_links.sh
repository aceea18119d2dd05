# usage: check_links.sh DOCUMENT...
# Every relative link of the documents leads to a file.
num_links=0
bad=0
for document in "$@"; do
  folder=${document%/*}
  while IFS= read -r link; do
    num_links=$((num_links + 1))
    [[ -e $folder/${link%%#*} ]] || { echo "$document: no $link"; bad=$((bad + 1)); }
  done < <(grep -oE '\]\([^)#][^)]*\)' "$document" | sed -E 's/^\]\((.*)\)$/\1/' |
    grep -vE '^(https?|mailto):' || true)
done
echo "$num_links links, $bad lead nowhere"
((num_links > 0 && bad == 0))
