"""A web server for folders of static sites, on this machine only."""

from __future__ import annotations

import mimetypes
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from nightdesk.errors import ConfigError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

_HOST = "127.0.0.1"
_START_S = 10.0
_STOP_S = 5.0
_POLL_S = 0.01
_TYPES = {".xml": "application/xml", ".js": "text/javascript", ".svg": "image/svg+xml"}


class LoopbackServer:
    """Serves the files below `folder` on 127.0.0.1 while its `with` block runs.

    `/x/` is `x/index.html`. Names that begin with a dot do not exist for it; no folder is listed.

    Raises (on entering):
        ConfigError: if the port is taken or the server does not start.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        """`port` 0: any free one."""
        self._folder = folder
        self._port = port
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port it listens on; before entering, the one that was asked for."""
        return self._port

    @property
    def base_url(self) -> str:
        """Where the folder is, without a trailing slash."""
        return f"http://{_HOST}:{self._port}"

    def __enter__(self) -> Self:
        import uvicorn

        self._folder.mkdir(parents=True, exist_ok=True)
        listener = self._listen()
        config = uvicorn.Config(
            _application(self._folder),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=75,  # longer than any client of ours keeps a connection
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="loopback-server", daemon=True
        )
        self._thread.start()
        self._await_start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(_STOP_S)

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_HOST, self._port))
            listener.listen()
        except OSError as error:
            listener.close()
            raise ConfigError(
                f"port {self._port} on {_HOST} cannot be used ({error.strerror}): "
                "choose another one, or 0 for any free one"
            ) from error
        self._port = listener.getsockname()[1]
        return listener

    def _await_start(self) -> None:
        assert self._server is not None
        assert self._thread is not None
        deadline = time.monotonic() + _START_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self._server.should_exit = True
                raise ConfigError(f"the server for {self._folder} did not start on {self.base_url}")
            time.sleep(_POLL_S)


def _application(folder: Path) -> ASGIApp:
    from starlette.applications import Starlette
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    class VisibleFiles(StaticFiles):
        """Static files without hidden ones, with an explicit type and charset."""

        def lookup_path(self, path: str) -> Any:
            if any(part.startswith(".") and part != "." for part in Path(path).parts):
                return "", None
            return super().lookup_path(path)

        def file_response(self, full_path: Any, *args: Any, **kwargs: Any) -> Any:
            response = super().file_response(full_path, *args, **kwargs)
            response.headers["X-Content-Type-Options"] = "nosniff"
            if response.status_code == 200:
                response.headers["Content-Type"] = _content_type(Path(full_path))
            return response

    # The application around the files turns their refusals into 404 and 405.
    return Starlette(routes=[Mount("/", VisibleFiles(directory=folder, html=True))])


def _content_type(path: Path) -> str:
    # The machine's own table is not asked for XML: it calls a feed this or that.
    guessed = _TYPES.get(path.suffix.lower()) or mimetypes.guess_type(path.name)[0]
    kind = guessed or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") or kind.endswith("xml") else kind
