#!/usr/bin/env bash
# remembered.sh FOLDER: what check.sh says. Its answer depends on nothing but the files beside it and the tools, so
# what has passed is kept in FOLDER under a hash of all of them, as ccache keeps objects, and shown again.
# RIVULET_FULL=1 always checks.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
key=$({ cat "$here"/*.pml "$here"/*.sh && spin -V && cc --version; } | sha256sum | cut -d ' ' -f 1)
kept=$1/$key
if [[ ${RIVULET_FULL-} != 1 && -e $kept ]]; then
  echo "checked before, and nothing has changed since:"
  cat "$kept"
  exit 0
fi
mkdir -p "$1"
"$here/check.sh" | tee "$kept.new"
mv "$kept.new" "$kept"
