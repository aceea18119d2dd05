#!/usr/bin/env bash
# usage: in_empty_folder.sh FOLDER COMMAND...
set -euo pipefail
rm -rf "$1"
mkdir -p "$1"
cd "$1"
shift
exec "$@"
