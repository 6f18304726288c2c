"""Waiting for a grant."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from typing import TYPE_CHECKING, Callable, NamedTuple, NoReturn, Optional, TypeVar

from quorate.errors import (ENDED, Cancelled, CertificateError, Denied, LeaseEnded, LeaseLost, QuorateError,
                            Unavailable, WaitTimedOut)
from quorate.lease import MARGIN_PART, Lease, OnLost
from quorate.names import with_ids
from quorate.process import now
from quorate.retry import LONGEST_PAUSE, Attempt
from quorate.v1.allocation import (AllocateRequest, AllocateResponse, Allocation, AllocationState, GetAllocationRequest,
                                   Mode, ReleaseRequest, RenewRequest, RenewResponse)
from quorate.v1.decision import Decision

if TYPE_CHECKING:
    from quorate.client import Client

# How long a server waits for the grant before it answers with the position in the queue, in seconds; less if the caller
# may cancel, because a thread that waits for an answer cannot be interrupted.
POLL_TIME = 10.0
CANCELLABLE_POLL_TIME = 1.0
# The shortest time between two calls, for servers that do not wait.
_POLL_PAUSE = 0.1
# Bounds the call that withdraws a request when its caller stops waiting.
_LEAVE_PATIENCE = 2.0
# The longest wait that the API accepts.
MOST_WAIT = 7 * 24 * 3600.0

_SERVICE = "/quorate.v1.AllocationService/"

R = TypeVar("R")


class Progress(NamedTuple):
    """The state of a waiting request."""

    elapsed: float
    """Seconds since the call."""
    allocation: Allocation
    """The record of the request; its field waiting has the position in the queue."""
    decision: Decision
    """The limits that are in the way now."""


class Acquisition:
    """One call of Client.acquire or Client.wait."""

    def __init__(self, client: Client, request: AllocateRequest, timeout: Optional[float],
                 progress: Optional[Callable[[Progress], None]], cancel: Optional[threading.Event]) -> None:
        self._client = client
        self._began = time.monotonic()
        self._until = None if timeout is None else self._began + timeout
        self._progress = progress
        self._cancel = cancel
        self._last: Optional[AllocateResponse] = None
        self._request = self._prepare(request, timeout)
        self._pid = os.getpid()

    def _prepare(self, request: AllocateRequest, timeout: Optional[float]) -> AllocateRequest:
        """Makes the request that all calls carry: an attempt must not differ from the one before."""
        request = dataclasses.replace(with_ids(request, self._client._retrier.namespace))
        if request.mode in (Mode.UNSPECIFIED, Mode.WAIT):
            request.mode = Mode.WAIT
            if timeout is not None and request.wait_ms is None:
                request.wait_ms = int(min(max(timeout, 1.0), MOST_WAIT) * 1000)
        elif request.mode == Mode.RESERVE:
            raise ValueError("%s makes no lease: leave the mode out, or call client.allocations.allocate" %
                             request.mode.value)
        return request

    def lease(self, margin: Optional[float], on_lost: Optional[OnLost]) -> Lease:
        """Waits for the grant and returns its lease."""
        return self._or_withdraw(lambda: self._lease(margin, on_lost))

    def wait(self) -> "tuple[AllocateResponse, float]":
        """Calls until the request is granted. Returns the answer, and when the call that was answered was sent."""
        return self._or_withdraw(self._wait)

    def _or_withdraw(self, wait: Callable[[], R]) -> R:
        """Withdraws the request if something else than its outcome ends the wait: Ctrl-C, or an exception of a signal
        handler or of progress."""
        try:
            return wait()
        except (QuorateError, LeaseEnded, Cancelled, WaitTimedOut):
            raise
        except BaseException:
            if self._pid == os.getpid():
                self._stop_waiting()
            raise

    def _lease(self, margin: Optional[float], on_lost: Optional[OnLost]) -> Lease:
        answer, sent_at = self._wait()
        assert answer.allocation is not None and answer.write is not None
        lease = Lease(self._client, answer.allocation, answer.allocation.fence, margin, on_lost)
        # A grant that had to wait is renewed at once: its answer may come from a server that lags, and its request may
        # have taken long, so that it does not tell how long the lease lasts from now on.
        if lease.ttl and (self._last is not None or now() - sent_at > lease.ttl / MARGIN_PART):
            try:
                self._renew(lease)
            except QuorateError as e:
                self._fail(e)
        else:
            lease.extend(answer.allocation, sent_at, answer.write.ledger_time_ms)
        if lease.ttl:
            self._client._renewer.add(lease)
        return lease

    def _renew(self, lease: Lease) -> None:
        attempt = Attempt()
        answer = self._client._retrier.call_controlled(
            _SERVICE + "Renew", RenewRequest(namespace=lease.namespace, id=lease.id, fence=lease.fence),
            RenewResponse, self._left(), attempt)
        assert answer.allocation is not None and answer.write is not None
        lease.extend(answer.allocation, attempt.sent_at, answer.write.ledger_time_ms)

    def _wait(self) -> "tuple[AllocateResponse, float]":
        while True:
            if self._cancel is not None and self._cancel.is_set():
                self._stop_waiting()
                raise Cancelled('waiting for "%s" was cancelled' % self._request.id)
            attempt = Attempt()
            try:
                answer = self._client._retrier.call_controlled(
                    _SERVICE + "Allocate", self._request, AllocateResponse, self._left(), attempt)
            except QuorateError as e:
                self._fail(e)
            if answer.allocation is None or answer.allocation.state != AllocationState.WAITING:
                return answer, attempt.sent_at
            self._note_waiting(answer, answer.allocation)
            pause = _POLL_PAUSE - (now() - attempt.sent_at)
            if pause > 0:
                time.sleep(pause)

    def _note_waiting(self, answer: AllocateResponse, record: Allocation) -> None:
        self._last = answer
        # The first call does not wait, so that progress is reported soon.
        poll = POLL_TIME if self._cancel is None else CANCELLABLE_POLL_TIME
        self._request = dataclasses.replace(self._request, poll_ms=int(poll * 1000))
        if self._progress is not None:
            self._progress(Progress(time.monotonic() - self._began, record, answer.decision or Decision()))

    def _left(self) -> float:
        """Returns how many seconds a call may take."""
        if self._until is None:
            return self._client._retrier.patience + POLL_TIME
        return max(self._until - time.monotonic(), 0.001)

    def _fail(self, e: QuorateError) -> NoReturn:
        """Raises the typed error of a failed call, and withdraws the request if the servers may have it."""
        is_late = self._until is not None and time.monotonic() >= self._until - 1.5 * LONGEST_PAUSE
        if e.code == "resource_exhausted" and e.decision is not None:
            raise Denied(e.code, e.message, e.details, is_answer=True, server=e.server) from e
        if self._last is not None and e.reason == "ENDED":
            self._raise_end(e)
        if not e.is_transient:
            raise e
        if self._last is not None or e.may_be_done:
            self._stop_waiting()
        if is_late and self._last is not None:
            raise self._timed_out() from e
        if isinstance(e, CertificateError):
            raise e
        raise Unavailable(e.code, "no server answers: " + str(e.args[0]), e.details, was_sent=e.was_sent) from e

    def _raise_end(self, e: QuorateError) -> NoReturn:
        """Distinguishes a request that timed out in the queue from one that ended otherwise."""
        try:
            record = self._client.allocations.get_allocation(GetAllocationRequest(
                namespace=self._request.namespace, id=self._request.id)).allocation
        except QuorateError:
            record = None
        if record is not None and record.state == AllocationState.TIMED_OUT:
            raise self._timed_out() from e
        raise LeaseLost(self._request.id, ENDED, cause=e)

    def _timed_out(self) -> WaitTimedOut:
        decision = self._last.decision if self._last is not None else None
        return WaitTimedOut(decision or Decision(), time.monotonic() - self._began)

    def _stop_waiting(self) -> None:
        """Removes the request from the queue, or releases what it was granted at the last moment. If no server answers,
        the request leaves the queue when its keep_ms are over."""
        try:
            self._client.allocations.release(ReleaseRequest(
                namespace=self._request.namespace, id=self._request.id), timeout=_LEAVE_PATIENCE)
        except QuorateError as e:
            self._client._retrier.notice(e)
