"""The client of a cluster."""

from __future__ import annotations

import ssl
import threading
from functools import cached_property
from typing import Callable, Optional, Sequence, TypeVar, Union

from quorate import v1, v1beta1
from quorate.admin import v1 as admin
from quorate.acquire import Acquisition, Progress
from quorate.errors import Denied, QuorateError
from quorate.join import Joiner
from quorate.lease import Lease, OnLost
from quorate.message import Message
from quorate.renewer import Renewer
from quorate.retry import Retrier
from quorate.servers import Pool, Servers
from quorate.service import Stream
from quorate.tokens import TokenFile, Tokens, check_servers
from quorate.transport import Transport
from quorate.watch import AllocationWatch, ChangeWatch

M = TypeVar("M", bound=Message)


class Client:
    """The client of one cluster. It fails over between servers, and retries calls that were not answered. Safe for
    concurrent use.

    Retries are safe, for writes too: an allocation has an id and a change of configuration a request id, and the client
    makes the one that the caller leaves empty, once for a call and all its attempts. An answer may therefore say that
    it is repeated although the caller asked once: the answer to an earlier attempt was lost.

    The attributes allocations, trees, items and so on have a method for each call of the API.

    servers: addresses such as "10.0.0.1:7101", or URLs. One suffices, because every node forwards to the leader; with
    more the client can fail over. It calls the first server until that fails, and then the next one that answers.

    token: a token, or a function that returns one and is asked at each attempt. token_file: a file with a token alone
    on one line, which is read again when it changes. Tokens are not sent over http to other machines, unless
    insecure_token is True.

    ca: a file with the authorities to trust; None means those of the system. cert, key: files with the certificate that
    the client presents, and its key. ssl_context replaces the three. With any of them, addresses without a scheme mean
    https.

    attempt_timeout bounds one attempt at one server, in seconds. patience bounds a call without a timeout of its own,
    with all its attempts and pauses. retries=False makes one attempt at each call, for callers with retries of their
    own; renewals of leases are retried nevertheless. join=False sends every call on its own; otherwise concurrent calls
    of allocate, release and renew are joined into batches. notice is called with each failure that is followed by a
    retry. namespace is that of ids in requests without one; empty means that of the caller, which is its user, or
    "default" without a credential.
    """

    def __init__(
        self,
        servers: Sequence[str],
        *,
        token: Union[str, Callable[[], str], None] = None,
        token_file: Optional[str] = None,
        insecure_token: bool = False,
        ca: Optional[str] = None,
        cert: Optional[str] = None,
        key: Optional[str] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
        attempt_timeout: float = 5.0,
        patience: float = 30.0,
        retries: bool = True,
        join: bool = True,
        notice: Callable[[QuorateError], None] = lambda failure: None,
        namespace: str = "",
    ) -> None:
        if attempt_timeout <= 0 or patience <= 0:
            raise ValueError("attempt_timeout and patience must be positive")
        if (cert is None) != (key is None):
            raise ValueError("cert and key belong together: name both files")
        if ssl_context is None and (ca or cert):
            ssl_context = ssl.create_default_context(cafile=ca)
            if cert is not None:
                ssl_context.load_cert_chain(cert, key)
        known = Servers(servers, ssl_context is not None)
        tokens = _tokens(token, token_file)
        if tokens is not None:
            check_servers(known, insecure_token)
        self._pool = Pool(known, ssl_context)
        self._retrier = Retrier(Transport(known, self._pool, tokens), attempt_timeout, patience, retries, notice,
                               namespace)
        self._caller = _Caller(self._retrier)
        if join:
            self._retrier.send = Joiner(self._retrier.send_alone).send
        self._renewer = Renewer(self)

    @cached_property
    def allocations(self) -> v1.AllocationService:
        """Grants, releases and shows allocations."""
        return v1.AllocationService(self._caller)

    @cached_property
    def trees(self) -> v1.TreeService:
        """Reads and changes the configuration, and reads usage."""
        return v1.TreeService(self._caller)

    @cached_property
    def configuration(self) -> admin.ConfigurationService:
        """Shows, restores and parses whole configurations, and lists their history."""
        return admin.ConfigurationService(self._caller)

    @cached_property
    def cordons(self) -> admin.CordonService:
        """Puts nodes on hold."""
        return admin.CordonService(self._caller)

    @cached_property
    def identity(self) -> v1.IdentityService:
        """Says who the caller is, and what it may do."""
        return v1.IdentityService(self._caller)

    @cached_property
    def events(self) -> v1.EventService:
        """Tells what happens; watch is the convenient way to follow it."""
        return v1.EventService(self._caller)

    @cached_property
    def items(self) -> v1.ItemService:
        """Lists the items of itemized resources and changes items that are not held."""
        return v1.ItemService(self._caller)

    @cached_property
    def access(self) -> admin.AccessService:
        """Shows and changes who may do what. The calls that make tokens are repeated only while it is certain that they
        were not carried out."""
        return admin.AccessService(self._caller)

    @cached_property
    def audit(self) -> admin.AuditService:
        """Shows who changed what."""
        return admin.AuditService(self._caller)

    @cached_property
    def requests(self) -> v1beta1.LimitRequestService:
        """Asks for limits, and decides about such requests."""
        return v1beta1.LimitRequestService(self._caller)

    @cached_property
    def webhooks(self) -> v1beta1.WebhookService:
        """Configures where the cluster delivers its events."""
        return v1beta1.WebhookService(self._caller)

    @cached_property
    def activity(self) -> v1beta1.ActivityService:
        """Reads what happened in the last 24 hours, as recorded by the server that answers."""
        return v1beta1.ActivityService(self._caller)

    @cached_property
    def changes(self) -> v1.ChangeService:
        """Tells what to read again; watch_changes is the convenient way to use it."""
        return v1.ChangeService(self._caller)

    @cached_property
    def cluster(self) -> admin.ClusterService:
        """Reads the status of the cluster and changes its members."""
        return admin.ClusterService(self._caller)

    @cached_property
    def debug(self) -> admin.DebugService:
        """Reads diagnostics of servers."""
        return admin.DebugService(self._caller)

    def acquire(
        self,
        request: v1.AllocateRequest,
        *,
        timeout: Optional[float] = None,
        margin: Optional[float] = None,
        on_lost: Optional[OnLost] = None,
        progress: Optional[Callable[[Progress], None]] = None,
        cancel: Optional[threading.Event] = None,
    ) -> Lease:
        """Requests an allocation and renews it in the background until it is released or lost.

        A request without a mode waits in the queue until it is granted, timeout seconds have passed, or cancel is set,
        which is noticed within about a second. It keeps its id and its position when servers restart or the client
        fails over. If the caller stops waiting, the request leaves the queue. With Mode.REJECT or Mode.FORCE it does
        not wait.

        margin is how many seconds before the end of its TTL the lease ends for its holder, at most a third of the TTL;
        None means a tenth of the TTL, and at most three seconds. Choose the time that the holder needs to stop. on_lost
        is called in the thread that notices the loss, which other leases wait for, so it must be quick; progress is
        called in that of the caller when the request begins to wait and then about every ten seconds. If neither the
        request nor its items and trees have a TTL, the allocation is held until it is released, and nothing is renewed.

        Raises Denied if the request can never fit or may not wait, WaitTimedOut if its time to wait is over,
        Unavailable if no server answers, LeaseLost if the request ended while it waited, Cancelled, and QuorateError
        for any other answer.
        """
        return Acquisition(self, request, timeout, progress, cancel).lease(margin, on_lost)

    def wait(
        self,
        request: v1.AllocateRequest,
        *,
        timeout: Optional[float] = None,
        progress: Optional[Callable[[Progress], None]] = None,
        cancel: Optional[threading.Event] = None,
    ) -> v1.AllocateResponse:
        """Requests an allocation and waits for it as acquire does, with the same errors. The caller renews it."""
        return Acquisition(self, request, timeout, progress, cancel).wait()[0]

    def watch(self, request: Optional[v1.WatchEventsRequest] = None) -> AllocationWatch:
        """Returns the changes of what the request watches, after its position, in order."""
        return AllocationWatch(self, request or v1.WatchEventsRequest())

    def watch_changes(self, request: Optional[v1.WatchChangesRequest] = None) -> ChangeWatch:
        """Returns what may have changed. Read what is shown again with consistency stale and the index of the message
        as min_index."""
        return ChangeWatch(self, request or v1.WatchChangesRequest())

    def close(self) -> None:
        """Closes idle connections. Leases and watches are not ended. The client remains usable."""
        self._pool.close()


class _Caller:
    """Makes the calls of services, and raises Denied for denials."""

    def __init__(self, retrier: Retrier) -> None:
        self._retrier = retrier

    def call(self, path: str, request: Message, answer: "type[M]", timeout: Optional[float] = None) -> M:
        try:
            return self._retrier.call(path, request, answer, timeout)
        except QuorateError as e:
            if e.code == "resource_exhausted" and e.decision is not None:
                raise Denied(e.code, e.message, e.details, is_answer=True, server=e.server) from None
            raise

    def stream(self, path: str, request: Message, answer: "type[M]") -> Stream[M]:
        return self._retrier.stream(path, request, answer)


def _tokens(token: Union[str, Callable[[], str], None], token_file: Optional[str]) -> Optional[Tokens]:
    if token is not None and token_file is not None:
        raise ValueError("token and token_file exclude each other: use one")
    if token_file is not None:
        return Tokens(TokenFile(token_file).current)
    if token is None:
        return None
    if isinstance(token, str):
        fixed = token
        return Tokens(lambda: fixed)
    return Tokens(token)
