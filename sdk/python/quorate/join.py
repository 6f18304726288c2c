"""Concurrent calls that are sent together."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Callable, Dict, List, Optional

from quorate.errors import TRANSIENT, QuorateError
from quorate.process import watch_forks

# How many calls or batches of one method are under way at a time while others wait to be joined.
SLOTS = 2
# The most calls in one batch, which is the bound of the API.
MOST_CALLS = 1000
# The most bytes of a batch: servers queue requests of more than 128 KiB apart from small ones.
MOST_BYTES = 96 << 10
# The size from which on a call is not joined, so that it cannot delay many small ones.
MOST_CALL_BYTES = 8 << 10

Send = Callable[[int, str, Any, float], Any]

_SERVICE = "/quorate.v1.AllocationService/"


class Method:
    """A method whose calls can be joined into calls of its batch method."""

    def __init__(self, name: str, elements: str, outcome: str,
                 is_joinable: Callable[[Any], bool] = lambda request: True) -> None:
        self.batch_path = _SERVICE + "Batch" + name
        self.elements = elements
        self.outcome = outcome
        self.is_joinable = is_joinable


# A call with poll_ms waits for its grant, which a batch does not.
_METHODS = {
    _SERVICE + "Allocate": Method("Allocate", "requests", "granted", lambda r: not r.get("pollMs")),
    _SERVICE + "Release": Method("Release", "requests", "released"),
    _SERVICE + "Renew": Method("Renew", "renewals", "renewed"),
}


class Joiner:
    """Joins concurrent attempts of Allocate, Release and Renew into batches. Each caller has its own answer, error,
    deadline and retries, as if it had called alone."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._queues = {path: _Queue(method, send) for path, method in _METHODS.items()}

    def send(self, index: int, path: str, request: Any, timeout: float) -> Any:
        """Makes one attempt of one call, alone or joined with others."""
        queue = self._queues.get(path)
        if queue is None or not queue.method.is_joinable(request):
            return self._send(index, path, request, timeout)
        return queue.call(index, path, request, timeout)


class _Call:
    """A call that waits for a slot, or is in a batch that is under way."""

    def __init__(self, index: int, path: str, request: Any, timeout: float, size: int) -> None:
        self.index = index
        self.path = path
        self.request = request
        self.until = time.monotonic() + timeout
        self.size = size
        self.wakes = threading.Event()
        self.is_taken = False
        self.batch: List[_Call] = []  # not empty if this caller has got a slot, and sends these
        self.answer: Any = None
        self.error: Optional[QuorateError] = None
        self.alone = False


class _Queue:
    """While fewer calls and batches than slots are under way, a call is made at once and on its own. Otherwise it
    waits, in the order of arrival, and is sent with all others that wait when a slot is free again, by the thread of
    the first of them. There is no timer: a batch is as large as the load makes it."""

    def __init__(self, method: Method, send: Send) -> None:
        self.method = method
        self._send = send
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._under_way = 0
        self._waiting: List[_Call] = []

    def call(self, index: int, path: str, request: Any, timeout: float) -> Any:
        size = len(json.dumps(request))
        if size > MOST_CALL_BYTES:
            return self._send(index, path, request, timeout)
        call = _Call(index, path, request, timeout, size)
        with self._lock:
            if self._under_way < SLOTS:
                self._under_way += 1
                call.batch = [call]
            else:
                self._waiting.append(call)
        try:
            if not call.batch and not call.wakes.wait(timeout):
                self._give_up(call)
        except QuorateError:
            raise
        except BaseException:  # Ctrl-C: others may wait for a batch that this caller has to send
            self._abandon(call)
            raise
        if call.batch:
            try:
                self._send_batch(call.batch)
            finally:
                self._leave()
        if call.alone:
            return self._send(index, path, request, max(call.until - time.monotonic(), 0.001))
        if call.error is not None:
            raise call.error
        return call.answer

    def _give_up(self, call: _Call) -> None:
        """Ends the wait of a caller whose time is over. A call that was not taken was certainly not sent."""
        with self._lock:
            if call.wakes.is_set():
                return
            if not call.is_taken:
                self._waiting.remove(call)
        raise QuorateError("deadline_exceeded", "no answer in time to the call that others were joined with"
                           if call.is_taken else "the call was not sent in time", was_sent=call.is_taken)

    def _abandon(self, call: _Call) -> None:
        """Ends the wait of a caller that was interrupted. Those of its batch make their calls alone."""
        with self._lock:
            if call in self._waiting:
                self._waiting.remove(call)
        if call.batch:
            for other in call.batch[1:]:
                other.alone = True
                other.wakes.set()
            self._leave()

    def _leave(self) -> None:
        """Gives a slot back, or to the first caller that waits, who sends a batch of all that may go with its call."""
        with self._lock:
            batch = self._take_calls()
            if not batch:
                self._under_way -= 1
                return
            batch[0].batch = batch
            batch[0].wakes.set()

    def _take_calls(self) -> List[_Call]:
        taken: List[_Call] = []
        kept: List[_Call] = []
        size = 0
        for call in self._waiting:
            if taken and (call.index != taken[0].index or len(taken) == MOST_CALLS or size + call.size > MOST_BYTES):
                kept.append(call)
                continue
            call.is_taken = True
            size += call.size
            taken.append(call)
        self._waiting = kept
        return taken

    def _send_batch(self, batch: List[_Call]) -> None:
        """Makes the call of a batch and distributes its outcomes. If a server refused the batch as such, each caller
        makes its call alone, because what a server says about a batch is not an answer to one call."""
        first = batch[0]
        if len(batch) == 1:
            try:
                first.answer = self._send(first.index, first.path, first.request,
                                          max(first.until - time.monotonic(), 0.001))
            except QuorateError as e:
                first.error = e
            return
        error: Optional[QuorateError] = None
        outcomes: List[Dict[str, Any]] = []
        try:
            request = {self.method.elements: [c.request for c in batch]}
            timeout = max(max(c.until for c in batch) - time.monotonic(), 0.001)
            outcomes = self._send(first.index, self.method.batch_path, request, timeout).get("outcomes", [])
            if len(outcomes) != len(batch):
                raise QuorateError("internal", "%d calls were sent, and %d outcomes came back" %
                                   (len(batch), len(outcomes)))
        except QuorateError as e:
            error = e
        except Exception as e:  # callers must not wait for a thread that has failed
            error = QuorateError("internal", str(e))
        except BaseException:  # nor for one that was interrupted
            for call in batch[1:]:
                call.error = QuorateError("unavailable", "the thread that made the call was interrupted")
                call.wakes.set()
            raise
        for i, call in enumerate(batch):
            if error is None:
                self._apply_outcome(call, outcomes[i])
            elif error.code in TRANSIENT or error.may_be_done or not error.is_answer or error.code == "unauthenticated":
                call.error = error
            else:
                call.alone = True
            call.wakes.set()

    def _apply_outcome(self, call: _Call, outcome: Dict[str, Any]) -> None:
        failure = outcome.get("failure")
        if failure is None:
            call.answer = outcome.get(self.method.outcome, {})
            return
        call.error = error_of_failure(failure)


def error_of_failure(failure: Dict[str, Any]) -> QuorateError:
    """Returns the error that a unary call would have returned."""
    details = [{"type": "quorate.v1." + name.capitalize(), "debug": failure[name]}
               for name in ("decision", "problem") if name in failure]
    return QuorateError(failure.get("code", "unknown"), failure.get("message", ""), details, is_answer=True)
