#!/usr/bin/env bash
# Runs every test, and says at the end once more what failed: among a thousand lines it is not found.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT

part() {
  swift test --skip-build --parallel "$@" 2>&1 | tee "$log" && return
  printf '\nWhat failed, once more:\n'
  grep -a '✘ .* recorded an issue' "$log" | cut -c 1-300 | head -n 20
  exit 1
}

# Three parts, because tests that keep every processor busy would let those that wait for a socket wait in vain.
part --skip '(\.(Disk|Killable)|^EndToEndTests)'
part --filter '\.(Disk|Killable)'
part --filter '^EndToEndTests'
