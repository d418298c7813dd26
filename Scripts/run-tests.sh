#!/usr/bin/env bash
# Runs every test, and says at the end once more what failed, or never ended: among a thousand lines it is not found.
set -euo pipefail
cd "$(dirname "$0")/.."

# A few thousand sockets are open at times; most shells let a process have 1,024.
open=$(ulimit -S -n)
if [ "$open" != unlimited ] && [ "$open" -lt 16384 ]; then
  ulimit -S -n 16384 2>/dev/null || ulimit -S -n "$(ulimit -H -n)"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Line by line, so that what was printed last is known where a run has to be ended. A part takes a minute, and much longer on a
# machine that has other things to do.
limited=()
if command -v stdbuf >/dev/null 2>&1; then limited+=(stdbuf -oL); fi
if command -v timeout >/dev/null 2>&1; then limited=(timeout -k 10 1500 "${limited[@]}"); fi

part() {
  ${limited[@]+"${limited[@]}"} swift test --skip-build --parallel "$@" 2>&1 | tee "$log" && return
  printf '\nWhat failed, once more:\n'
  grep -a -m 20 '✘ .* recorded an issue' "$log" | cut -c 1-300 || true
  if ! grep -aq 'Test run with .* after' "$log"; then
    echo 'What never ended:'
    awk -F '"' '/^◇ Test ".*" started/ { open[$2] = 1 } /^[✔✘➜] Test ".*" (passed|failed|with|skipped)/ { delete open[$2] }
      END { for (name in open) if (count++ < 20) print "  " name }' "$log"
  fi
  exit 1
}

# Three parts, because tests that keep every processor busy would let those that wait for a socket wait in vain.
part --skip '(\.(Disk|Killable)|^EndToEndTests)'
part --filter '\.(Disk|Killable)'
part --filter '^EndToEndTests'
