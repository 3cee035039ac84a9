# Sourced by the other scripts: paths, messages and builds.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache="${RIVULET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rivulet}"
libtorch="$cache/libtorch-2.15.0"
kafka="$cache/kafka-3.9.1"
python_tests="$cache/python-tests"
tools="$cache/tools"
sysroot="$cache/sysroot-aarch64"
export CCACHE_SLOPPINESS=pch_defines,time_macros # without it ccache does not cache users of a precompiled header
# Without these a clone in another folder gets no cache hits.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# ccache also compares the compiler's locale, and a container has none.
export LANG=${LANG:-C.UTF-8}
export PATH="$tools/bin:$PATH:/usr/sbin:/sbin"

# Prints the comment at the top of the script.
usage() { sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$self"; }
# wrong_usage [WORDS]
wrong_usage() {
  if (($# > 0)); then printf 'error: %s\n' "$*" >&2; fi
  usage >&2
  exit 2
}

say() { printf '== %s\n' "$*"; }
# A missing dependency: exits with 69, as rivulet itself does.
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 69
}

# Compiling a file that includes LibTorch takes 1.2 GB, so memory limits the jobs, too.
jobs() {
  local processors memory
  processors=$(nproc)
  memory=$(awk '/MemAvailable/ { print int($2 / 1200000) }' /proc/meminfo)
  if ((memory < 1)); then memory=1; fi
  echo $((processors < memory ? processors : memory))
}

# configure PRESET: shows CMake's output only if it fails.
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

# as_progress SECONDS: lines like "[12/384] Building ..." on stdin become one line that is updated on a terminal, and one
# line every N seconds elsewhere. Keeps all input in $log, for the caller to print after a failure.
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

# compile_targets PRESET TARGET...: for a configured preset. Shows the compiler's output only if it fails.
compile_targets() {
  local log status=0
  log=$(mktemp)
  cmake --build --preset "$1" --parallel "$(jobs)" --target "${@:2}" 2>&1 | as_progress 10 || status=$?
  # Omits the output of steps before the failed one.
  if ((status != 0)); then sed -n '/^FAILED: /,$p' "$log" | grep . >&2 || cat "$log" >&2; fi
  rm -f "$log"
  return "$status"
}

# build PRESET TARGET...: configures, then builds.
build() { configure "$1" && compile_targets "$@"; }

need_node_modules() {
  cmp --silent dashboards/package-lock.json dashboards/node_modules/.lock ||
    fail "dashboards/node_modules does not match dashboards/package-lock.json: run scripts/setup --for dashboards"
}

# dashboards NAME ARGUMENT...: compiles dashboards/ and runs one of its programs there. tsc fails on a wrong field of a
# panel.
dashboards() {
  local program=$1
  shift
  need_node_modules
  (cd dashboards && node_modules/.bin/tsc --project . && exec node "out/$program.js" "$@")
}
