"""Run inside the environment of `wheel_smoke.sh`; must not import anything of the checkout."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from importlib.metadata import entry_points
from pathlib import Path

PACKAGES = ("nightdesk", "flows", "tasks", "blocks", "deployments", "prompts")
RUNS_WHEN_IMPORTED = ("__main__", "nightdesk.migrations.env")


def main() -> None:
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).parent]
    imported = 0
    for package in PACKAGES:
        root = importlib.import_module(package)
        assert "site-packages" in str(root.__file__), f"{package} does not come from the wheel"
        for module in pkgutil.walk_packages(root.__path__, f"{package}."):
            if not module.name.endswith(RUNS_WHEN_IMPORTED):
                importlib.import_module(module.name)
                imported += 1
    for entry in entry_points(group="console_scripts"):
        if entry.value.startswith(PACKAGES):
            entry.load()
    from nightdesk.desk.prompting import load_prompt, prompt_numbers
    from nightdesk.states import Phase

    prompts = 0
    for phase in Phase:
        if phase is not Phase.PUBLISH:
            for number in prompt_numbers(phase):
                prompt = load_prompt(phase, number)
                prompt.render(dict.fromkeys(prompt.front.inputs, "x"))
                prompts += 1
    print(f"wheel: {imported} modules imported, {prompts} prompts rendered")  # noqa: T201


if __name__ == "__main__":
    main()
