# Sourced by the scripts beside it: where things are, and how they talk.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
logs=$build/logs
mkdir -p "$logs"

jobs=$(nproc 2>/dev/null || echo 2)

say() { printf '\n== %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# run_logged NAME COMMAND...: keeps the command's noise in build/logs/NAME.log and shows the end of
# it only when the command fails.
run_logged() {
  local log=$logs/$1.log
  shift
  "$@" >"$log" 2>&1 </dev/null && return
  local code=$?
  printf 'failed (exit code %d): %s\n' "$code" "$*" >&2
  tail -n 60 "$log" >&2
  printf 'the whole log: %s\n' "$log" >&2
  return "$code"
}

passed=0
failed=0
skipped=0

# add_test_results JUNIT: adds what ctest wrote with --output-junit to the three counters. A test
# that could not be started is "notrun" there, like one that skips itself; only the latter's message
# says so, and only that is no failure.
add_test_results() {
  local junit=$1 run notrun skips total
  [[ -s $junit ]] || return 1
  total=$(grep -c '<testcase ' "$junit")
  run=$(grep '<testcase ' "$junit" | grep -c 'status="run"')
  notrun=$(grep '<testcase ' "$junit" | grep -c 'status="notrun"\|status="disabled"')
  skips=$(grep -c '<skipped message="SKIP_\|<skipped message="Disabled' "$junit")
  ((skips <= notrun)) || skips=$notrun
  passed=$((passed + run))
  skipped=$((skipped + skips))
  failed=$((failed + total - run - skips))
}

# closing_line: the result of everything, and the exit code that belongs to it. Nothing run is a
# failure: a suite that lost its tests must not look healthy.
closing_line() {
  ((passed + failed > 0)) || failed=1
  if ((skipped > 0)); then
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  else
    printf '%d passed, %d failed\n' "$passed" "$failed"
  fi
  ((failed == 0))
}

# run_ctest PRESET: runs every test of a built preset, shows what did not pass, and counts the results.
run_ctest() {
  local preset=$1 junit=$build/$1/junit.xml log=$logs/ctest-$1.log
  rm -f "$junit"
  local before=$failed code=0
  echo "running (each test in $log)"
  ctest --preset "$preset" -j "$jobs" --output-junit "$junit" >"$log" 2>&1 </dev/null || code=$?
  grep -v -E '^ *(Start +[0-9]+: |[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed +[0-9.]+ sec)' "$log" || true
  add_test_results "$junit" || true
  # ctest can fail without a failed test, for instance on a test file that is missing.
  if ((code != 0 && failed == before)) || [[ ! -s $junit ]]; then failed=$((failed + 1)); fi
}

# add_pytest_results JUNIT: adds what pytest wrote with --junit-xml to the three counters.
add_pytest_results() {
  local junit=$1 suite total errors failures skips
  [[ -s $junit ]] || return 1
  suite=$(grep -o '<testsuite [^>]*' "$junit" | head -n 1)
  attribute() { sed -n "s/.* $1=\"\([0-9]*\)\".*/\1/p" <<<"$suite"; }
  total=$(attribute tests) errors=$(attribute errors) failures=$(attribute failures)
  skips=$(attribute skipped)
  passed=$((passed + total - errors - failures - skips))
  failed=$((failed + errors + failures))
  skipped=$((skipped + skips))
}

# run_pytest NAME PYTHON ARGUMENT...: runs pytest, shows what did not pass and what was skipped and
# why, and counts the results.
run_pytest() {
  local name=$1 python=$2 junit=$build/pytest-$1.xml log=$logs/pytest-$1.log
  shift 2
  rm -f "$junit"
  local before=$failed code=0
  echo "running (each test in $log)"
  "$python" -m pytest -v -rs --tb=short --junit-xml "$junit" "$@" >"$log" 2>&1 </dev/null || code=$?
  grep -v -E ' PASSED +\[ *[0-9]+%\]$' "$log" || true
  add_pytest_results "$junit" || true
  if ((code != 0 && failed == before)) || [[ ! -s $junit ]]; then failed=$((failed + 1)); fi
}
