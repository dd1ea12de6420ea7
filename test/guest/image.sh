#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# image.sh - make the kernel and the initrd of the guest from the distribution's
# packages; does nothing where both are there
#
# usage: image.sh FOLDER
# FOLDER gets vmlinuz and initrd.gz. Nothing is installed, root is not needed.
# The exit status is 77 where a package can't be had.
set -u
here=$(cd "$(dirname "$0")" && pwd)
modules=(virtio_pci virtio_console 9pnet_virtio 9p overlay crc32_generic rdma_rxe ib_uverbs
	rdma_ucm veth bridge sch_netem)

case ${1:-} in
'' | -*) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
esac
mkdir -p "$1" && cd "$1" || exit 1

# What the image was made of: a change of this file or of init makes a new one.
made_of=$(cat "$here/image.sh" "$here/init" | cksum)

cannot()
{
	echo "image.sh: $*" >&2
	exit 77
}

newest_kernel()
{
	apt-cache depends linux-image-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1
}

download_kernel()
{
	local package

	package=$(newest_kernel)
	[ -n "$package" ] && apt-get -q download "$package" >/dev/null 2>&1
}

unpack_kernel()
{
	download_kernel || { apt-get update -q >/dev/null 2>&1 && download_kernel; } ||
		cannot "apt-get download of the kernel package linux-image-amd64 depends on failed"
	dpkg-deb --fsys-tarfile linux-image-*.deb |
		tar -x --wildcards './boot/vmlinuz-*' './lib/modules/*' || exit 1
	mv boot/vmlinuz-* vmlinuz
	version=$(ls lib/modules)
}

# The modules and what they need, in the order of insertion.
pick_modules()
{
	local module file

	depmod -b . "$version" || exit 1
	for module in "${modules[@]}"; do
		modprobe -d . -S "$version" -n --show-depends "$module" || exit 1
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >order
	mkdir -p root/modules
	while read -r file; do
		cp "$file" root/modules/
		basename "$file" >>root/modules/order
	done <order
}

make_initrd()
{
	mkdir -p root/bin root/proc root/sys root/dev root/host root/tmp root/new
	cp "$(command -v busybox)" root/bin/busybox || exit 1
	install -m 755 "$here/init" root/init
	(cd root && find . | cpio -o -H newc --quiet) | gzip -1 >initrd.gz || exit 1
}

exec 9>lock
flock 9
if [ -s vmlinuz ] && [ -s initrd.gz ] && [ "$(cat made_of 2>/dev/null)" = "$made_of" ]; then
	exit 0
fi
PATH=$PATH:/usr/sbin:/sbin
for tool in apt-get dpkg-deb depmod modprobe cpio busybox; do
	command -v $tool >/dev/null || cannot "$tool is not installed (packages kmod cpio busybox-static)"
done
work=$(mktemp -d "$PWD/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && unpack_kernel && pick_modules && make_initrd) || exit
mv "$work/vmlinuz" "$work/initrd.gz" . && echo "$made_of" >made_of
