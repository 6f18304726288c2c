"""Renewals: the leases of a client that are due together are renewed in one call."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Set

from quorate.errors import ENDED, PREEMPTED, TAKEN, LeaseLost, QuorateError
from quorate.join import error_of_failure
from quorate.lease import RENEW_PART, Lease, revoker_of
from quorate.process import now, watch_forks
from quorate.retry import FIRST_PAUSE, LONGEST_PAUSE, Attempt
from quorate.revocations import RevocationWatcher
from quorate.v1.allocation import BatchRenewRequest, BatchRenewResponse, RenewOutcome, RenewRequest

if TYPE_CHECKING:
    from quorate.client import Client

# The most renewals in one call.
MOST_RENEWALS = 1000
# A renewal is randomized by a tenth, and made up to a sixth of the TTL earlier if a call is made for another lease.
_SPREAD = 0.1
_EARLY_PART = 6
# An attempt to renew may take a sixth of the shortest TTL in it, so that several fit before the lease ends for its
# holder, but at least SHORTEST_ATTEMPT seconds.
_ATTEMPT_PART = 6
SHORTEST_ATTEMPT = 0.05
# Waiting threads do not count the time in which the machine is suspended, so they look at the clock this often.
_LONGEST_SLEEP = 1.0

_PATH = "/quorate.v1.AllocationService/BatchRenew"


class Renewer:
    """Renews the leases of one client. Its two threads run while there are any: one makes the calls, and the other ends
    leases at their safe moments, also while a call hangs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._revocations = RevocationWatcher(client, self.renew_now)
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        """Begins without leases and threads."""
        self._condition = threading.Condition(threading.RLock())
        self._due: Dict[Lease, float] = {}
        self._failures = 0
        self._running: Set[str] = set()

    def add(self, lease: Lease) -> None:
        """Starts renewing a lease, which has a TTL."""
        with self._condition:
            self._due[lease] = now() + self.renew_in(lease)
            self._start("quorate-renew", self._renew_loop)
            self._start("quorate-expire", self._expire_loop)
            self._condition.notify_all()
        self._revocations.add(lease)

    def _start(self, name: str, loop: Callable[[str], None]) -> None:
        if name not in self._running:
            self._running.add(name)
            threading.Thread(target=loop, args=(name,), name=name, daemon=True).start()

    def drop(self, lease: Lease) -> None:
        """Stops renewing a lease."""
        with self._condition:
            self._due.pop(lease, None)
            self._condition.notify_all()
        self._revocations.drop(lease)

    def renew_now(self, lease: Lease) -> None:
        """Makes a lease due now."""
        with self._condition:
            if lease in self._due:
                self._due[lease] = now()
                self._condition.notify_all()

    @staticmethod
    def renew_in(lease: Lease) -> float:
        """Returns after how many seconds to renew a lease that was just renewed."""
        return _spread(lease.ttl / RENEW_PART)

    def _expire_loop(self, name: str) -> None:
        """Ends each lease at its safe moment, until there are no leases. A revoked lease is no longer renewed and stays
        in due until it ends."""
        while True:
            with self._condition:
                if not self._due:
                    self._running.discard(name)
                    return
                at = now()
                over = [lease for lease in self._due if lease.safe_moment <= at]
                if not over:
                    first = min(lease.safe_moment for lease in self._due)
                    self._condition.wait(max(0.0, min(first - at, _LONGEST_SLEEP)))
                    continue
            for lease in over:
                lease.expire_if_due()

    def _renew_loop(self, name: str) -> None:
        while True:
            with self._condition:
                if not self._due:
                    self._running.discard(name)
                    return
                batch = self._next_batch(now())
                if not batch:
                    self._condition.wait(max(0.0, min(min(self._due.values()) - now(), _LONGEST_SLEEP)))
                    continue
            self._renew_batch(batch)

    def _next_batch(self, at: float) -> List[Lease]:
        if min(self._due.values()) > at:
            return []
        soon = [lease for lease, due in self._due.items() if due - lease.ttl / _EARLY_PART <= at]
        soon.sort(key=lambda lease: (self._due[lease], lease.id))
        return soon[:MOST_RENEWALS]

    def _renew_batch(self, batch: List[Lease]) -> None:
        """Makes one attempt to renew leases in one call. A batch that was not answered is retried at another server."""
        limit = min([self._client._retrier.attempt_timeout] +
                    [max(lease.ttl / _ATTEMPT_PART, SHORTEST_ATTEMPT) for lease in batch])
        attempt = Attempt(limit)
        request = BatchRenewRequest(renewals=[
            RenewRequest(namespace=lease.namespace, id=lease.id, fence=lease.fence) for lease in batch])
        try:
            answer = self._client._retrier.call_controlled(_PATH, request, BatchRenewResponse, None, attempt)
            if len(answer.outcomes) != len(batch):
                raise QuorateError("internal", "%d leases were renewed, and %d outcomes came back" %
                                   (len(batch), len(answer.outcomes)))
        except QuorateError as e:
            self._retry_later(batch, e)
            return
        self._failures = 0
        for lease, outcome in zip(batch, answer.outcomes):
            again = self._apply_outcome(lease, outcome, attempt.sent_at)
            if again is not None:
                self._set_due(lease, now() + again)

    def _set_due(self, lease: Lease, due: float) -> None:
        with self._condition:
            if lease in self._due:
                self._due[lease] = due
                self._condition.notify_all()

    def _apply_outcome(self, lease: Lease, outcome: RenewOutcome, sent_at: float) -> Optional[float]:
        """Applies the outcome of a renewal. Returns after how many seconds to renew again; None if the lease is
        over."""
        renewed, failure = outcome.renewed, outcome.failure
        if renewed is not None and renewed.allocation is not None and renewed.write is not None:
            lease.extend(renewed.allocation, sent_at, renewed.write.ledger_time_ms)
            # Renewals do not extend a revoked lease.
            return 3600.0 * 24 if renewed.allocation.revoked_by is not None else self.renew_in(lease)
        error = error_of_failure(failure.to_json() if failure else {})
        if error.code not in ("not_found", "failed_precondition", "aborted"):
            lease.note_failure(error)
            return max(lease.ttl / _ATTEMPT_PART, FIRST_PAUSE)
        by = revoker_of(lease.allocation)
        how = TAKEN if error.code == "aborted" else PREEMPTED if by else ENDED
        lease.end(LeaseLost(lease.id, how, by, error))
        return None

    def _retry_later(self, batch: List[Lease], failure: QuorateError) -> None:
        """Makes leases due after a pause that grows with the failures in a row."""
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures, 10))
        pause = max(pause, failure.retry_after or 0.0)
        self._failures += 1
        for lease in batch:
            lease.note_failure(failure)
            self._set_due(lease, now() +
                          _spread(min(pause, max(lease.ttl / _ATTEMPT_PART, FIRST_PAUSE))))


def _spread(seconds: float) -> float:
    return seconds * random.uniform(1 - _SPREAD, 1 + _SPREAD)
