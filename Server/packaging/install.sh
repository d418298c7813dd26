#!/usr/bin/env bash
# Installs or removes both commands, the fixtures, manual pages, completions and the example of a systemd unit.
#
#   install.sh .build/static/release /usr/local
#   install.sh --remove /usr/local
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
built=$1 prefix=$2
case $prefix in
/?*) ;;
*) echo "install.sh: PREFIX must be an absolute path, not '$prefix'" >&2 && exit 2 ;;
esac

remove() {
  rm -f "$prefix"/bin/larder{,-server} "$prefix"/share/man/man1/larder{,-server}.1
  rm -f "$prefix"/share/bash-completion/completions/larder{,-server} "$prefix"/share/zsh/site-functions/_larder{,-server}
  rm -f "$prefix"/share/fish/vendor_completions.d/larder{,-server}.fish
  rm -rf "$prefix/share/larder"
}

if [ "$built" = --remove ]; then
  remove
  echo "removed from $prefix"
  exit
fi

for name in larder-server larder; do
  [ -x "$built/$name" ] || { echo "install.sh: $built/$name is missing" >&2 && exit 1; }
done
remove
share=$prefix/share
mkdir -p "$prefix/bin" "$share/larder" "$share/man/man1" "$share/bash-completion/completions" \
  "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
for name in larder-server larder; do
  install -m 0755 "$built/$name" "$prefix/bin/$name"
  strip "$prefix/bin/$name" 2>/dev/null || true # without binutils the files are larger
  command=$prefix/bin/$name
  "$here/man-page.sh" "$name" "$command" >"$share/man/man1/$name.1"
  "$here/completions.sh" bash "$name" "$command" >"$share/bash-completion/completions/$name"
  "$here/completions.sh" zsh "$name" "$command" >"$share/zsh/site-functions/_$name"
  "$here/completions.sh" fish "$name" "$command" >"$share/fish/vendor_completions.d/$name.fish"
done
cp -R "$source/Fixtures" "$share/larder/Fixtures"
rm -rf "$share/larder/Fixtures/make"
cp "$here/larder-server.service" "$source/LICENSE" "$share/larder/"
# A source without history, as in an image, has no commit.
if git -C "$source" rev-parse HEAD >/dev/null 2>&1; then git -C "$source" rev-parse HEAD >"$share/larder/COMMIT"; fi
echo "installed into $prefix: $("$prefix/bin/larder-server" --version)"
