"""Single exchanges with single servers: the Connect protocol with JSON over HTTP/1.1."""

from __future__ import annotations

import email.utils
import http.client
import json
import os
import socket
import ssl
import time
from typing import Any, Dict, Iterator, List, Optional

from quorate.errors import CertificateError, QuorateError
from quorate.servers import Pool, Server, Servers
from quorate.tokens import Tokens

# The most bytes of one answer; the largest that a server sends are pages of a thousand records.
MOST_BYTES = 64 << 20

# How long a stream may be silent, in seconds. Servers send a message at least every few seconds.
SILENCE = 20.0

# The codes of answers without the JSON of a server, which a gateway gave; every other status is unknown. It is the table
# of docs/clients.md.
_GATEWAY_CODES = {400: "internal", 401: "unauthenticated", 403: "permission_denied", 404: "unimplemented",
                  405: "unimplemented", 408: "unavailable", 413: "invalid_argument", 414: "invalid_argument",
                  425: "unavailable", 429: "unavailable", 431: "invalid_argument", 501: "unimplemented",
                  502: "unavailable", 503: "unavailable", 504: "unavailable"}

# The codes of servers.
_SERVER_CODES = frozenset(["canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found",
                           "already_exists", "permission_denied", "resource_exhausted", "failed_precondition",
                           "aborted", "out_of_range", "unimplemented", "internal", "unavailable", "data_loss",
                           "unauthenticated"])

_STALE = (http.client.BadStatusLine, ConnectionResetError, BrokenPipeError)  # RemoteDisconnected is a BadStatusLine


