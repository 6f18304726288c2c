"""A lease that is renewed in the background."""

from __future__ import annotations

import math
import os
import threading
from typing import TYPE_CHECKING, Callable, List, Optional

from quorate.errors import PREEMPTED, UNRENEWED, LeaseEnded, LeaseInherited, LeaseLost, LeaseReleased, QuorateError
from quorate.process import now, watch_forks
from quorate.v1.allocation import Allocation, HeldClaim, ReleaseRequest
from quorate.v1.decision import EndReasonKind

if TYPE_CHECKING:
    from quorate.client import Client

# How long before the end of its TTL a lease ends for its holder: a tenth of the TTL and at most LONGEST_MARGIN seconds,
# unless the caller chose another.
MARGIN_PART = 10
LONGEST_MARGIN = 3.0
# A lease is renewed when a third of its TTL is over.
RENEW_PART = 3

OnLost = Callable[["Lease", LeaseLost], None]


class Lease:
    """An allocation that is renewed in the background until it is released or lost. Safe for concurrent use.

    A holder that cannot renew does not know what the servers do meanwhile. A lease therefore ends for its holder by the
    holder's own monotonic clock: a TTL after the last successful renewal was sent, less a margin. Until then no other
    allocation holds the same, unless the lease was preempted without notice. The clock counts the time in which the
    machine is suspended. Use the fence where a late step must do no harm.

    A lease belongs to the process that acquired it. In a forked process check raises LeaseInherited, and leaving the
    with block releases nothing.

        with client.acquire(request) as lease:
            while work_is_left():
                lease.check()  # raises LeaseLost
                do_some_work()
    """

    def __init__(self, client: Client, record: Allocation, fence: int, margin: Optional[float],
                 on_lost: Optional[OnLost]) -> None:
        self._client = client
        self._record = record
        self._margin = margin
        self._on_lost = on_lost
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._ending: Optional[LeaseEnded] = None
        self._failure: Optional[BaseException] = None
        self._safe = math.inf
        self._ends = math.inf
        self.id = record.id
        """The id of the allocation."""
        self.namespace = record.namespace
        """The namespace of the id."""
        self.fence = fence
        """The token of the grant. It is larger than that of every earlier grant, so a resource that the lease guards
        should reject a token smaller than the largest that it has seen."""
        self.revoked = threading.Event()
        """Is set when the lease is revoked for another allocation. The lease still lasts for its time of grace, see
        remaining; a holder that stops earlier should release it. The record names the other one."""
        self._pid = os.getpid()
        watch_forks(self)

    def __repr__(self) -> str:
        what = ", ".join(_describe_claim(claim) for claim in self._record.claims) or "nothing"
        ending = self._ending
        state = str(ending) if ending else "%.1f s left" % self.remaining() if self.ttl else "no TTL"
        return "<Lease %r of %s, fence %d: %s>" % (self.id, what, self.fence, state)

    def after_fork(self) -> None:
        """Ends the lease in a forked process. For use by this package."""
        self._lock = threading.RLock()
        self._ended, self.revoked = threading.Event(), threading.Event()
        self._ended.set()
        if self._ending is None:
            self._ending = LeaseInherited(self.id, self._pid)

    @property
    def allocation(self) -> Allocation:
        """The record of the last answer. Do not change it."""
        return self._record

    @property
    def items(self) -> List[str]:
        """The names of the items that the lease holds, in the order of its claims."""
        return [item.name for claim in self._record.claims for item in claim.items]

    @property
    def is_over(self) -> bool:
        """True when the lease was released or lost."""
        return self._ended.is_set()

    @property
    def ending(self) -> Optional[LeaseEnded]:
        """Why the lease is over: LeaseLost or LeaseReleased; None while it is held."""
        return self._ending

    def check(self) -> None:
        """Raises LeaseLost or LeaseReleased if the lease is over. Call it before each step that needs the lease: it
        looks at the clock, while the thread that ends leases may be late on a busy machine."""
        self.expire_if_due()
        if self._ending is not None:
            raise self._ending

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the lease is over, at most timeout seconds, and returns whether it is."""
        return self._ended.wait(timeout)

    def remaining(self) -> float:
        """Returns for how many seconds the lease is certain to be held without another renewal: 0 when it is over, and
        infinity if it has no TTL."""
        with self._lock:
            return 0.0 if self._ended.is_set() else max(0.0, self._safe - now())

    def ends_in(self) -> float:
        """Returns in how many seconds the servers may end the lease at the earliest unless it is renewed. The holder
        must have stopped by then. It is over a margin earlier."""
        with self._lock:
            return self._ends - now()

    def release(self, item_state: str = "", timeout: Optional[float] = None) -> None:
        """Releases the allocation. The lease is over at once, before the servers are called. item_state is the state of
        the returned items; empty means the state that their resource defines. Releasing a lease that has ended is not
        an error. If no server answers, the allocation ends with its TTL; release may be repeated. In a process that was
        forked from the holder it raises LeaseInherited and releases nothing."""
        if self._pid != os.getpid():
            raise LeaseInherited(self.id, self._pid)
        self.end(LeaseReleased("the lease was released"))
        try:
            self._client.allocations.release(
                ReleaseRequest(namespace=self.namespace, id=self.id, fence=self.fence, item_state=item_state), timeout)
        except QuorateError as failure:
            if failure.reason != "FENCE_MISMATCH":  # it ended before, and another request has its id now
                raise

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pid == os.getpid() and not isinstance(self._ending, LeaseReleased):
            self.release()

    def end(self, ending: LeaseEnded) -> None:
        """Ends the lease for its holder. Only the first call has an effect. For use by this package."""
        with self._lock:
            if self._ending is not None:
                return
            self._ending = ending
            self._ended.set()
        self._client._renewer.drop(self)
        if self._on_lost is not None and isinstance(ending, LeaseLost):
            self._on_lost(self, ending)

    @property
    def ttl(self) -> float:
        """How many seconds a renewal lasts; 0 if the lease has no TTL."""
        return self._record.ttl_ms / 1000

    def extend(self, record: Allocation, sent_at: float, ledger_ms: int) -> None:
        """Takes the record of an answer whose request was sent at a time. For use by this package."""
        with self._lock:
            if self._ended.is_set():
                return
            self._record, self._failure = record, None
            if record.revoked_by is not None:
                self.revoked.set()
            if not record.expires_ledger_ms:
                return
            self._ends = sent_at + (record.expires_ledger_ms - ledger_ms) / 1000
            self._safe = self._ends - self._margin_of(record.ttl_ms / 1000)

    def _margin_of(self, ttl: float) -> float:
        if self._margin:
            return min(self._margin, ttl / RENEW_PART)
        return min(ttl / MARGIN_PART, LONGEST_MARGIN)

    @property
    def safe_moment(self) -> float:
        """When the lease ends for its holder unless it is renewed, on the clock of quorate.process."""
        return self._safe

    def note_failure(self, failure: BaseException) -> None:
        """Keeps the failure of an attempt to renew. For use by this package."""
        self._failure = failure

    def expire_if_due(self) -> None:
        """Ends the lease at its safe moment, unless a renewal has just extended it. For use by this package."""
        with self._lock:
            if now() < self._safe:
                return
            by = revoker_of(self._record)
            lost = LeaseLost(self.id, PREEMPTED, by) if by else LeaseLost(self.id, UNRENEWED, cause=self._failure)
        self.end(lost)


def revoker_of(record: Allocation) -> str:
    """For whom a lease was revoked: the id of an allocation, after its namespace if that is another one, or a text;
    empty if it was not revoked."""
    by = record.revoked_by
    if by is None:
        return ""
    if not by.id:
        drained = record.reason is not None and record.reason.kind == EndReasonKind.DRAIN
        return "a drain" if drained else "another allocation"
    return by.id if by.namespace == record.namespace else by.namespace + " " + by.id


def _describe_claim(claim: HeldClaim) -> str:
    place = claim.tree + (":" + claim.node if claim.node else "")
    parts = ["%s=%d" % (name, amount) for name, amount in sorted(claim.amounts.items())]
    return " ".join([place] + parts + [item.name for item in claim.items])
