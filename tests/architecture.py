"""Rules of the tree that no linter knows: `python -m tests.architecture`, part of `make lint`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_LINES = 500
MAX_FLOW_LINES = 60
FORBIDDEN_NAMES = {"utils", "util", "common", "core", "helpers", "helper", "manager", "misc"}


def tracked(*patterns: str) -> list[Path]:
    """The files of the project that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def problems() -> list[str]:
    """Every breach, one line each."""
    found = []
    for path in tracked("*.py"):
        name = path.relative_to(ROOT)
        lines = len(path.read_text(encoding="utf-8").splitlines())
        limit = MAX_FLOW_LINES if name.parts[0] == "flows" else MAX_LINES
        if lines > limit:
            found.append(f"{name}: {lines} lines, at most {limit}")
        if path.stem in FORBIDDEN_NAMES:
            found.append(f"{name}: a name that says nothing")
        if name.parts[0] == "flows" and path.stem in sys.stdlib_module_names:
            found.append(f"{name}: named like a module of the standard library")
        if name.parts[0] == "nightdesk" and path.name != "config.py":
            text = path.read_text(encoding="utf-8")
            if "os.environ" in text and name.parts[1] != "migrations":
                found.append(f"{name}: reads the environment; only config.py does")
    for package in ("nightdesk", "flows", "tasks", "blocks", "deployments", "tests"):
        folders = {path.parent for path in tracked(f"{package}/*.py")}
        bare = [folder for folder in folders if not (folder / "__init__.py").exists()]
        found += [f"{folder.relative_to(ROOT)}: no __init__.py" for folder in bare]
    return sorted(found)


if __name__ == "__main__":
    breaches = problems()
    print("\n".join(breaches) or "architecture: kept")  # noqa: T201
    sys.exit(bool(breaches))
