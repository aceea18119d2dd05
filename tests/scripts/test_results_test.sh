# The closing line counts what ctest really reported, and no test at all is a failure.
source "$SOURCE/scripts/common.sh"

# result_of XML: the closing line and the exit code for one JUnit report.
result_of() {
  passed=0 failed=0 skipped=0
  printf '%s\n' "$1" >junit.xml
  add_test_results junit.xml || true
  local code=0
  closing_line || code=$?
  echo "exit $code"
}
expect() {
  local got
  got=$(result_of "$1")
  [[ $got == "$2" ]] || { printf 'got:\n%s\nwant:\n%s\n' "$got" "$2"; exit 1; }
}

run='<testcase name="a" classname="a" time="0" status="run"></testcase>'
fail='<testcase name="b" classname="b" time="0" status="fail">
<failure message=""/></testcase>'
absent='<testcase name="c" classname="c" time="0" status="notrun">
<skipped message="Unable to find executable"/></testcase>'
skip='<testcase name="d" classname="d" time="0" status="notrun">
<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'

expect "$run
$run" $'2 passed, 0 failed\nexit 0'
expect "$run
$fail" $'1 passed, 1 failed\nexit 1'
expect "$run
$absent" $'1 passed, 1 failed\nexit 1'
expect "$run
$skip" $'1 passed, 0 failed, 1 skipped\nexit 0'
expect "$skip" $'0 passed, 1 failed, 1 skipped\nexit 1'
expect '' $'0 passed, 1 failed\nexit 1'

# The same for what pytest writes.
pytest_result_of() {
  passed=0 failed=0 skipped=0
  printf '<testsuites><testsuite name="pytest" %s time="1"><testcase/></testsuite></testsuites>' "$1" >pytest.xml
  add_pytest_results pytest.xml || true
  closing_line || true
}
[[ $(pytest_result_of 'errors="1" failures="2" skipped="3" tests="10"') == '4 passed, 3 failed, 3 skipped' ]]
[[ $(pytest_result_of 'errors="0" failures="0" skipped="0" tests="7"') == '7 passed, 0 failed' ]]
[[ $(pytest_result_of 'errors="0" failures="0" skipped="0" tests="0"') == '0 passed, 1 failed' ]]
