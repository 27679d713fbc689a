#!/bin/sh
# PgBouncer in transaction mode before the cluster of postgres15.sh, which must be up.
#   pgbouncer.sh up     starts it and prints NIGHTDESK_TEST_POOLER_URL=…
#   pgbouncer.sh down   stops it and removes it
# As root it installs the package if it is missing and runs as the user `postgres`.
set -eu
home=${PGBOUNCER_HOME:-/tmp/nightdesk-pgbouncer}
postgres=${POSTGRES15_HOME:-/tmp/nightdesk-postgres15}

as_postgres() {
    if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

case ${1:-} in
up)
    if [ ! -x /usr/sbin/pgbouncer ]; then
        apt-get update -qq >&2
        # The package would start a service of its own.
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod +x /usr/sbin/policy-rc.d
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pgbouncer >&2
        rm -f /usr/sbin/policy-rc.d
    fi
    "$0" down
    mkdir -m 700 "$home"
    cat >"$home/pgbouncer.ini" <<INI
[databases]
* = host=$postgres user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = $home
unix_socket_mode = 0700
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 200
server_idle_timeout = 5
server_connect_timeout = 10
logfile = $home/log
pidfile = $home/pid
INI
    [ "$(id -u)" != 0 ] || chown -R postgres: "$home"
    as_postgres /usr/sbin/pgbouncer -q -d "$home/pgbouncer.ini" >&2
    echo "NIGHTDESK_TEST_POOLER_URL=postgresql://postgres@/postgres?host=$home&port=6432"
    ;;
down)
    [ ! -f "$home/pid" ] || kill "$(cat "$home/pid")" 2>/dev/null || true
    rm -rf "$home"
    ;;
*)
    echo "usage: $0 up|down" >&2
    exit 2
    ;;
esac
