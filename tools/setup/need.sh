#!/bin/sh
# need.sh COMMAND:PACKAGES:REASON … installs missing tools.
#
# For each COMMAND, or file with a path, that cannot be found, apt-get installs the Debian PACKAGES
# (comma-separated), after a message. sudo is used only if the user is not root. If there is no
# apt-get, the script prints what to install by hand. A COMMAND after a ? is optional: if it cannot
# be installed, the script prints a message and continues.
set -eu

packages= reasons= wanted= wishes=
for need in "$@"; do
	command=${need%%:*} rest=${need#*:}
	optional=
	case $command in
	\?*) optional=yes command=${command#?} ;;
	esac
	case $command in
	/*) [ ! -e "$command" ] || continue ;;
	*) ! command -v "$command" >/dev/null || continue ;;
	esac
	if [ -n "$optional" ]; then
		wanted="$wanted ${rest%%:*}"
		wishes="$wishes
  $command: ${rest#*:}"
		continue
	fi
	packages="$packages $(echo "${rest%%:*}" | tr , ' ')"
	reasons="$reasons
  $command: ${rest#*:}"
done
[ -n "$packages$wanted" ] || exit 0

# without prints what is done without the tool, and succeeds.
without() {
	[ -z "$1" ] || echo "Going on without$1: $2" >&2
}

if ! command -v apt-get >/dev/null; then
	without "$wanted" "there is no apt-get to install them"
	[ -n "$packages" ] || exit 0
	echo "Please install what is missing, then run make again:$reasons" >&2
	exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
	sudo=sudo
	if ! command -v sudo >/dev/null; then
		without "$wanted" "only root can install them, and there is no sudo"
		[ -n "$packages" ] || exit 0
		echo "Missing:$reasons
Please run as root: apt-get install --no-install-recommends$packages" >&2
		exit 1
	fi
fi

# The output of apt-get is printed only if apt-get fails.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
	# shellcheck disable=SC2086 # a list of packages on purpose
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $1 >>"$log" 2>&1
}

echo "Missing:$reasons$wishes
Installing by apt-get:$packages$wanted (this happens once, and may take a few minutes)" >&2
if ! $sudo apt-get -qq update >"$log" 2>&1 || ! install "$packages"; then
	cat "$log" >&2
	echo "apt-get could not install:$packages; install them by hand, then run make again" >&2
	exit 1
fi
for need in $wanted; do
	install "$(echo "$need" | tr , ' ')" || without " $need" "apt-get could not install it"
done
