"""CPU seconds per idle hour of the whole stack: `nightdesk up`, nothing to do, the pace of prefect.yaml."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from nightdesk.embedded import EmbeddedPostgres  # noqa: E402


def family(up: psutil.Process, postgres: EmbeddedPostgres) -> dict[str, list[psutil.Process]]:
    """The processes of the stack by what they are."""
    found: dict[str, list[psutil.Process]] = {
        "supervisor": [up],
        "server": [],
        "worker and runs": [],
        "postgres": [],
    }
    for child in up.children():
        kind = "server" if "server" in child.cmdline() else "worker and runs"
        found[kind].append(child)
    master = postgres._postmaster()
    if master is not None:
        found["postgres"] = [master, *master.children()]
    return found


def cpu_s(process: psutil.Process) -> float:
    """CPU seconds of a process and of its children that have ended."""
    with suppress(psutil.Error):
        return float(sum(process.cpu_times()[:4]))
    return 0.0


def measure(minutes: float, settle_s: float) -> dict[str, object]:
    """Start the stack, let it settle, and count."""
    with tempfile.TemporaryDirectory(prefix="nightdesk-idle-") as folder:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env |= {"NIGHTDESK_DATA_DIR": folder, "NIGHTDESK_SITE_PORT": "0", "HOME": folder}
        up = subprocess.Popen(
            [sys.executable, "-m", "nightdesk", "up", "--port", "4299"],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert up.stdout is not None
            for line in up.stdout:
                if "Ctrl-C" in line:
                    break
            time.sleep(settle_s)
            postgres = EmbeddedPostgres(Path(folder))
            processes = family(psutil.Process(up.pid), postgres)
            before = {kind: sum(map(cpu_s, group)) for kind, group in processes.items()}
            time.sleep(minutes * 60)
            after = {kind: sum(map(cpu_s, group)) for kind, group in processes.items()}
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(60)
    hours = minutes / 60
    parts = {kind: round((after[kind] - before[kind]) / hours, 1) for kind in before}
    total = sum(parts.values())
    return {
        "cpu_s_per_hour": parts,
        "total_cpu_s_per_hour": round(total, 1),
        "of_one_core": round(total / 3600, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="a whole number of ten minutes is fair")
    parser.add_argument("--settle", type=float, default=60.0, help="seconds before the count begins")
    parser.add_argument("--json", action="store_true", help="(the only output there is)")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.minutes, arguments.settle), indent=2))


if __name__ == "__main__":
    main()
