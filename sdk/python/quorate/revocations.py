"""Long leases learn of a revocation by a stream, short ones by their next renewal soon enough."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Callable, Dict, Optional, Tuple

from quorate.errors import QuorateError
from quorate.lease import Lease
from quorate.process import watch_forks
from quorate.v1.common import AllocationRef
from quorate.v1.event import AllocationChangeKind, WatchEventsRequest
from quorate.watch import AllocationWatch

if TYPE_CHECKING:
    from quorate.client import Client

# The TTL above which leases are watched, in seconds.
WATCHED_TTL = 10.0
# The most ids that a stream can be limited to. With more leases the stream is not limited.
MOST_WATCHED = 1000
# The pause that lets leases which are added one after the other share one new stream, and that after a stream that was
# refused, in seconds.
_RESTART_PAUSE = 1.0
_REFUSED_PAUSE = 10.0

_CHANGES = frozenset([AllocationChangeKind.REVOKED, AllocationChangeKind.ENDED, AllocationChangeKind.SHRUNK,
                      AllocationChangeKind.RESIZED, AllocationChangeKind.RESIZE_WAITING,
                      AllocationChangeKind.RESIZE_DROPPED])


class RevocationWatcher:
    """Follows the revocations and ends of long leases. An event only makes the renewer renew the lease, and the answer
    to that counts. The next renewal therefore learns what a broken stream missed, and errors of the stream are not
    reported."""

    def __init__(self, client: Client, renew_now: Callable[[Lease], None]) -> None:
        self._client = client
        self._renew_now = renew_now
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        """Begins without leases and threads."""
        self._lock = threading.Lock()
        self._watched: Dict[Tuple[str, str], Lease] = {}
        self._is_running = False
        self._changed = threading.Event()
        self._watch: Optional[AllocationWatch] = None

    def add(self, lease: Lease) -> None:
        """Watches a lease if its TTL is long."""
        if lease.ttl <= WATCHED_TTL or lease.is_over:
            return
        with self._lock:
            self._watched[lease.namespace, lease.id] = lease
            if self._is_running:
                if self._watch is not None and not self._changed.is_set():
                    self._changed.set()
                    timer = threading.Timer(_RESTART_PAUSE, self._watch.close)
                    timer.daemon = True
                    timer.start()
                return
            self._is_running = True
        threading.Thread(target=self._watch_loop, name="quorate-revocations", daemon=True).start()

    def drop(self, lease: Lease) -> None:
        """Stops watching a lease. The stream continues with more ids than necessary, and ends with the last lease."""
        with self._lock:
            if self._watched.get((lease.namespace, lease.id)) is lease:
                del self._watched[lease.namespace, lease.id]
            if self._watched:
                return
            self._changed.set()
            watch = self._watch
        if watch is not None:
            watch.close()

    def _watch_loop(self) -> None:
        position = WatchEventsRequest()
        while True:
            with self._lock:
                if not self._watched:
                    self._is_running = False
                    return
                self._changed.clear()
                names = list(self._watched) if len(self._watched) <= MOST_WATCHED else []
                watch = AllocationWatch(self._client, WatchEventsRequest(
                    allocations=[AllocationRef(namespace=namespace, id=id) for namespace, id in names],
                    after_index=position.after_index, after_number=position.after_number))
                self._watch = watch
            try:
                for event in watch:
                    position.after_index, position.after_number = event.index, event.number
                    change = event.change
                    changed = change.allocation if change else None
                    lease = self._watched.get((changed.namespace, changed.id)) if changed else None
                    if change is not None and lease is not None and change.kind in _CHANGES:
                        self._renew_now(lease)
            except QuorateError:
                # It was refused, perhaps because the servers forgot its position.
                position = WatchEventsRequest()
                self._changed.wait(_REFUSED_PAUSE)
            finally:
                watch.close()
