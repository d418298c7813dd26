#!/usr/bin/env bash
# Exits with a message if Swift is missing or older than 6.2.
set -euo pipefail
if ! command -v swift >/dev/null 2>&1; then
  echo "Larder needs Swift 6.2 or newer. 'swift' is not on the PATH. Install it: https://swift.org/install" >&2
  exit 1
fi
version=$(swift --version 2>/dev/null | grep -oE 'Swift version [0-9]+\.[0-9]+' | grep -oE '[0-9]+\.[0-9]+' | head -n 1 || true)
major=${version%%.*}
minor=${version##*.}
if [ -z "$version" ] || [ "$major" -lt 6 ] || { [ "$major" -eq 6 ] && [ "$minor" -lt 2 ]; }; then
  echo "Larder needs Swift 6.2 or newer. The version on the PATH is ${version:-unknown}. Update it: https://swift.org/install" >&2
  exit 1
fi
