#!/usr/bin/env bash
# Makes a Debian package of an installation: OUTPUT/larder_VERSION_ARCH.deb.
#
#   deb.sh .build/static/release .build
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
command -v dpkg-deb >/dev/null || { echo "deb.sh: dpkg-deb is missing; install the package dpkg" >&2 && exit 1; }
built=$1 output=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
umask 022

"$here/install.sh" "$built" "$folder/root/usr" >/dev/null
share=$folder/root/usr/share
gzip -9n "$share"/man/man1/*.1
mkdir -p "$share/doc/larder" "$folder/root/usr/lib/systemd/user" "$folder/root/DEBIAN"
mv "$share/larder/LICENSE" "$share/doc/larder/copyright"
# The unit of a package runs the command of the package.
sed -e 's|^# A user service.*|# A user service: systemctl --user enable --now larder-server|' -e 's|%h/.local/bin|/usr/bin|' \
  "$share/larder/larder-server.service" >"$folder/root/usr/lib/systemd/user/larder-server.service"
rm "$share/larder/larder-server.service"

version=$("$built/larder-server" --version | awk '{ print $2 }')
architecture=$(dpkg --print-architecture)
cat >"$folder/root/DEBIAN/control" <<END
Package: larder
Version: $version
Architecture: $architecture
Maintainer: The Larder authors <larder@localhost>
Installed-Size: $(du -sk "$folder/root/usr" | cut -f 1)
Depends: libc6, libgcc-s1, libstdc++6, libsqlite3-0
Recommends: zlib1g, libssl3 | libssl3t64 | libssl1.1, ca-certificates
Section: devel
Priority: optional
Description: mobile backend for local work and tests
 Serves a demo API or the routes and data of your own files, and reproduces
 the failures that a phone meets: lost replies, slow networks, expired tokens.
 The command larder measures and shows caches of the Larder SDK.
END
(cd "$folder/root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$folder/root/DEBIAN/md5sums"
mkdir -p "$output"
dpkg-deb -Zgzip --root-owner-group --build "$folder/root" "$output/larder_${version}_$architecture.deb" >/dev/null
echo "$output/larder_${version}_$architecture.deb"
