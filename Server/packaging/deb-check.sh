#!/usr/bin/env bash
# Installs a Debian package into a root directory of its own, runs what it has installed, and removes it again.
# Without dpkg, or if this user may not install, the package is only built and listed.
#
#   deb-check.sh .build/release
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
command -v dpkg-deb >/dev/null || { echo "left out: dpkg-deb is missing" && exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
package=$("$here/deb.sh" "$1" "$folder")
contents=$(dpkg-deb --contents "$package")
for path in bin/larder bin/larder-server share/man/man1/larder-server.1.gz share/larder/Fixtures share/doc/larder/copyright \
  share/bash-completion/completions/larder-server lib/systemd/user/larder-server.service; do
  grep -q " ./usr/$path" <<<"$contents" || { echo "deb-check.sh: usr/$path is missing" >&2 && exit 1; }
done
dpkg-deb --field "$package" Package Version Depends
if [ "$(id -u)" != 0 ]; then
  echo "built and listed; it is installed only as root"
  exit
fi

root=$folder/system
mkdir -p "$root/var/lib/dpkg/"{info,updates}
touch "$root/var/lib/dpkg/"{status,available}
# The root has no other packages, so that the dependencies are not there.
run=(dpkg --root="$root" --force-depends --log=/dev/null)
"${run[@]}" --install "$package" >/dev/null 2>&1
(cd "$root" && md5sum --quiet -c var/lib/dpkg/info/larder.md5sums)
"$root/usr/bin/larder-server" --version
"$root/usr/bin/larder" --version
[ "$("${run[@]}" --verify larder)" = "" ]
"${run[@]}" --purge larder >/dev/null 2>&1
left=$(find "$root/usr" -type f 2>/dev/null || true)
[ -z "$left" ] || { echo "deb-check.sh: left behind: $left" >&2 && exit 1; }
echo "installed, run and removed"
