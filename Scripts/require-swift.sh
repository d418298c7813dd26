#!/usr/bin/env bash
# Says what to do when Swift is missing or too old.
set -euo pipefail
if ! command -v swift >/dev/null 2>&1; then
  echo "Larder needs Swift 6.2 or newer, and there is no 'swift' on the PATH: https://swift.org/install" >&2
  exit 1
fi
version=$(swift --version 2>/dev/null | grep -oE 'Swift version [0-9]+\.[0-9]+' | grep -oE '[0-9]+\.[0-9]+' | head -n 1 || true)
major=${version%%.*}
minor=${version##*.}
if [ -z "$version" ] || [ "$major" -lt 6 ] || { [ "$major" -eq 6 ] && [ "$minor" -lt 2 ]; }; then
  echo "Larder needs Swift 6.2 or newer; this is ${version:-unknown}: https://swift.org/install" >&2
  exit 1
fi
