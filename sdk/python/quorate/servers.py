"""The addresses of a cluster, and the connections to them."""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
import ssl
import threading
import urllib.parse
from typing import List, NamedTuple, Optional, Sequence, Tuple

from quorate.process import watch_forks

# The longest that a connection may take to be made, in seconds.
CONNECT_TIMEOUT = 2.0
HANDSHAKE_TIMEOUT = 5.0

# The most idle connections that are kept for each server.
MOST_IDLE = 64


class Server(NamedTuple):
    """The address of a server."""

    host: str
    port: int
    is_secure: bool
    path: str

    @property
    def name(self) -> str:
        host = "[%s]" % self.host if ":" in self.host else self.host
        return "%s:%d" % (host, self.port)

    @property
    def is_loopback(self) -> bool:
        """True if the host is this machine by its name or address."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_server(address: str, is_secure: bool) -> Server:
    """Reads an address such as "10.0.0.1:7101", or a URL. Raises ValueError, which says what is allowed."""
    text = address if "://" in address else ("https://" if is_secure else "http://") + address
    wrong = "server %r is not an address: write host:port, http://host:port or https://host:port" % address
    try:
        url = urllib.parse.urlsplit(text)
        port = url.port
    except ValueError as e:
        raise ValueError(wrong) from e
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        raise ValueError(wrong)
    if url.username is not None:
        raise ValueError("server %r: the address has a user name, which calls do not send: write it without" % address)
    secure = url.scheme == "https"
    return Server(url.hostname, port or (443 if secure else 80), secure, url.path.rstrip("/"))


class Servers:
    """The known addresses and the one to which calls go now. Safe for concurrent use."""

    def __init__(self, addresses: Sequence[str], is_secure: bool) -> None:
        if isinstance(addresses, str) or not addresses:
            raise ValueError("name a list of at least one server, such as [\"http://127.0.0.1:7101\"]")
        self.all = [parse_server(a, is_secure) for a in addresses]
        self._lock = threading.Lock()
        self._current = 0
        watch_forks(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def current(self) -> int:
        """Returns the index of the server to call now."""
        return self._current

    def advance_from(self, failed: int) -> None:
        """Selects the server after one that failed, unless another call has done so already."""
        with self._lock:
            if self._current == failed:
                self._current = (failed + 1) % len(self.all)


class Pool:
    """Connections that are kept open between calls, by the process that made them. Safe for concurrent use."""

    def __init__(self, servers: Servers, tls: Optional[ssl.SSLContext]) -> None:
        self._servers = servers
        self._tls = tls
        self._lock = threading.Lock()
        self._idle: List[List[http.client.HTTPConnection]] = [[] for _ in servers.all]
        self._pid = os.getpid()
        watch_forks(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self.close()  # closes this process's descriptors, not the connections of the parent

    def take(self, index: int, timeout: float, is_new: bool = False) -> Tuple[http.client.HTTPConnection, bool]:
        """Returns a connection to a server, and whether it was used before."""
        if self._pid != os.getpid():  # forked by code that does not tell Python
            self.after_fork()
        with self._lock:
            if self._idle[index] and not is_new:
                return self._idle[index].pop(), True
        return self.connect(index, timeout), False

    def connect(self, index: int, timeout: float) -> http.client.HTTPConnection:
        """Connects to a server. Raises OSError, of which ssl.SSLError is one."""
        server = self._servers.all[index]
        sock = socket.create_connection((server.host, server.port), min(timeout, CONNECT_TIMEOUT))
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = http.client.HTTPConnection(server.host, server.port)
            if server.is_secure:
                sock.settimeout(min(timeout, HANDSHAKE_TIMEOUT))
                sock = self._context().wrap_socket(sock, server_hostname=server.host)
        except BaseException:
            sock.close()
            raise
        connection.sock = sock
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def give_back(self, index: int, connection: http.client.HTTPConnection) -> None:
        """Keeps a connection for the next call, if the server has not closed it."""
        with self._lock:
            if connection.sock is not None and len(self._idle[index]) < MOST_IDLE:
                self._idle[index].append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Closes the idle connections. The pool remains usable."""
        with self._lock:
            idle = [c for connections in self._idle for c in connections]
            self._idle = [[] for _ in self._servers.all]
        for connection in idle:
            connection.close()
