"""Tokens that calls carry."""

from __future__ import annotations

import os
import threading
import time
from typing import Callable, Optional, Tuple

from quorate.errors import QuorateError
from quorate.process import watch_forks
from quorate.servers import Servers

# The most bytes of a token, which is what servers accept.
MOST_BYTES = 8 << 10


class Tokens:
    """Asks a source for a token at each attempt. It does not keep tokens, so that printing a client cannot show one."""

    def __init__(self, source: Callable[[], str]) -> None:
        self._source = source

    def current(self) -> str:
        """Returns the token to send, or raises QuorateError with the code unauthenticated; nothing was sent then."""
        try:
            token = self._source()
            check_token(token)
        except Exception as e:
            raise QuorateError("unauthenticated", "no token: %s" % e, was_sent=False) from e
        return token


def check_token(token: str) -> None:
    """Raises ValueError for a text that a header cannot carry. The error does not repeat the text."""
    if not token:
        raise ValueError("the token is empty")
    if len(token) > MOST_BYTES:
        raise ValueError("the token has %d bytes, more than %d" % (len(token), MOST_BYTES))
    if any(not "!" <= c <= "~" for c in token):
        raise ValueError("the token has blanks or characters that are not ASCII: it must be alone on one line")


def check_servers(servers: Servers, is_insecure: bool) -> None:
    """Raises ValueError for servers that a token must not be sent to."""
    for server in servers.all:
        if not server.is_secure and not is_insecure and not server.is_loopback:
            raise ValueError("server %s: a token is not sent in plain text to another machine: write https://%s, or "
                             "allow it (insecure_token=True)" % (server.name, server.name))


class TokenFile:
    """A token in a file, alone on one line. The file is looked at once a second at most, and read again if it is
    another one or was written. One that cannot be read then leaves the last token in use."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._state: Optional[Tuple[int, int, int]] = None
        self._token = self._read()
        check_token(self._token)
        self._looked = time.monotonic()
        watch_forks(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def current(self) -> str:
        """Returns the token."""
        with self._lock:
            if time.monotonic() - self._looked >= 1:
                self._looked = time.monotonic()
                try:
                    self._token = self._read()
                except (OSError, ValueError):
                    pass
            return self._token

    def _read(self) -> str:
        found = os.stat(self._path)
        state = (found.st_ino, found.st_size, found.st_mtime_ns)
        if state == self._state:
            return self._token
        with open(self._path, encoding="ascii") as file:
            token = file.read(MOST_BYTES + 2).rstrip("\r\n")
        check_token(token)
        self._state = state
        return token
