#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# package.sh - build the Debian packages of the tree as it is and have lintian look at them
#
# usage: package.sh [--check] [--no-lint] [FOLDER]
#   --check    run the unit tests as well
#   --no-lint  without lintian
#   FOLDER     where the packages go, build-package when not given
# Installs what it needs, as root or by sudo. The files of the packages are in config/debian: they become
# the folder debian of a copy.
set -eu
cd "$(dirname "$0")/.."
source=$PWD
options=nocheck lint=yes folder=build-package
build_tools=(debhelper dpkg-dev dh-python xz-utils)

for arg in "$@"; do
	case $arg in
	--check) options= ;;
	--no-lint) lint=no ;;
	-*) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
	*) folder=$arg ;;
	esac
done

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		env DEBIAN_FRONTEND=noninteractive "$@"
	else
		sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
	fi
}

say()
{
	echo "package: $*"
}

# Each step's output is shown when it fails.
quietly()
{
	"$@" >"$work/log" 2>&1 || { tail -n 60 "$work/log" >&2; say "this failed: $*" >&2; exit 1; }
}

installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Abbrev}\n' "$@" 2>/dev/null | grep -c '^ii')" -eq $# ]
}

install_tools()
{
	[ $lint = no ] || build_tools+=(lintian)
	installed "${build_tools[@]}" && (cd "$tree" && dpkg-checkbuilddeps 2>/dev/null) && return
	say "installing what building packages needs"
	quietly as_root apt-get update -q
	quietly as_root apt-get install -y -q --no-install-recommends "${build_tools[@]}"
	# apt-get looks for deb-src lines unless it knows the folder.
	(cd "$tree" && DEB_BUILD_PROFILES=${options:+nocheck} quietly as_root \
		apt-get build-dep -y -q --no-install-recommends ./)
}

# What git knows, or all but build folders where there is no git.
files()
{
	git -c safe.directory="$source" ls-files -z 2>/dev/null && return
	find . \( -name .git -o -path './build*' \) -prune -o -type f -print0
}

copy_tree()
{
	mkdir "$tree"
	files >"$work/files"
	tar --null -T "$work/files" -c | tar -x -C "$tree"
	tar -C "$work" --sort=name --mtime="@$(date +%s -r meson.build)" --owner=0 --group=0 --numeric-owner \
		-cJf "$work/pollux_$version.orig.tar.xz" "pollux-$version"
	cp -r "$tree/config/debian" "$tree/debian"
}

work=$(mktemp -d "${TMPDIR:-/tmp}/pollux-package.XXXXXX")
trap 'rm -rf "$work"' EXIT
version=$(sed -nE "s/^    version: '([0-9.]+)',/\1/p" meson.build)
tree=$work/pollux-$version
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
command -v xz >/dev/null || quietly as_root sh -c 'apt-get update -q && apt-get install -y -q --no-install-recommends xz-utils'
copy_tree
install_tools
say "building version $version"
(cd "$tree" && DEB_BUILD_OPTIONS="$options parallel=$(nproc)" DEB_BUILD_PROFILES=${options:+nocheck} \
	quietly dpkg-buildpackage -us -uc)
rm -f "$folder"/*pollux*_"$version"*
cp "$work"/*.deb "$work"/*.dsc "$work"/*.tar.xz "$work"/*.changes "$work"/*.buildinfo "$folder"
say "in $folder:"
(cd "$folder" && ls ./*"_$version"*.deb)
[ $lint = no ] || { lintian --fail-on error,warning "$folder"/*.changes && say "lintian has nothing to say"; }
