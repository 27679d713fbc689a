"""Prefect's settings for a machine that nobody watches. `docs/operations.md` says why for each."""

from __future__ import annotations

from pathlib import Path

#: Seconds between heartbeats of a run; three missed ones mean that its process is gone. 30 is the least.
HEARTBEAT_S = 30


def client_environment(home: Path, api_url: str, query_s: float) -> dict[str, str]:
    """For the worker, its runs, and `deployments.apply`."""
    return {
        "PREFECT_HOME": str(home),
        "PREFECT_PROFILES_PATH": str(home / "profiles.toml"),
        "PREFECT_API_URL": api_url,
        "PREFECT_UI_URL": api_url.removesuffix("/api"),
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_S),
        # Runs live through a server that is away for minutes.
        "PREFECT_CLIENT_MAX_RETRIES": "8",
        "PREFECT_EVENTS_WORKER_MAX_QUEUE_SIZE": "10000",
        "PREFECT_RESULTS_LOCAL_STORAGE_PATH": str(home / "results"),
        "PREFECT_LOGGING_TO_API_MAX_LOG_SIZE": "200000",
        "PREFECT_WORKER_QUERY_SECONDS": f"{query_s:g}",
        "PREFECT_WORKER_PREFETCH_SECONDS": "10",
        "PREFECT_CLI_PROMPT": "false",
        "DO_NOT_TRACK": "1",
    }


def server_environment(home: Path, port: int, database_url: str) -> dict[str, str]:
    """For the server itself."""
    return {
        "PREFECT_HOME": str(home),
        "PREFECT_PROFILES_PATH": str(home / "profiles.toml"),
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_UI_URL": f"http://127.0.0.1:{port}",
        # Else it copies its pages into the installed package.
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(home / "ui"),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": database_url,
        # What is in memory by default would be lost in a restart: held slots for ever, held events for good.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        "PREFECT_SERVER_EVENTS_CAUSAL_ORDERING": "prefect.server.events.ordering.db",
        "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": "3d",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": "1209600",
        "PREFECT_SERVER_SERVICES_LATE_RUNS_AFTER_SECONDS": "60",
        # Looking less often for what happens here by the minute: idle CPU of the server.
        "PREFECT_SERVER_SERVICES_LATE_RUNS_LOOP_SECONDS": "30",
        "PREFECT_SERVER_SERVICES_PAUSE_EXPIRATIONS_LOOP_SECONDS": "300",
        "PREFECT_SERVER_SERVICES_CANCELLATION_CLEANUP_LOOP_SECONDS": "60",
        "PREFECT_SERVER_SERVICES_FOREMAN_LOOP_SECONDS": "60",
        "PREFECT_SERVER_SERVICES_REPOSSESSOR_LOOP_SECONDS": "30",
        "PREFECT_SERVER_SERVICES_SCHEDULER_RECENT_DEPLOYMENTS_LOOP_SECONDS": "15",
        "PREFECT_SERVER_EVENTS_PROACTIVE_GRANULARITY": "PT15S",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
