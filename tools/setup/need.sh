#!/bin/sh
# need.sh COMMAND:PACKAGES:REASON … installs what is missing.
#
# For each COMMAND that cannot be found, the Debian PACKAGES (comma-separated)
# are installed by apt-get, with a message first; sudo is used only when we are
# not root. Where there is no apt-get, it says what to install by hand.
set -eu

packages= reasons=
for need in "$@"; do
	command=${need%%:*} rest=${need#*:}
	command -v "$command" >/dev/null && continue
	packages="$packages $(echo "${rest%%:*}" | tr , ' ')"
	reasons="$reasons
  $command: ${rest#*:}"
done
[ -n "$packages" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "Please install what is missing, then run make again:$reasons" >&2
	exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
	sudo=sudo
	if ! command -v sudo >/dev/null; then
		echo "Missing:$reasons
Please run as root: apt-get install --no-install-recommends$packages" >&2
		exit 1
	fi
fi
echo "Missing:$reasons
Installing by apt-get:$packages (this happens once, and may take a few minutes)" >&2
# What apt-get says is worth reading only if it fails.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # a list of packages on purpose
if ! { $sudo apt-get -qq update &&
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $packages; } >"$log" 2>&1; then
	cat "$log" >&2
	echo "apt-get could not install:$packages; install them by hand, then run make again" >&2
	exit 1
fi
