#!/bin/sh
# Three machines on one computer: a database, a remote of git, and three processes with clones and homes of their own.
# A team is run from a fourth clone. Nothing is left afterwards.
#
# It needs git, PostgreSQL and cadre (or Go, which builds it): sh examples/machines/run.sh
set -eu

here=$(cd "$(dirname "$0")/../.." && pwd)
root=$(mktemp -d "${TMPDIR:-/tmp}/machines.XXXXXX")
if [ -n "${CADRE:-}" ]; then cadre=$CADRE; else cadre=$root/cadre && (cd "$here" && CGO_ENABLED=0 go build -o "$cadre" ./cmd/cadre); fi

# PostgreSQL does not run as root, so root becomes another user for it.
bin=$(dirname "$(command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb /opt/homebrew/opt/postgresql*/bin/initdb 2>/dev/null | tail -n 1)")
if [ ! -x "$bin/initdb" ]; then
	echo "PostgreSQL is not installed: no initdb in PATH" >&2
	exit 2
fi
as=
if [ "$(id -u)" = 0 ]; then
	as="setpriv --reuid=postgres --regid=postgres --clear-groups"
fi

machines=
end() {
	for pid in $machines; do kill "$pid" 2>/dev/null || true; done
	for pid in $machines; do wait "$pid" 2>/dev/null || true; done
	$as "$bin/pg_ctl" -D "$root/db/data" -m immediate stop >/dev/null 2>&1 || true
	rm -rf "$root"
}
trap end EXIT
trap 'exit 1' INT TERM

echo "a database, in $root/db"
mkdir "$root/db"
chmod 755 "$root"
if [ -n "$as" ]; then chown postgres "$root/db"; fi
(
	cd "$root/db"
	$as "$bin/initdb" -D data -U cadre -A trust --no-sync --no-instructions >/dev/null
	$as "$bin/pg_ctl" -D data -l log -w -o "-c listen_addresses= -c unix_socket_directories=$root/db" start >/dev/null
)
CADRE_STORE="host=$root/db user=cadre dbname=postgres"
export CADRE_STORE
CADRE_HOME=$root/home "$cadre" store init

echo "a project with a remote, in $root/project"
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.org
git init -q -b main "$root/project"
cp "$here/examples/machines/team.yaml" "$root/project/"
git -C "$root/project" add team.yaml
git -C "$root/project" commit -q -m "A team for three machines"
git clone -q --bare "$root/project" "$root/remote.git"
git -C "$root/project" remote add origin "$root/remote.git"

# on NAME LABEL... starts a machine with these labels, with a clone and a home of its own.
on() {
	name=$1
	shift
	labels=
	for label in "$@"; do labels="$labels --label $label"; done
	git clone -q "$root/remote.git" "$root/$name"
	(
		cd "$root/$name"
		export CADRE_HOME="$root/home-$name" CLAUDE_CONFIG_DIR="$root/claude-$name"
		# shellcheck disable=SC2086 # the labels are words
		exec "$cadre" host --name "$name" --slots 2 $labels
	) 2>"$root/$name.log" &
	machines="$machines $!"
}
on laptop small
on builder big
on trainer big gpu

export CADRE_HOME="$root/home" CLAUDE_CONFIG_DIR="$root/claude"
tries=0
until [ "$("$cadre" hosts | grep -c running)" -ge 3 ] || [ $tries -ge 100 ]; do
	tries=$((tries + 1))
	sleep 0.2
done
"$cadre" hosts
cd "$root/project"
"$cadre" run team.yaml --plain
"$cadre" log demo | grep 'runs on the machine'
git log --stat -1