class Transport:
    """Sends requests to the servers of a cluster. Safe for concurrent use."""

    def __init__(self, servers: Servers, pool: Pool, tokens: Optional[Tokens]) -> None:
        self.servers = servers
        self._pool = pool
        self.tokens = tokens

    def exchange(self, index: int, path: str, body: bytes, timeout: float, is_repeatable: bool = True) -> Any:
        """Makes one attempt at one server within timeout seconds. Returns the JSON object of the answer, or raises
        QuorateError. A server that refuses a token which its source has replaced meanwhile is asked once more."""
        until = time.monotonic() + timeout
        token = self.tokens.current() if self.tokens else None
        try:
            return self._exchange(index, path, body, until, token, is_repeatable)
        except QuorateError as e:
            if not (self.tokens and e.is_answer and e.code == "unauthenticated"):
                raise
            newer = self.tokens.current()
            if newer == token:
                raise
            return self._exchange(index, path, body, until, newer, is_repeatable)

    def _exchange(self, index: int, path: str, body: bytes, until: float, token: Optional[str],
                  is_repeatable: bool) -> Any:
        server = self.servers.all[index]
        connection, was_used = self._connect(index, until, is_new=not is_repeatable)
        try:
            try:
                response = self._send(connection, server, path, body, until, token)
            except _STALE:
                # The server has closed a connection that was idle; calls have ids, so that they may be sent again.
                if not was_used:
                    raise
                connection.close()
                connection, _ = self._connect(index, until, is_new=True)
                response = self._send(connection, server, path, body, until, token)
            content = _read_all(connection, response, until)
        except (OSError, http.client.HTTPException) as e:
            connection.close()
            raise _network_error(server, e, was_sent=True) from e
        except BaseException:
            connection.close()
            raise
        try:
            answer = _parse_answer(server, response, content)
        except QuorateError:
            self._keep(index, connection, response)
            raise
        wrong = find_other_id(body, answer)
        if wrong:
            connection.close()
            self._pool.close()  # another process or thread may read from these too
            raise QuorateError("unavailable", wrong, server=server.name)
        self._keep(index, connection, response)
        return answer

    def _keep(self, index: int, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        if response.will_close:
            connection.close()
        else:
            self._pool.give_back(index, connection)

    def _connect(self, index: int, until: float, is_new: bool) -> Any:
        try:
            return self._pool.take(index, max(until - time.monotonic(), 0.001), is_new)
        except OSError as e:
            raise _network_error(self.servers.all[index], e, was_sent=False) from e

    def _send(self, connection: http.client.HTTPConnection, server: Server, path: str, body: bytes, until: float,
              token: Optional[str]) -> http.client.HTTPResponse:
        left = max(until - time.monotonic(), 0.001)
        connection.sock.settimeout(left)
        headers = _headers("application/json", token)
        headers["Connect-Timeout-Ms"] = str(max(int(left * 1000), 1))
        connection.request("POST", server.path + path, body, headers)
        return connection.getresponse()

    def connect_stream(self, index: int) -> RawStream:
        """Connects to a server for one stream, or raises QuorateError."""
        server = self.servers.all[index]
        token = self.tokens.current() if self.tokens else None
        try:
            return RawStream(server, self._pool.connect(index, SILENCE), token)
        except OSError as e:
            raise _network_error(server, e, was_sent=False) from e


def _headers(content_type: str, token: Optional[str]) -> Dict[str, str]:
    headers = {"Content-Type": content_type, "Connect-Protocol-Version": "1", "User-Agent": "quorate-python"}
    if token is not None:
        headers["Authorization"] = "Bearer " + token
    return headers


class RawStream:
    """The messages of one stream as JSON objects. Use it in one thread; close may be called from another one."""

    def __init__(self, server: Server, connection: http.client.HTTPConnection, token: Optional[str]) -> None:
        self.server = server
        self.token = token
        self.is_closed = False
        self._connection = connection
        self._sock = connection.sock  # the connection forgets it if the answer ends with the connection
        self._sock.settimeout(SILENCE)
        self._response: Optional[http.client.HTTPResponse] = None
        self._pid = os.getpid()

    def open(self, path: str, request: Any) -> None:
        """Sends the request and waits for the begin of the answer. Raises QuorateError."""
        message = json.dumps(request).encode()
        try:
            self._connection.request("POST", self.server.path + path, b"\0" + len(message).to_bytes(4, "big") + message,
                                     _headers("application/connect+json", self.token))
            self._response = self._connection.getresponse()
            if self._response.status != 200:
                _parse_answer(self.server, self._response, self._response.read(1 << 20))
        except (OSError, http.client.HTTPException, AttributeError) as e:  # the last one if it is closed meanwhile
            self.close()
            raise _network_error(self.server, e, was_sent=True) from e
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                head = self._read(5)
                content = self._read(int.from_bytes(head[1:], "big"))
                if head[0] & 2:
                    end = json.loads(content or b"{}")
                    if end.get("error"):
                        raise error_of(end["error"], self.server)
                    return
                yield json.loads(content)
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as e:
            if self.is_closed:
                return
            raise _network_error(self.server, e, was_sent=True) from e
        finally:
            self.close()

    def _read(self, size: int) -> bytes:
        if size > MOST_BYTES:
            raise ValueError("a message of %d bytes is larger than %d" % (size, MOST_BYTES))
        assert self._response is not None
        if self._pid != os.getpid():
            raise ConnectionError("the stream belongs to the process that this one was forked from")
        data = self._response.read(size)
        if len(data) < size:
            raise http.client.IncompleteRead(data, size - len(data))
        return data

    def close(self) -> None:
        """Ends the stream. A thread that waits for its next message returns."""
        self.is_closed = True
        try:
            if self._pid == os.getpid():  # the parent of a forked process goes on reading
                self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is closed already
        self._connection.close()
        self._sock.close()
        if self._response is not None:
            self._response.close()


def _read_all(connection: http.client.HTTPConnection, response: http.client.HTTPResponse, until: float) -> bytes:
    """Reads an answer until its end, so that a connection that breaks meanwhile fails like one that cannot be made."""
    parts, size = [], 0
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise socket.timeout("the answer took too long")
        if connection.sock is not None:
            connection.sock.settimeout(left)
        part = response.read1(1 << 16) if response.length != 0 else b""
        if not part:
            break
        size += len(part)
        if size > MOST_BYTES:
            raise http.client.HTTPException("the answer is larger than %d bytes" % MOST_BYTES)
        parts.append(part)
    response.read()  # notes that the answer has ended, so that the connection may be used again
    return b"".join(parts)


def _parse_answer(server: Server, response: http.client.HTTPResponse, content: bytes) -> Any:
    if 300 <= response.status < 400:
        target = response.headers.get("Location", "another address")
        raise QuorateError("unimplemented", "the server redirects to %s, and redirects are not followed: name the "
                           "address of a server itself" % target, server=server.name)
    body: Any = None
    try:
        body = json.loads(content)
    except ValueError:
        pass
    if response.status == 200:
        if isinstance(body, dict):
            return body
        raise QuorateError("internal", "HTTP 200 without an answer in JSON", server=server.name)
    if isinstance(body, dict) and isinstance(body.get("code"), str) and body["code"] in _SERVER_CODES:
        raise error_of(body, server)
    raise _gateway_error(server, response, content)


def _gateway_error(server: Server, response: http.client.HTTPResponse, content: bytes) -> QuorateError:
    """Returns the failure that an answer without the JSON of a server stands for. A status below 500 says that the
    gateway refused the request before a server had all of it."""
    code, advice, status = _GATEWAY_CODES.get(response.status, "unknown"), "", response.status
    if b"HTTP request to an HTTPS server" in content:
        code, advice = "unavailable", ": the server uses TLS: use https://" + server.name
    seconds = _retry_after(response.headers.get("Retry-After", ""))
    details: List[Dict[str, Any]] = []
    if seconds is not None:
        details.append({"type": "google.rpc.RetryInfo", "debug": {"retryDelay": "%.3fs" % seconds}})
    return QuorateError(code, "HTTP %d without an answer of a server%s" % (status, advice), details,
                        was_sent=status >= 500 and status != 501, server=server.name)


def _retry_after(header: str) -> Optional[float]:
    """Returns the seconds of the header Retry-After, or those until its date; None if there is none."""
    if header.isdecimal():
        return float(min(int(header[:9]), 3600))
    try:
        return max(email.utils.parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return None


def find_other_id(body: bytes, answer: Dict[str, Any]) -> str:
    """Returns what is wrong with an answer that is about another allocation than the request; empty if nothing is. A
    connection that something else reads from too, or a proxy that mixes answers up, must not look like a grant."""
    request = json.loads(body)
    asked: List[Any] = [request.get("id")]
    told = [answer]
    if isinstance(answer.get("outcomes"), list):
        elements = request.get("requests") or request.get("renewals") or request.get("ids") or []
        asked = [e.get("id") if isinstance(e, dict) else e for e in elements]
        told = [next((o[k] for k in ("granted", "released", "renewed") if isinstance(o.get(k), dict)), {})
                for o in answer["outcomes"]]
    for id, part in zip(asked, told):
        record = part.get("allocation")
        got = record.get("id") if isinstance(record, dict) else None
        if id and got and id != got:
            return 'the answer is about "%s" instead of "%s": something else reads from this connection' % (got, id)
    return ""


def error_of(body: Dict[str, Any], server: Optional[Server] = None) -> QuorateError:
    """Returns the error of an error's JSON object."""
    return QuorateError(body.get("code", "unknown"), body.get("message", ""), body.get("details"), is_answer=True,
                        server=server.name if server else "")


def _network_error(server: Server, e: BaseException, was_sent: bool) -> QuorateError:
    broken = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
    if isinstance(e, ssl.SSLError) and not isinstance(e, broken) and not (was_sent and "ALERT" not in str(e).upper()):
        return CertificateError("unavailable", _tls_advice(e), was_sent=False, server=server.name)
    code = "deadline_exceeded" if isinstance(e, socket.timeout) else "unavailable"
    if not was_sent:
        code = "unavailable"
    text = str(e) or type(e).__name__
    return QuorateError(code, text, was_sent=was_sent, server=server.name)


def _tls_advice(e: ssl.SSLError) -> str:
    text = str(e)
    if isinstance(e, ssl.SSLCertVerificationError):
        if "mismatch" in text or "not valid for" in text:
            return "the server's certificate is for other hosts: use one of them: " + text
        if "expired" in text:
            return "the server's certificate is not valid at this time: renew it, or check the clocks: " + text
        return "the server's certificate is from an authority that is not trusted here: name the authority of the " \
               "cluster (ca): " + text
    upper = text.upper()
    if "CERTIFICATE_REQUIRED" in upper:
        return "the server requires a client certificate: name one with its key (cert, key): " + text
    if "ALERT" in upper:
        return "the server rejects this client's certificate: " + text
    if "WRONG_VERSION_NUMBER" in upper or "HTTP_REQUEST" in upper:
        return "the server does not use TLS: use http://: " + text
    return text
