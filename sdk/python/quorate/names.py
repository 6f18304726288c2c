"""Ids that make calls safe to repeat."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any, Dict, TypeVar

from quorate.message import Message
from quorate.v1.allocation import AllocateRequest, BatchAllocateRequest, ExplainRequest

M = TypeVar("M", bound=Message)


def new_id() -> str:
    """Returns a new id for an allocation or a change."""
    return str(uuid.uuid4())


def with_ids(request: M) -> M:
    """Returns the request with the ids that its caller left empty, so that all attempts of a call carry the same: the
    id of an allocation, and the request id of a change of configuration. The caller's message is not changed."""
    changes: Dict[str, Any] = {}
    if isinstance(request, AllocateRequest) and not request.id:
        changes["id"] = new_id()
    elif isinstance(request, BatchAllocateRequest):
        changes["requests"] = [with_ids(r) for r in request.requests]
    elif isinstance(request, ExplainRequest) and request.request is not None:
        changes["request"] = with_ids(request.request)
    elif getattr(request, "request_id", None) == "":
        changes["request_id"] = new_id()
    return dataclasses.replace(request, **changes) if changes else request
