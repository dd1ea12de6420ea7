# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# completion.bash - completion of the programs of Pollux in bash
#
# Options come from what the program itself says with --help, methods of plx-rpc from the process that it
# asks: nothing here has to follow when a program learns something. Installed once for each program.

# All of a program's help: that of commperf has topics.
_pollux_help()
{
	case ${1##*/} in
	commperf) "$1" --help=all 2>/dev/null ;;
	*) "$1" --help 2>/dev/null ;;
	esac
}

# The words of a program's help that are options.
_pollux_options()
{
	_pollux_help "$1" | grep -oE '(^|[ ,[|])--?[a-z][a-z-]*' | grep -oE -- '--?[a-z][a-z-]*' | sort -u
}

# _pollux_listed PROGRAM HEADLINE...: the words that stand first in a line below one of these headlines of its help
_pollux_listed()
{
	_pollux_help "$1" | awk -v heads=" ${*:2} " \
		'index(heads, " " $0 " ") { on = 1; next } /^[^ ]/ { on = 0 } on { print $1 }'
}

# _pollux_words LIST: those of them that go on with the word at the cursor
_pollux_words()
{
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}")
}

_pollux_files()
{
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
}

# The socket that the words before the cursor name.
_pollux_socket()
{
	local i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --socket) echo "${COMP_WORDS[i + 1]}"; return ;;
		esac
	done
	echo "${PLX_RPC_SOCKET-}"
}

_pollux_methods()
{
	local socket

	socket=$(_pollux_socket)
	[ -z "$socket" ] || plx-rpc -t 1 -s "$socket" 2>/dev/null | awk '/^[a-z]/ { print $1 }'
}

# The method among the words before the cursor.
_pollux_method()
{
	local i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --socket | -t | --timeout | -H | --hosts | --launcher | --remote | --answer-timeout) ((i++)) ;;
		-*) ;;
		*) echo "${COMP_WORDS[i]}"; return ;;
		esac
	done
}

# plx-rpc METHOD: its parameters, and the settings for one that is named. "=" is a word of its own.
_pollux_parameters()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	if [[ $1 == conf_* && ($cur == "=" || $prev == "=") ]]; then
		cur=${cur#=}
		mapfile -t COMPREPLY < <(compgen -W "$(plx-rpc -t 1 -s "$(_pollux_socket)" conf_get 2>/dev/null |
			sed -n 's/^ *"name": "\(.*\)",$/\1/p')" -- "$cur")
		return
	fi
	compopt -o nospace 2>/dev/null
	_pollux_words "$(plx-rpc -t 1 -s "$(_pollux_socket)" "$1" --help 2>/dev/null |
		awk '$0 == "parameters" { on = 1; next } on && $1 ~ /^[a-z_]+$/ { print $1 "=" }')"
}

# plx-rpc: a method, or what comes behind it.
_pollux_rpc()
{
	local method

	method=$(_pollux_method)
	if [ -z "$method" ]; then
		_pollux_words "waits $(_pollux_methods)"
	elif [ "$method" != waits ]; then
		_pollux_parameters "$method"
	fi
}

# commperf -t tag_lat,put_...: the last of a list
_pollux_tests()
{
	local cur=${COMP_WORDS[COMP_CWORD]} before=

	[[ $cur != *,* ]] || before=${cur%,*},
	mapfile -t COMPREPLY < <(compgen -P "$before" -W "all cci $(_pollux_listed "$1" tests costs cci)" -- "${cur##*,}")
}

# plx-top -H a,b...: the last of a list, or @ and a file
_pollux_hosts()
{
	local cur=${COMP_WORDS[COMP_CWORD]} before=

	if [[ $cur == @* ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -P @ -f -- "${cur#@}")
		return
	fi
	[[ $cur != *,* ]] || before=${cur%,*},
	mapfile -t COMPREPLY < <(compgen -P "$before" -A hostname -- "${cur##*,}")
}

# pollux-run: behind its options what the command itself completes.
_pollux_command()
{
	local i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--reactor | --config | --rpc) ((i++)) ;;
		-*) ;;
		*) break ;;
		esac
	done
	if ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
		_command_offset "$i"
	elif ((i < COMP_CWORD)); then
		_pollux_files
	else
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
	fi
}

_pollux()
{
	local program=$1 name=${1##*/} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	case $name:$prev in
	commperf:-t | commperf:--test) _pollux_tests "$program" ;;
	plx-top:--sort) _pollux_words "rate name" ;;
	commperf:--help | commperf:-h) _pollux_words "all $(_pollux_listed "$program" topics)" ;;
	commperf:--vs) _pollux_words "ucx ucx_perftest" ;;
	commperf:--datatype) _pollux_words "contig iov: generic" ;;
	commperf:--mem) _pollux_words "private mapped eal" ;;
	commperf:--csv | commperf:--json | commperf:--plot | commperf:--report | commperf:--ucx* | commperf:--perftest | testcomm:-f | \
		testcomm:--file | pollux-run:--config | pollux-run:--rpc | plx-*:-s | plx-*:--socket) _pollux_files ;;
	pollux-run:--reactor) _pollux_words "lcore:" ;;
	plx-*:-H | plx-*:--hosts) _pollux_hosts ;;
	plx-*:--launcher) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	plx-*:--remote) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	plx-top:-m | plx-top:--method) _pollux_words "$(_pollux_methods)" ;;
	pollux-run:*)
		[[ $cur != -* || $COMP_CWORD -gt 1 && $prev != -* ]] || { _pollux_words "$(_pollux_options "$program")"; return; }
		_pollux_command
		;;
	*)
		case $name:$cur in
		*:-*) _pollux_words "$(_pollux_options "$program")" ;;
		plx-rpc:*) _pollux_rpc ;;
		plx-hugepages:*) _pollux_words "show reserve" ;;
		commperf:*) _pollux_files ;;
		cci_info:*) _pollux_words "$("$program" -q 2>/dev/null)" ;;
		esac
		;;
	esac
}

complete -F _pollux pollux-run commperf testcomm cci_info pollux_info plx-rpc plx-top plx-metrics plx-hugepages
