# Sourced by tests of dashboards/: a copy of what they read, in which one thing is broken.
set -euo pipefail
repository=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT

# plant FILE SED-SCRIPT: a fresh copy; the script must change the file.
plant() {
  rm -rf "${planted:?}"/*
  mkdir -p "$planted/core" "$planted/scripts"
  cp "$repository/core/metrics.def" "$planted/core"
  cp "$repository/scripts/common.sh" "$planted/scripts"
  (cd "$repository" && tar --create --exclude=node_modules dashboards) | tar --extract --directory "$planted"
  ln -s "$repository/dashboards/node_modules" "$planted/dashboards/node_modules"
  sed --in-place "$2" "$planted/$1"
  if cmp --silent "$planted/$1" "$repository/$1"; then
    echo "nothing was planted in $1" >&2
    exit 1
  fi
}

# must_fail WORDS CHECK-ARGUMENT...: dashboards/check finds it and says so.
must_fail() { "$repository/tests/canary/expect_failure.sh" "$1" "$planted/dashboards/check" "${@:2}"; }
