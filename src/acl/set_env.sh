# usage: source set_env.sh
#
# Points the environment at the folder this file lies in. Bash and zsh say where that is; other
# shells have the file open while they read it, and where even that cannot be seen (no /proc), it
# has to be the current folder or ASCEND_HOME_PATH.
if [ -n "${BASH_SOURCE:-}" ]; then
  _moe_acl_file=$BASH_SOURCE
elif [ -n "${ZSH_VERSION:-}" ]; then
  _moe_acl_file=$(eval 'echo "${(%):-%x}"')
else
  _moe_acl_file=${ASCEND_HOME_PATH:-.}/set_env.sh
  [ ! -e ./lib64/libascendcl.so ] || _moe_acl_file=./set_env.sh
  for _moe_acl_open in "/proc/$$/fd"/*; do
    _moe_acl_open=$(readlink "$_moe_acl_open" || true)
    case $_moe_acl_open in */set_env.sh) _moe_acl_file=$_moe_acl_open ;; esac
  done
  unset _moe_acl_open
fi
_moe_acl_home=$(CDPATH='' cd -- "$(dirname -- "$_moe_acl_file")" && pwd -P)
if [ -n "$_moe_acl_home" ] && [ -e "$_moe_acl_home/lib64/libascendcl.so" ]; then
  export ASCEND_HOME_PATH="$_moe_acl_home"
  export LD_LIBRARY_PATH="$_moe_acl_home/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
else
  echo "set_env.sh: no lib64/libascendcl.so beside $_moe_acl_file" >&2
fi
unset _moe_acl_file _moe_acl_home
