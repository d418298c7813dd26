#!/usr/bin/env bash
# Makes the documentation site of every product from a finished debug build: Scripts/docs.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
site=${1:?usage: Scripts/docs.sh DIRECTORY}
modules=.build/debug/Modules
work=.build/docs-work
products=(LarderResources LarderHTTPCache LarderTransport LarderMemory LarderStorage LarderImages LarderDevice LarderTelemetry
  LarderEvents LarderHTTP LarderTime LarderTLS LarderDemo LarderModels LarderTesting LarderServer LarderBackend
  Larder)

command -v docc >/dev/null 2>&1 || {
  echo "docs: the command docc is missing; it is part of the Swift toolchain" >&2
  exit 1
}
rm -rf "$work" "$site"
mkdir -p "$work"
# The catalog, with what the repository shows too.
cp -r Documentation/Larder.docc "$work/Larder.docc"
cp Documentation/Reliability.md Documentation/images/dashboard.png Documentation/images/idea.svg "$work/Larder.docc/"
# The articles link as the repository shows them. On the site, articles and pictures are beside each other, and other files are only named.
sed -i -E -e 's/\]\(\.\.\/images\//](/g' -e 's/\]\((\.\.\/)?([A-Za-z]+)\.md(#[^)]*)?\)/](doc:\2)/g' \
  -e 's/\[([^]]*)\]\(\.\.\/[^)]*\)/\1/g' "$work"/Larder.docc/*.md
archives=()
for product in "${products[@]}"; do
  mkdir -p "$work/$product"
  swift symbolgraph-extract -module-name "$product" -I "$modules" -I Shared/CSQLite -I Server/CSystem -I Server/CDocuments/include \
    -target "$(uname -m)-unknown-linux-gnu" -output-dir "$work/$product" -minimum-access-level public -skip-inherited-docs
  catalog=()
  [ "$product" = Larder ] && catalog=("$work/Larder.docc")
  # Links from one archive to another are resolved through --dependency.
  dependencies=()
  if [ "$product" = Larder ]; then
    for archive in "${archives[@]}"; do dependencies+=(--dependency "$archive"); done
  fi
  docc convert "${catalog[@]}" --additional-symbol-graph-dir "$work/$product" --fallback-display-name "$product" \
    --fallback-bundle-identifier "larder.$product" --output-path "$work/$product.doccarchive" \
    --enable-experimental-external-link-support "${dependencies[@]}" 2>&1 | tee -a "$work/log"
  archives+=("$work/$product.doccarchive")
done
docc merge "${archives[@]}" --synthesized-landing-page-name Larder --synthesized-landing-page-topics-style list --output-path "$site"
echo "docs: $(grep -c 'warning:' "$work/log" || true) warnings; the site is in $site"
