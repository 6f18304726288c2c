"""A server whose answers a test writes."""

from __future__ import annotations

import json
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Sequence, Tuple

import quorate

# What a test answers: a status with a JSON object, or a list of the messages of a stream.
Answer = Tuple[int, Any]


class FakeServer:
    """Listens on a port of this machine, and notes what it is asked."""

    def __init__(self, answer: Callable[[str, Any], Answer]) -> None:
        self.asked: List[Tuple[str, Any]] = []
        self.headers: List[Dict[str, str]] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_stream = self.headers["Content-Type"].startswith("application/connect+")
                request = json.loads(body[5:] if is_stream else body)
                method = self.path.rsplit("/", 1)[1]
                fake.asked.append((method, request))
                fake.headers.append({k.lower(): v for k, v in self.headers.items()})
                status, content = answer(method, request)
                if status == 0:
                    self.close_connection = True
                    return
                data = json.dumps(content).encode()
                if is_stream and status == 200:
                    data = b"".join(frame(m) for m in content)
                self.send_response(status)
                self.send_header("Content-Type", self.headers["Content-Type"])
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                try:
                    self.wfile.write(data)
                except OSError:
                    pass  # the client has given up

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Stops listening."""
        self._http.shutdown()
        self._http.server_close()


def frame(message: Any) -> bytes:
    """Returns the envelope of a message; an object with the key end ends the stream."""
    is_end = "end" in message
    data = json.dumps(message["end"] if is_end else message).encode()
    return bytes([2 if is_end else 0]) + len(data).to_bytes(4, "big") + data


def problem(code: str, reason: str, not_applied: bool = True, retry: str = "") -> Any:
    """Returns the body of an error."""
    details = [{"type": "quorate.v1.Problem", "value": "", "debug": {"reason": reason, "notApplied": not_applied}}]
    if retry:
        details.append({"type": "google.rpc.RetryInfo", "value": "", "debug": {"retryDelay": retry}})
    return {"code": code, "message": reason, "details": details}


def grant(id: str, ttl_ms: int = 0, **more: Any) -> Any:
    """Returns the body of a grant at ledger time 1,000."""
    record = {"id": id, "state": "ALLOCATION_STATE_HELD", "fence": "7", **more}
    if ttl_ms:
        record.update(ttlMs=str(ttl_ms), expiresLedgerMs=str(1000 + ttl_ms))
    return {"allocation": record, "decision": {"outcome": "OUTCOME_GRANTED"}, "write": {"ledgerTimeMs": "1000"}}


class ClientTest(unittest.TestCase):
    """Closes the servers and clients that it makes."""

    def start(self, answer: Callable[[str, Any], Answer]) -> FakeServer:
        """Starts a server."""
        server = FakeServer(answer)
        self.addCleanup(server.close)
        return server

    def client(self, servers: Sequence[str], **options: Any) -> quorate.Client:
        """Makes a client."""
        client = quorate.Client(servers, **options)
        self.addCleanup(client.close)
        return client
