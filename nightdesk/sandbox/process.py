"""A sandbox in a child process, for the demo and for tests."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from types import TracebackType
from typing import IO, Any, Self

from nightdesk.errors import NightdeskError
from nightdesk.sandbox.options import SandboxOptions


class SandboxFailed(NightdeskError):
    """The child did not start, or did not become healthy in time."""


class SandboxProcess:
    """Runs `python -m nightdesk.sandbox` and waits until it answers.

    The child ends with its parent, however the parent ends: its stdin is a pipe from here.
    """

    def __init__(self, options: SandboxOptions, *, start_timeout_s: float = 20.0) -> None:
        self.options = options
        self._start_timeout_s = start_timeout_s
        self._stderr: IO[bytes] | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self.port = options.port

    @property
    def base_url(self) -> str:
        """Without a trailing slash; OpenAI clients append `/v1`, Anthropic clients do not."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The child's process id.

        Raises:
            SandboxFailed: if it was not started.
        """
        if self._child is None:
            raise SandboxFailed("the sandbox is not running: call start() first")
        return self._child.pid

    def start(self) -> SandboxProcess:
        """Start the child and return once it is healthy.

        Raises:
            SandboxFailed: with what the child said, if it is not healthy in time.
        """
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed by stop()
        child = subprocess.Popen(
            self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
        )
        self._child = child
        deadline = time.monotonic() + self._start_timeout_s
        try:
            self.port = int(_first_line(child, self._start_timeout_s)["port"])
            while not self._healthy():
                if time.monotonic() > deadline:
                    raise SandboxFailed(f"no answer from {self.base_url}/_sandbox/health")
                time.sleep(0.02)
        except (SandboxFailed, ValueError, KeyError) as error:
            said = self._said()
            self.stop()
            raise SandboxFailed(f"the sandbox did not start: {said or error}") from error
        return self

    def stop(self) -> None:
        """End the child: politely, then by force. Does nothing if it is gone."""
        child, self._child = self._child, None
        if child is None:
            return
        child.terminate()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for stream in (child.stdin, child.stdout, self._stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _command(self) -> list[str]:
        options = self.options
        command = [sys.executable, "-m", "nightdesk.sandbox", "--exit-with-parent"]
        command += ["--port", str(options.port), "--journal", str(options.journal)]
        command += ["--latency", str(options.latency_s), "--seed", str(options.seed)]
        return command + (["--plan", str(options.plan)] if options.plan else [])

    def _healthy(self) -> bool:
        # http.client, because a proxy from the environment must not see loopback traffic.
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/_sandbox/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _said(self) -> str:
        if self._stderr is None:
            return ""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace").strip()


def _first_line(child: subprocess.Popen[bytes], timeout_s: float) -> dict[str, Any]:
    """The JSON line on the child's stdout. ValueError if the child ends or hangs without one."""
    assert child.stdout is not None
    # A blocking read cannot be given a timeout; ending the child ends the read.
    watchdog = threading.Timer(timeout_s, child.kill)
    watchdog.start()
    try:
        line = child.stdout.readline()
        if not line:
            child.wait()
        parsed: dict[str, Any] = json.loads(line)
        return parsed
    finally:
        watchdog.cancel()
