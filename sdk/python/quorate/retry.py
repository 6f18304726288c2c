"""Calls that are repeated until a server answers."""

from __future__ import annotations

import json
import random
import time
from typing import Any, Callable, Optional, Set, Type, TypeVar

from quorate.errors import CertificateError, QuorateError
from quorate.message import Message
from quorate.names import with_ids
from quorate.process import now
from quorate.service import Stream
from quorate.transport import RawStream, Transport

M = TypeVar("M", bound=Message)

# Pauses between attempts grow from the first to the longest, in seconds, each randomized by half, so that the clients
# of a cluster that elects a leader do not all retry at the same moment.
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
_GROWTH = 1.5

# Methods that would do something else when they are repeated: make another token, or find the secret spent.
_UNREPEATABLE = frozenset("/quorate.admin.v1.AccessService/" + m for m in ("Bootstrap", "CreateToken", "RotateToken"))


class Pauses:
    """The pauses between attempts."""

    def __init__(self) -> None:
        self._interval = FIRST_PAUSE

    def next(self, last: Optional[QuorateError]) -> float:
        """Returns the next pause, at least as long as the last failure asked for. That is lengthened by up to half, so
        that the callers that a server refused do not all return at the same moment."""
        pause = self._interval * random.uniform(0.5, 1.5)
        self._interval = min(self._interval * _GROWTH, LONGEST_PAUSE)
        asked = last.retry_after if last else None
        return max(pause, asked * random.uniform(1, 1.5)) if asked else pause


class Attempt:
    """Controls the attempts of a call, and says when the last one was sent, on the clock of leases."""

    def __init__(self, timeout: Optional[float] = None) -> None:
        self.timeout = timeout
        """If not None, one attempt is made only, which may take so long."""
        self.sent_at = 0.0


class Retrier:
    """Makes calls, each at one server after the other until one answers. Safe for concurrent use."""

    def __init__(self, transport: Transport, attempt_timeout: float, patience: float, retries: bool,
                 notice: Callable[[QuorateError], None], namespace: str = "") -> None:
        self.transport = transport
        self.namespace = namespace
        self.attempt_timeout = attempt_timeout
        self.patience = patience
        self.retries = retries
        self.notice = notice
        # What makes a single attempt at a server within a time; the joiner takes its place.
        self.send: Callable[[int, str, Any, float], Any] = self.send_alone

    def send_alone(self, index: int, path: str, request: Any, timeout: float) -> Any:
        """Makes one attempt of one call."""
        body = json.dumps(request, separators=(",", ":")).encode()
        return self.transport.exchange(index, path, body, timeout, is_repeatable=path not in _UNREPEATABLE)

    def call(self, path: str, request: Message, answer: Type[M], timeout: Optional[float] = None) -> M:
        """Calls until a server answers, at most for timeout seconds. The request is not changed."""
        return self.call_controlled(path, request, answer, timeout, Attempt())

    def call_controlled(self, path: str, request: Message, answer: Type[M], timeout: Optional[float],
                        attempt: Attempt) -> M:
        """As call, under the control of attempt."""
        sent = with_ids(request, self.namespace).to_json()
        until = time.monotonic() + (self.patience if timeout is None else timeout)
        if attempt.timeout is not None or not self.retries:
            return self._decode(answer, self._attempt(path, sent, until, attempt))
        return self._decode(answer, self._until_answered(path, sent, until, attempt))

    def _decode(self, answer: Type[M], content: Any) -> M:
        try:
            return answer.from_json(content)
        except (TypeError, ValueError) as e:
            raise QuorateError("internal", "the answer does not fit its message: %s" % e) from e

    def _until_answered(self, path: str, request: Any, until: float, attempt: Attempt) -> Any:
        failure: Optional[QuorateError] = None
        pauses, attempts = Pauses(), 0
        refusing: Set[str] = set()
        while True:
            attempts += 1
            try:
                return self._attempt(path, request, until, attempt)
            except QuorateError as e:
                if not e.is_transient or path in _UNREPEATABLE and e.may_be_done:
                    raise
                failure = _more_serious(failure, e)
                if isinstance(e, CertificateError):
                    refusing.add(e.server)
                    if len(refusing) == len(self.transport.servers.all):
                        raise
                pause = pauses.next(e)
                if time.monotonic() + pause >= until:
                    failure.args = ("no answer after %d attempts: %s" % (attempts, failure),)
                    raise failure
                self.notice(e)
            time.sleep(pause)

    def _attempt(self, path: str, request: Any, until: float, attempt: Attempt) -> Any:
        """Makes one attempt at the current server, and moves on to the next server if that fails."""
        servers = self.transport.servers
        index = servers.current()
        limit = attempt.timeout
        if limit is None:
            limit = self.attempt_timeout + request.get("pollMs", 0) / 1000
        attempt.sent_at = now()
        left = until - time.monotonic()
        try:
            return self.send(index, path, request, max(min(limit, left), 0.001))
        except QuorateError as e:
            if e.is_transient and (e.code != "deadline_exceeded" or left > limit):
                servers.advance_from(index)
            raise

    def stream(self, path: str, request: Message, answer: Type[M]) -> Stream[M]:
        """Opens a stream at the current server."""
        raw = self.transport.connect_stream(self.transport.servers.current())
        raw.open(path, with_ids(request, self.namespace).to_json())
        return TypedStream(raw, answer)


class TypedStream(Stream[M]):
    """The messages of one stream."""

    def __init__(self, raw: RawStream, answer: Type[M]) -> None:
        self.raw = raw
        self._answer = answer
        self._messages = iter(raw)

    def __iter__(self) -> TypedStream[M]:
        return self

    def __next__(self) -> M:
        return self._answer.from_json(next(self._messages))

    def __enter__(self) -> TypedStream[M]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream."""
        self.raw.close()


def _more_serious(before: Optional[QuorateError], now: QuorateError) -> QuorateError:
    """Chooses the failure to report: one after which a write may have been carried out takes precedence."""
    return before if before is not None and before.may_be_done and not now.may_be_done else now
