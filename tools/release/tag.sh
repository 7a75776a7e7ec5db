#!/bin/sh
# tag.sh VERSION commits the page in site/dist, and tags this commit.
#
# `go install …@VERSION` compiles the tagged commit, so the installed command can serve the page. The
# commit has the time of its parent, so that `make release` builds the same files from both. The
# script pushes nothing.
set -eu

version=$1
if [ ! -e site/dist/index.html ]; then
	echo "tag.sh: site/dist does not contain the page; run make release VERSION=$version" >&2
	exit 1
fi
GIT_COMMITTER_DATE=$(git log -1 --format=%cI)
GIT_AUTHOR_DATE=$GIT_COMMITTER_DATE
export GIT_COMMITTER_DATE GIT_AUTHOR_DATE
git add --force site/dist
git commit --quiet --message "release: add the page of $version"
git tag "$version"
