"""Watches that continue at another server when theirs fails."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from typing import TYPE_CHECKING, Generic, Iterator, Optional, TypeVar, Union

from quorate.errors import QuorateError, Unavailable
from quorate.message import Message
from quorate.retry import Pauses
from quorate.transport import RawStream
from quorate.v1.change import WatchChangesRequest, WatchChangesResponse
from quorate.v1.event import WatchEventsRequest, WatchEventsResponse

if TYPE_CHECKING:
    from quorate.client import Client

S = TypeVar("S", bound=Message)

Request = Union[WatchEventsRequest, WatchChangesRequest]


class Watch(Generic[S]):
    """Changes, in order. Iterate in one thread. close ends the watch, from any thread; so does its with block.

    If a server fails, or the token ends that the stream began with and its source has another one, the watch continues
    at the next server from the same position.
    """

    def __init__(self, client: Client, path: str, request: Request, patience: float) -> None:
        self._client = client
        self._path = path
        self._request = dataclasses.replace(request)
        self._patience = patience
        self._closing = threading.Event()
        self._raw: Optional[RawStream] = None
        self.is_open = False
        """True while a server has accepted the watch."""
        self._messages = self._iterate()

    def close(self) -> None:
        """Ends the watch. A thread that waits for the next change gets the end of the iteration."""
        self._closing.set()
        raw = self._raw
        if raw is not None:
            raw.close()

    def __iter__(self) -> Iterator[S]:
        return self._messages

    def __next__(self) -> S:
        return next(self._messages)

    def __enter__(self) -> Watch[S]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _take(self, content: object) -> Optional[S]:
        """Decodes a message, notes its position, and returns what the caller gets of it."""
        raise NotImplementedError

    def _iterate(self) -> Iterator[S]:
        servers, pauses, heard = self._client._retrier.transport.servers, Pauses(), time.monotonic()
        while not self._closing.is_set():
            index = servers.current()
            try:
                self._raw = raw = self._client._retrier.transport.connect_stream(index)
                if self._closing.is_set():
                    return
                raw.open(self._path, self._request.to_json())
                self.is_open = True
                for content in raw:
                    heard, pauses = time.monotonic(), Pauses()
                    message = self._take(content)
                    if message is not None:
                        yield message
                failure = QuorateError("unavailable", "the stream has ended")
            except QuorateError as e:
                if self._closing.is_set():
                    return
                if self._is_final(e):
                    raise
                failure = e
            finally:
                self.is_open = False
                last, self._raw = self._raw, None
                if last is not None:
                    last.close()
                servers.advance_from(index)
            if self._closing.is_set():
                return
            if time.monotonic() - heard > self._patience:
                raise Unavailable("unavailable", "no server continues the watch: %s" % failure) from failure
            self._client._retrier.notice(failure)
            self._closing.wait(pauses.next(failure))

    def _is_final(self, e: QuorateError) -> bool:
        """Returns whether a server has refused to continue for another reason than that the caller was too slow, or its
        token ended."""
        tokens = self._client._retrier.transport.tokens
        if e.is_answer and e.code == "unauthenticated" and tokens is not None:
            return self._raw is None or self._raw.token == tokens.current()
        return e.is_answer and not e.is_transient and e.code != "resource_exhausted"


class AllocationWatch(Watch[WatchEventsResponse]):
    """The changes of allocations, without heartbeats.

    Raises QuorateError with the code out_of_range if the servers no longer have the changes after the position of the
    request: list the allocations, and watch from the index of that answer. Raises Unavailable if no server answered for
    as long as the patience of the client.
    """

    def __init__(self, client: Client, request: WatchEventsRequest) -> None:
        super().__init__(client, "/quorate.v1.EventService/WatchEvents", request, client._retrier.patience)

    def _take(self, content: object) -> Optional[WatchEventsResponse]:
        message = WatchEventsResponse.from_json(content)  # type: ignore[arg-type]
        assert isinstance(self._request, WatchEventsRequest)
        self._request.after_index, self._request.after_number = message.index, message.number
        has_payload = message.change or message.crossing or message.revision or message.event
        return message if has_payload else None


class ChangeWatch(Watch[WatchChangesResponse]):
    """What may have changed, heartbeats included. The first message comes at once. It continues for as long as it
    takes; other errors are refusals of a server, such as unimplemented from one of an earlier version."""

    def __init__(self, client: Client, request: WatchChangesRequest) -> None:
        super().__init__(client, "/quorate.v1.ChangeService/WatchChanges", request, math.inf)

    def _take(self, content: object) -> Optional[WatchChangesResponse]:
        message = WatchChangesResponse.from_json(content)  # type: ignore[arg-type]
        if message.everything or message.index > self._request.after_index:  # a server that is behind has a lower index
            self._request.after_index = message.index
        return message
