#!/usr/bin/env bash
# Tests scripts/mutants with a project of one program and planted mutations: each kind of result, and an unchanged
# working tree.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
project=$(mktemp --directory)
trap 'rm --recursive "$project"' EXIT
mkdir -p "$project/scripts" "$project/tests/mutations"
cp "$source_dir/scripts/common.sh" "$source_dir/scripts/mutants" "$project/scripts/"
cp "$source_dir/CMakePresets.json" "$source_dir/.gitignore" "$project/"
cd "$project"
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(planted CXX)
add_executable(unit_planted program.cpp)
add_executable(unit_other other.cpp)
END
cat >program.cpp <<'END'
// Ends with 0 if one and one are two.
int one() { return 1; }
int main() { return one() + one() == 2 ? 0 : 1; }
END
echo 'int main() { return 0; }' >other.cpp

# plant NAME "FIRST LINE" OLD NEW
plant() {
  local patch=tests/mutations/$1.patch
  sed "s/$3/$4/" program.cpp >mutated.cpp
  { echo "$2" && { diff --unified --label a/program.cpp --label b/program.cpp program.cpp mutated.cpp || true; }; } >"$patch"
  rm mutated.cpp
}
plant dies '# kills: unit_other unit_planted -tc=Sums: *' 'return 1;' 'return 2;'
plant changes_nothing '# kills: unit_planted' 'Ends with 0' 'Returns 0'
plant stale '# kills: unit_planted' 'return 1;' 'return 2;'
sed --in-place 's/return 1;/return 7;/' tests/mutations/stale.patch
plant no_code '# kills: unit_planted' 'return 1;' 'return one two;'
git init --quiet . && git add .
before=$(git ls-files -z | xargs --null sha256sum)

failed=0
# ends CODE "WORDS" NAME...
ends() {
  local code=$1 words=$2 out status=0
  shift 2
  out=$(scripts/mutants "$@" 2>&1) || status=$?
  if ((status != code)) || [[ ! $out =~ $words ]]; then
    printf '%s\nscripts/mutants %s: ended with %d, not with %d and: %s\n' "$out" "$*" "$status" "$code" "$words"
    failed=1
  fi
}
ends 0 'dies +killed by unit_planted -tc=Sums: \*.*killed 1 of 1' dies
ends 1 'changes_nothing +SURVIVED.*killed 0 of 1' changes_nothing
ends 1 'stale +DOES NOT APPLY: error: patch failed: program.cpp.*killed 0 of 1' stale
ends 1 'no_code +DOES NOT COMPILE: .*error:.*killed 0 of 1' no_code
ends 1 'killed 1 of 4'
ends 2 'tests/mutations/unknown.patch does not exist' unknown
if [[ $(git ls-files -z | xargs --null sha256sum) != "$before" || -n $(git diff) ]]; then
  echo "scripts/mutants changed the working tree" && failed=1
fi
sed --in-place 's/== 2/== 3/' program.cpp # fails without a mutation
ends 1 'unit_planted .* fails without a mutation' dies
sed --in-place '1s/.*/# nothing/' tests/mutations/dies.patch
ends 69 'dies.patch does not begin with: # kills:' dies
exit "$failed"
