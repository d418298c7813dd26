#!/usr/bin/env bash
# Builds every test with a sanitizer in a directory of its own, and runs the suites and the simulation's first seeds.
#
#     Scripts/sanitize.sh address|thread|all [FILTER]
#
# FILTER is a regular expression for suites, as for `swift test --filter`. SEEDS is the number of simulations, 200 by default.
# The exit code is 1 if a test fails or the sanitizer reports anything.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-all}
filter=${2:-.}
case $kind in
all)
  "$0" address "$filter"
  "$0" thread "$filter"
  exit
  ;;
address | thread) ;;
*)
  echo "Scripts/sanitize.sh address|thread|all [FILTER]; got '$kind'." >&2
  exit 2
  ;;
esac

scratch=.build/sanitize-$kind
reports=$scratch/reports
Scripts/build.sh --build-tests --sanitize "$kind" --scratch-path "$scratch" 2>&1 | grep -v "Cannot export local symbol"
rm -rf "$reports" && mkdir -p "$reports"

# Threads run at once, as they do in an app.
export LARDER_ORDER_SEED=off
# The runtime keeps metadata for ever, so leaks are not looked for; its backtracer would delay each report.
export SWIFT_BACKTRACE=enable=no LARDER_TEST_TIME_FACTOR=${LARDER_TEST_TIME_FACTOR:-10}
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-$(nproc)}
export ASAN_OPTIONS=detect_leaks=0:log_path=$PWD/$reports/report
export TSAN_OPTIONS=suppressions=$PWD/Tests/Sanitizing/thread.txt:log_path=$PWD/$reports/report
preload=
if [ "$kind" = thread ]; then
  # See MutexAnnotations.c: the sanitizer does not see a contended Mutex.
  preload=$PWD/$scratch/libmutex.so
  clang -Wall -O1 -shared -fPIC -o "$preload" Tests/Sanitizing/MutexAnnotations.c
fi
ulimit -S -n 16384 2>/dev/null || true

failed=0
LD_PRELOAD=$preload timeout -k 10 3600 "$scratch/debug/larderPackageTests.xctest" --testing-library swift-testing --filter "$filter" || failed=1
if [ "$filter" = . ] && [ "$kind" = address ]; then
  # The thread sanitizer replaces functions that the simulation replaces too.
  timeout -k 10 3600 "$scratch/debug/simulate" --seeds "${SEEDS:-200}" --jobs "$(nproc)" || failed=1
fi
count=$(cat "$reports"/* 2>/dev/null | grep -c '^SUMMARY' || true)
echo "$kind sanitizer: $count reports"
if [ "$count" != 0 ]; then
  grep -h '^SUMMARY' "$reports"/* | sort | uniq -c | sort -rn | head -40
  echo "The reports are in $reports."
  failed=1
fi
exit $failed
