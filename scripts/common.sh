# Sourced by the other scripts: where things lie and how they speak.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache="${RIVULET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rivulet}"
libtorch="$cache/libtorch-2.15.0"
kafka="$cache/kafka-3.9.1"
python_tests="$cache/python-tests"
tools="$cache/tools"
sysroot="$cache/sysroot-aarch64"
export CCACHE_SLOPPINESS=pch_defines,time_macros # without it ccache does not keep what uses a precompiled header
# Without these a fresh clone, in another folder, never hits what another one compiled.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# ccache compares the compiler's language, too, and a container has none.
export LANG=${LANG:-C.UTF-8}
export PATH="$tools/bin:$PATH:/usr/sbin:/sbin"

# The comment that a script begins with.
usage() { sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$self"; }
# wrong_usage [WORDS]
wrong_usage() {
  if (($# > 0)); then printf 'error: %s\n' "$*" >&2; fi
  usage >&2
  exit 2
}

say() { printf '== %s\n' "$*"; }
# A dependency is not there: 69, the same number that rivulet itself uses.
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 69
}

# One compiler of a file that includes LibTorch takes 1.2 GB, so memory limits the jobs as well as processors do.
jobs() {
  local processors memory
  processors=$(nproc)
  memory=$(awk '/MemAvailable/ { print int($2 / 1200000) }' /proc/meminfo)
  if ((memory < 1)); then memory=1; fi
  echo $((processors < memory ? processors : memory))
}

# configure PRESET: CMake's own lines are shown only when it fails.
configure() {
  local log
  log=$(mktemp)
  if ! cmake --preset "$1" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    fail "CMake could not configure the preset $1"
  fi
  rm -f "$log"
}

# as_progress SECONDS: lines like "[12/384] Building ..." on stdin become one line that changes on a terminal, one every N
# seconds elsewhere. Whatever else is said there comes out when it ends in failure, which only the caller knows: it is kept in $log.
as_progress() {
  local line started=$SECONDS shown=$((SECONDS - $1)) terminal=no
  if [[ -t 1 ]]; then terminal=yes; fi
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    line="built ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} parts, $((SECONDS - started)) s"
    if [[ $terminal == yes ]]; then
      printf '\r\033[2K%s' "$line"
    elif ((SECONDS - shown >= $1)); then
      printf '%s\n' "$line"
      shown=$SECONDS
    fi
  done
  if [[ $terminal == yes ]]; then printf '\r\033[2K'; fi
}

# compile_targets PRESET TARGET...: of a preset that is configured. The compiler's own lines are shown only when it fails.
compile_targets() {
  local log status=0
  log=$(mktemp)
  cmake --build --preset "$1" --parallel "$(jobs)" --target "${@:2}" 2>&1 | as_progress 10 || status=$?
  # Of a step that failed, from there on: what was built before is nobody's question.
  if ((status != 0)); then sed -n '/^FAILED: /,$p' "$log" | grep . >&2 || cat "$log" >&2; fi
  rm -f "$log"
  return "$status"
}

# build PRESET TARGET...: configures when needed, then builds.
build() { configure "$1" && compile_targets "$@"; }

need_node_modules() {
  cmp --silent dashboards/package-lock.json dashboards/node_modules/.lock ||
    fail "dashboards/node_modules is not what dashboards/package-lock.json says: scripts/setup --for dashboards brings it"
}

# dashboards NAME ARGUMENT...: compiles what is in dashboards/ and runs one of its programs there. tsc fails on a wrong
# field of a panel.
dashboards() {
  local program=$1
  shift
  need_node_modules
  (cd dashboards && node_modules/.bin/tsc --project . && exec node "out/$program.js" "$@")
}
