#!/usr/bin/env bash
# Installs SQLite's headers with apt, or names the package for other systems.
set -euo pipefail
[ "$(uname)" = Darwin ] && exit 0
for directory in /usr/include /usr/local/include; do [ -f "$directory/sqlite3.h" ] && exit 0; done
if command -v apt-get >/dev/null 2>&1; then
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "Install libsqlite3-dev as root: apt-get install libsqlite3-dev" >&2; exit 1; }
    as_root=sudo
  fi
  echo "Installing libsqlite3-dev …" >&2
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q libsqlite3-dev >/dev/null 2>&1 || {
    $as_root apt-get update -q >/dev/null
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q libsqlite3-dev >/dev/null
  }
  exit 0
fi
echo "SQLite's headers are missing. Install one of: dnf install sqlite-devel · apk add sqlite-dev · pacman -S sqlite · brew install sqlite" >&2
exit 1
