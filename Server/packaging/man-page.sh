#!/usr/bin/env bash
# Prints the manual page of a command, made from its help.
#
#   man-page.sh larder-server .build/release/larder-server > larder-server.1
set -euo pipefail
name=$1 command=$2
version=$("$command" --version)

"$command" --help | awk -v name="$name" -v version="$version" '
  function escaped(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); if (text ~ /^[.'"'"']/) text = "\\&" text; return text }
  NR == 1 {
    split($0, parts, / — |: /)
    printf ".TH %s 1 \"\" \"%s\" \"Larder\"\n.SH NAME\n%s \\- %s\n", toupper(name), version, name, parts[2]
    next
  }
  /^[A-Z][A-Z ]*(  .*)?$/ { print ".SH " escaped($0); print ".nf"; next }
  /^[^ ]/ { print ".PP"; print escaped($0); next }
  { print escaped($0) }'
