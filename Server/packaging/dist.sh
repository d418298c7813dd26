#!/usr/bin/env bash
# Packs an installation: .build/larder-VERSION-ARCH.tar.gz, to be unpacked into any prefix.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$("$1/larder-server" --version | awk '{ print $2 }')
name=larder-$version-$(uname -m)
folder=$PWD/.build/dist/$name
rm -rf .build/dist
mkdir -p "$folder"
Server/packaging/install.sh "$1" "$folder" >/dev/null
tar -C .build/dist --owner=0 --group=0 -czf ".build/$name.tar.gz" "$name"
rm -rf .build/dist
echo ".build/$name.tar.gz"
