#!/usr/bin/env bash
# Runs every test and lists the failed and the unfinished tests at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

# The tests open a few thousand sockets; most shells limit a process to 1,024 files.
open=$(ulimit -S -n)
if [ "$open" != unlimited ] && [ "$open" -lt 16384 ]; then
  ulimit -S -n 16384 2>/dev/null || ulimit -S -n "$(ulimit -H -n)"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Few tests run at once, so that a time limit measures the test and not the wait for a processor, and few files are open. The limit
# is one minute times a factor that grows with the load average.
cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
if swift test --help-hidden | grep maximum-parallelization-width >/dev/null; then
  export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-$((cores + 2))}
fi
if [ -z "${LARDER_TEST_TIME_FACTOR:-}" ] && [ -n "${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-}" ]; then
  load=$(uptime | sed -E 's/.*load averages?: *([0-9]+).*/\1/')
  export LARDER_TEST_TIME_FACTOR=$((2 + load / cores))
fi

# Output is line-buffered, so that the last line of a run that is terminated shows its position.
limited=()
if command -v stdbuf >/dev/null 2>&1; then limited+=(stdbuf -oL); fi
if command -v timeout >/dev/null 2>&1; then limited=(timeout -k 10 1500 "${limited[@]}"); fi

part() {
  ${limited[@]+"${limited[@]}"} swift test --skip-build --parallel "$@" 2>&1 | tee "$log" && return
  printf '\nFailed tests:\n'
  grep -a -m 20 '✘ .* recorded an issue' "$log" | cut -c 1-300 || true
  if ! grep -aq 'Test run with .* after' "$log"; then
    echo 'Unfinished tests:'
    awk -F '"' '/^◇ Test ".*" started/ { open[$2] = 1 } /^[✔✘➜] Test ".*" (passed|failed|with|skipped)/ { delete open[$2] }
      END { for (name in open) if (count++ < 20) print "  " name }' "$log"
  fi
  exit 1
}

# Four parts: the disk tests use every processor, the end-to-end tests start processes, and the scripted visits move a clock when the
# client is at rest, which they cannot judge while other tests use the processors.
part --skip '(\.(Disk|Killable)|^EndToEndTests)'
part --filter '\.(Disk|Killable)'
part --filter '^EndToEndTests' --skip '\.(Conduct|TenActions)'
SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=1 part --filter '^EndToEndTests\.(Conduct|TenActions)'
