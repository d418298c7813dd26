#!/usr/bin/env bash
# Runs the example clients in the scenarios. Clients whose interpreter is missing are left out.
#
#   Documentation/Scenarios/check.sh .build/debug/larder-server
set -euo pipefail

server=$(realpath "$1")
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1

if command -v python3 >/dev/null 2>&1; then
  "$server" scenarios run --tap -- python3 careful.py
  "$server" scenarios run lost-reply resync -- python3 -m unittest test_careful
  # The naive client fails most: a judge that passes it judges nothing.
  naive=$("$server" scenarios run -- python3 naive.py || true)
  passed=$(grep -c '^passed' <<<"$naive" || true)
  echo "the naive client has passed $passed scenarios"
  test "$passed" -gt 0 && test "$passed" -lt 20
fi
# node:test needs version 18.
if node -e "process.exit(parseInt(process.versions.node) >= 18 ? 0 : 1)" >/dev/null 2>&1; then
  "$server" scenarios run lost-reply key-reuse captive-portal reset-mid-body unchanged-resource lost-message \
    -- node --test careful.test.mjs
fi
if curl --help all 2>/dev/null | grep -q -e --retry-all-errors; then
  "$server" scenarios run retry-after-seconds unchanged-resource lost-reply empty-reply cut-handshake stalled-handshake \
    -- ./curl.sh
fi
