#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# after_install.sh - have the loader find the library that was installed, or say what is to be set
#
# usage: after_install.sh LIBDIR NAME   meson runs it; NAME as programs ask for it
set -u

PATH=$PATH:/usr/sbin:/sbin
libdir=$1
name=$2

[ -z "${DESTDIR-}" ] || exit 0 # a package's own scripts do that
if [ "$(id -u)" -eq 0 ]; then
	ldconfig
fi
if ! ldconfig -p 2>/dev/null | grep -qF "=> $libdir/$name"; then
	echo "The loader does not look in $libdir. In a shell:"
	echo "  export LD_LIBRARY_PATH=$libdir\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
	echo "  export PKG_CONFIG_PATH=$libdir/pkgconfig\${PKG_CONFIG_PATH:+:\$PKG_CONFIG_PATH}"
	[ "$(id -u)" -eq 0 ] || echo "or, if it does after ldconfig, run that as root."
fi
