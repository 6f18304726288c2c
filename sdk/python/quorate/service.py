"""The base of the generated services, and the type of their streams."""

from __future__ import annotations

from typing import Generic, Iterator, Optional, Protocol, Type, TypeVar

from quorate.message import Message

M = TypeVar("M", bound=Message)
S = TypeVar("S", bound=Message, covariant=True)


class Stream(Protocol, Generic[S]):
    """The messages of one stream of one server, which is not resumed. Close it, or leave its with block."""

    def __iter__(self) -> Iterator[S]: ...

    def __next__(self) -> S: ...

    def __enter__(self) -> Stream[S]: ...

    def __exit__(self, *exc: object) -> None: ...

    def close(self) -> None: ...


class Caller(Protocol):
    """What makes the calls of services."""

    def call(self, path: str, request: Message, answer: Type[M], timeout: Optional[float] = None) -> M: ...

    def stream(self, path: str, request: Message, answer: Type[M]) -> Stream[M]: ...


class Service:
    """A service of the API. Its methods raise QuorateError.

    timeout bounds a call with all its attempts, in seconds; None means the patience of the client.
    """

    _NAME = ""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def _call(self, method: str, request: Message, answer: Type[M], timeout: Optional[float]) -> M:
        """Makes one call, with retries."""
        return self._caller.call("/%s/%s" % (self._NAME, method), request, answer, timeout)

    def _open(self, method: str, request: Message, answer: Type[M]) -> Stream[M]:
        """Opens one stream at the server that calls go to now."""
        return self._caller.stream("/%s/%s" % (self._NAME, method), request, answer)
