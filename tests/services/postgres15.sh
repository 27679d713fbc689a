#!/bin/sh
# A throw-away cluster of Debian's Postgres 15 on a Unix socket.
#   postgres15.sh up     starts it and prints NIGHTDESK_TEST_DATABASE_URL=…
#   postgres15.sh down   stops it and removes it
# As root it installs the package if it is missing and runs the server as the user `postgres`.
set -eu
bin=/usr/lib/postgresql/15/bin
home=${POSTGRES15_HOME:-/tmp/nightdesk-postgres15}

as_postgres() {
    if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

case ${1:-} in
up)
    if [ ! -x "$bin/initdb" ]; then
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-15 >&2
    fi
    "$0" down
    mkdir -m 700 "$home"
    [ "$(id -u)" != 0 ] || chown postgres: "$home"
    as_postgres "$bin/initdb" -D "$home/data" -U postgres --auth=trust -E UTF8 --locale=C.UTF-8 -N >/dev/null
    as_postgres "$bin/pg_ctl" -D "$home/data" -l "$home/log" -w -s start \
        -o "-c listen_addresses= -k $home -c fsync=off -c max_connections=200" >&2
    echo "NIGHTDESK_TEST_DATABASE_URL=postgresql://postgres@/postgres?host=$home"
    ;;
down)
    [ ! -f "$home/data/postmaster.pid" ] || as_postgres "$bin/pg_ctl" -D "$home/data" -m immediate -w -s stop >&2 || true
    rm -rf "$home"
    ;;
*)
    echo "usage: $0 up|down" >&2
    exit 2
    ;;
esac
