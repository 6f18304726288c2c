"""Ids that make calls safe to repeat, and their namespace."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any, Dict, TypeVar

from quorate.message import Message
from quorate.v1.allocation import (AllocateRequest, BatchAllocateRequest, BatchReleaseRequest, BatchRenewRequest,
                                   ExplainRequest)
from quorate.v1.event import WatchEventsRequest

M = TypeVar("M", bound=Message)


def new_id() -> str:
    """Returns a new id for an allocation or a change."""
    return str(uuid.uuid4())


def with_ids(request: M, namespace: str = "") -> M:
    """Returns the request with the ids that its caller left empty, so that all attempts of a call carry the same: the
    id of an allocation, and the request id of a change of configuration. Ids of allocations without a namespace are in
    the given one; an empty one is that of the caller. The caller's message is not changed."""
    changes: Dict[str, Any] = {}
    if isinstance(request, AllocateRequest) and not request.id:
        changes["id"] = new_id()
    if namespace and getattr(request, "namespace", None) == "" and (changes or getattr(request, "id", "")):
        changes["namespace"] = namespace
    if isinstance(request, (BatchAllocateRequest, BatchReleaseRequest)):
        changes["requests"] = [with_ids(r, namespace) for r in request.requests]
    elif isinstance(request, BatchRenewRequest):
        changes["renewals"] = [with_ids(r, namespace) for r in request.renewals]
    elif isinstance(request, WatchEventsRequest):
        changes["allocations"] = [with_ids(a, namespace) for a in request.allocations]
    elif isinstance(request, ExplainRequest) and request.request is not None:
        changes["request"] = with_ids(request.request, namespace)
    elif getattr(request, "request_id", None) == "":
        changes["request_id"] = new_id()
    return dataclasses.replace(request, **changes) if changes else request
