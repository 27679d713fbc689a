"""Which program has a port."""

from __future__ import annotations

import socket

import psutil


def who_listens(port: int) -> str | None:
    """The program that has a TCP port of this machine, with its pid; None if the port is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return None
        except OSError:
            pass
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.pid:
                return f"{' '.join(psutil.Process(connection.pid).cmdline())[:120]} (pid {connection.pid})"
    except psutil.Error:
        pass
    return "another program"
