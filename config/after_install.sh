#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# after_install.sh - make the loader find the installed library, or say what to set
#
# usage: after_install.sh LIBDIR NAME   meson runs it; NAME: the soname
set -u

PATH=$PATH:/usr/sbin:/sbin
libdir=$1
name=$2

[ -z "${DESTDIR-}" ] || exit 0 # a package has its own scripts for this
if [ "$(id -u)" -eq 0 ]; then
	ldconfig
fi
if ! ldconfig -p 2>/dev/null | grep -qF "=> $libdir/$name"; then
	echo "The loader does not look in $libdir. In a shell:"
	echo "  export LD_LIBRARY_PATH=$libdir\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
	echo "  export PKG_CONFIG_PATH=$libdir/pkgconfig\${PKG_CONFIG_PATH:+:\$PKG_CONFIG_PATH}"
	[ "$(id -u)" -eq 0 ] || echo "or, if it does after ldconfig, run that as root."
fi
