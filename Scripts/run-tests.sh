#!/usr/bin/env bash
# Runs every test and lists the failed and the unfinished tests at the end.
#
#     Scripts/run-tests.sh              in three processes
#     Scripts/run-tests.sh FIRST LAST   once for each seed
#
# The tests are those of the debug build, or of the directory LARDER_TEST_BUILD.
# The jobs of a test process run one at a time, in an order that LARDER_ORDER_SEED decides (Tests/OrderedJobs), and so do its tests.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${LARDER_TEST_BUILD:-.build/debug}/larderPackageTests.xctest

# The tests open a few thousand sockets; most shells limit a process to 1,024 files.
open=$(ulimit -S -n)
if [ "$open" != unlimited ] && [ "$open" -lt 16384 ]; then
  ulimit -S -n 16384 2>/dev/null || ulimit -S -n "$(ulimit -H -n)"
fi
# Thousands of commits wait for the disk otherwise.
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
# The limit of a test is one minute times a factor that grows with the load average.
cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
load=$(uptime | sed -E 's/.*load averages?: *([0-9]+).*/\1/')
export LARDER_TEST_TIME_FACTOR=${LARDER_TEST_TIME_FACTOR:-$((2 + load / cores))}
# Tests run one after another anyway; this way their lines do, too.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=1

logs=.build/tests
rm -rf "$logs"
mkdir -p "$logs"
limited=()
if command -v timeout >/dev/null 2>&1; then limited=(timeout -k 10 $((750 * LARDER_TEST_TIME_FACTOR))); fi

# Runs tests in a process: the name of its log, the seed, and the options that choose the tests.
part() {
  local log=$logs/$1 seed=$2
  shift 2
  LARDER_ORDER_SEED=$seed ${limited[@]+"${limited[@]}"} "$binary" --testing-library swift-testing "$@" >"$log" 2>&1 && {
    echo "seed $seed: $(grep -a 'Test run with' "$log" | tail -1)"
    return
  }
  printf 'Failed; repeat with LARDER_ORDER_SEED=%s swift test --skip-build --filter NAME; the whole output is %s\n' "$seed" "$log"
  grep -a -m 20 '✘ .* recorded an issue' "$log" | cut -c 1-300 || true
  if ! grep -aq 'Test run with .* after' "$log"; then
    echo 'Unfinished tests:'
    awk -F '"' '/^[^ ]*◇[^ ]* Test ".*" started/ { open[$2] = 1 } /^[^ ]*[✔✘➜][^ ]* Test ".*" (passed|failed|with|skipped)/ { delete open[$2] }
      END { for (name in open) if (count++ < 20) print "  " name }' "$log"
    grep -a -m 5 -E 'Fatal error|Program crashed|Jobs are ready' "$log" || true
  fi
  touch "$logs/failed"
}

# The tests of the first part wait for other processes most of the time.
waiting='EndToEnd'
computing='LarderServer|LarderEngine|LarderCoding|LarderStorage|LarderImages'
seeds=${LARDER_ORDER_SEED:-1}
if [ $# = 2 ]; then seeds=$(seq "$1" "$2"); fi
for seed in $seeds; do
  part "$seed-first" "$seed" --filter "^($waiting)Tests\." &
  part "$seed-second" "$seed" --filter "^($computing)Tests\." &
  part "$seed-third" "$seed" --skip "^($waiting|$computing)Tests\." &
  wait
done
[ ! -e "$logs/failed" ]
