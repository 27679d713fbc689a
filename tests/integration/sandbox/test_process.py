"""The server starts, ends, and dies without losing what it wrote down."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from nightdesk.sandbox import SandboxOptions, SandboxProcess, billed_usd, read_journal, serve
from nightdesk.sandbox.process import SandboxFailed

BODY: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 4000,
    "messages": [{"role": "user", "content": "topic: bread"}],
}
HEADERS = {"x-api-key": "key"}


def post(process: SandboxProcess, **changes: Any) -> httpx2.Response:
    return httpx2.post(f"{process.base_url}/v1/messages", json=BODY | changes, headers=HEADERS)


def test_health_says_who_answers(process: SandboxProcess) -> None:
    health = httpx2.get(f"{process.base_url}/_sandbox/health").json()
    assert health["name"] == "nightdesk-sandbox"
    assert health["pid"] == process.pid
    assert health["journal"] == str(process.options.journal)
    assert health["version"]


def test_a_kill_loses_no_answer_that_arrived_and_the_next_server_continues(tmp_path: Path) -> None:
    options = SandboxOptions(port=0, journal=tmp_path / "journal.jsonl", latency_s=0.02)

    async def ask_until_killed(process: SandboxProcess) -> list[str]:
        arrived: list[str] = []
        enough = asyncio.Event()

        async def ask(client: httpx2.AsyncClient) -> None:
            while True:
                url = f"{process.base_url}/v1/messages"
                reply = await client.post(url, json=BODY, headers=HEADERS)
                arrived.append(reply.json()["id"])
                if len(arrived) >= 12:
                    enough.set()

        async with httpx2.AsyncClient() as client:
            asking = [asyncio.create_task(ask(client)) for _ in range(4)]
            await enough.wait()
            os.kill(process.pid, signal.SIGKILL)
            await asyncio.wait(asking)
            assert all(isinstance(task.exception(), httpx2.HTTPError) for task in asking)
        return arrived

    with SandboxProcess(options) as process:
        arrived = asyncio.run(ask_until_killed(process))
    entries = read_journal(options.journal)
    written = [entry.response["id"] for entry in entries]
    assert set(arrived) <= set(written)
    assert len(written) == len(set(written))
    assert billed_usd(entries) > 0
    with SandboxProcess(options) as process:
        post(process)
        listed = httpx2.get(f"{process.base_url}/_sandbox/journal").json()["entries"]
        assert [entry["seq"] for entry in listed] == list(range(1, len(written) + 2))


def test_the_server_ends_with_its_parent(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\n"
        "from nightdesk.sandbox import SandboxOptions, SandboxProcess\n"
        f"process = SandboxProcess(SandboxOptions(port=0, journal=Path({str(tmp_path / 'j')!r})))\n"
        "process.start()\nprint(process.pid, flush=True)\ntime.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    assert child.is_running()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    psutil.wait_procs([child], timeout=5)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_without_being_told_to_it_outlives_its_stdin(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nightdesk.sandbox", "--port", "0"]
    command += ["--journal", str(tmp_path / "journal.jsonl")]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert child.stdout is not None
    ready = json.loads(child.stdout.readline())
    assert ready["pid"] == child.pid
    url = f"http://127.0.0.1:{ready['port']}/_sandbox/health"
    assert httpx2.get(url).status_code == 200
    child.terminate()
    child.wait(timeout=5)
    child.stdout.close()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"port": 70_000}, "port 70000"),
        ({"plan": Path("/nowhere/plan.json")}, "/nowhere/plan.json: cannot be read"),
        ({"journal": Path("/dev/null/journal")}, "journal /dev/null/journal: cannot be written"),
    ],
)
def test_what_cannot_be_used_gives_one_line_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], complaint: str
) -> None:
    options = SandboxOptions(port=0, journal=tmp_path / "journal.jsonl")
    with pytest.raises(SystemExit) as ended:
        serve(replace(options, **change))
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


def test_a_taken_port_gives_one_line_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = SandboxOptions(port=port, journal=tmp_path / "journal.jsonl")
        with pytest.raises(SystemExit) as ended:
            serve(options)
        with pytest.raises(SandboxFailed, match=f"port {port} on 127.0.0.1 is taken"):
            SandboxProcess(options).start()
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_same_seed_gives_the_same_answers(process: SandboxProcess, tmp_path: Path) -> None:
    def texts(of: SandboxProcess) -> list[str]:
        asked = [[{"role": "user", "content": f"topic: {topic}"}] for topic in ("bread", "knives")]
        replies = [post(of, messages=messages).json() for messages in asked]
        return [reply["content"][0]["text"] for reply in replies]

    assert process.options.seed == 1
    httpx2.post(f"{process.base_url}/_sandbox/plan", json={"rules": []})
    first = texts(process)
    assert first[0] != first[1]
    for seed in (1, 2):
        options = SandboxOptions(port=0, journal=tmp_path / f"{seed}.jsonl", seed=seed)
        with SandboxProcess(options) as other:
            assert (texts(other) == first) == (seed == 1)
            pid = other.pid
        assert not psutil.pid_exists(pid)


def test_importing_the_package_imports_no_web_server() -> None:
    program = (
        "import sys, nightdesk.sandbox\n"
        "print([name for name in ('starlette', 'uvicorn', 'jinja2', 'pydantic', 'prefect')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
