"""What calls, requests and leases raise."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Type, TypeVar

from quorate.message import Message
from quorate.v1.decision import Decision, Outcome, Problem

M = TypeVar("M", bound=Message)

# The longest pause that a server may ask for, in seconds.
LONGEST_HINT = 60.0

# Codes after which another attempt may succeed: there was no leader, no connection, or the server hung or shut down.
# Every other code is an answer.
TRANSIENT = frozenset(["unavailable", "deadline_exceeded", "canceled"])


class QuorateError(Exception):
    """A call that failed. Examine its attributes; texts may change.

    code is that of Connect and gRPC, such as "not_found". server is the address that the error came from; empty if
    several attempts were made. is_answer is True if a server sent the error, and False if the call met none.
    """

    def __init__(self, code: str, message: str, details: Optional[List[Dict[str, Any]]] = None, is_answer: bool = False,
                 was_sent: bool = True, server: str = "") -> None:
        super().__init__("%s%s (%s)" % (server + ": " if server else "", message, code))
        self.code = code
        self.message = message
        self.details = details or []
        self.is_answer = is_answer
        self.was_sent = was_sent
        self.server = server

    @property
    def problem(self) -> Optional[Problem]:
        """The stable reason, the field, and every rule that a configuration would break; None for denials and for
        errors that no server sent."""
        return self._detail("quorate.v1.Problem", Problem)

    @property
    def decision(self) -> Optional[Decision]:
        """The decision of a denied request; None for errors that are not denials."""
        return self._detail("quorate.v1.Decision", Decision)

    @property
    def reason(self) -> str:
        """The stable reason of the problem, such as "ENDED"; empty if there is none."""
        problem = self.problem
        return problem.reason if problem else ""

    @property
    def is_transient(self) -> bool:
        """True if another attempt may succeed. The client has made them, unless retries are off."""
        return self.code in TRANSIENT

    @property
    def may_be_done(self) -> bool:
        """True if a write that failed may have been carried out nevertheless. To find out, repeat it with the same id,
        or read."""
        if not self.is_transient and self.code not in ("unknown", "internal"):
            return False
        problem = self.problem
        if problem is not None:
            return not problem.not_applied
        return self.was_sent

    @property
    def retry_after(self) -> Optional[float]:
        """How many seconds an overloaded server asked to wait before a retry, at most 60; None if it did not say. The
        client itself waits at least so long wherever it retries."""
        for detail in self.details:
            if detail.get("type") == "google.rpc.RetryInfo":
                try:
                    return min(max(float(detail["debug"]["retryDelay"].rstrip("s")), 0.0), LONGEST_HINT)
                except (KeyError, TypeError, ValueError, AttributeError):
                    return None
        return None

    def _detail(self, name: str, cls: Type[M]) -> Optional[M]:
        for detail in self.details:
            if detail.get("type") == name and isinstance(detail.get("debug"), dict):
                return cls.from_json(detail["debug"])
        return None


class Denied(QuorateError):
    """A request that can never fit, or that does not fit now and may not wait. Nothing has changed."""

    @property
    def decision(self) -> Decision:
        """The decision, which names every limit in the way, at every level."""
        return super().decision or Decision(outcome=Outcome.DENIED, explanation=self.message)


class CertificateError(QuorateError):
    """TLS failed: a server is not trusted, or it rejects this client's certificate or requires one. Nothing was
    sent."""


class Unavailable(QuorateError):
    """No server answered in time. The request may have been carried out; Client.acquire has tried to withdraw it."""


class WaitTimedOut(Exception):
    """A request that was not granted within its time to wait. It is not in the queue any more."""

    def __init__(self, decision: Decision, waited: float) -> None:
        super().__init__("not granted after %.0f s: %s" % (waited, decision.explanation))
        self.decision = decision
        """The limits that were in the way when the time was over."""
        self.waited = waited
        """How many seconds the request waited."""


class Cancelled(Exception):
    """Waiting for a request was cancelled by the caller's event. It is not in the queue any more."""


# The ways in which a lease is lost.
UNRENEWED = "it could not be renewed in time"
ENDED = "it has ended"
PREEMPTED = "it had to give way"
TAKEN = "its id stands for another grant"


class LeaseEnded(Exception):
    """A lease is over for its holder: LeaseLost, LeaseReleased, or LeaseInherited in a forked process."""


class LeaseReleased(LeaseEnded):
    """The holder released the lease."""


class LeaseInherited(LeaseEnded):
    """The lease belongs to the process that this one was forked from. That one holds and renews it; this one neither
    renews nor releases it. Acquire a lease in the process that uses it."""

    def __init__(self, id: str, owner: int) -> None:
        super().__init__('lease "%s" belongs to process %d, from which this one was forked: acquire a lease in the '
                         "process that uses it" % (id, owner))
        self.id = id
        self.owner = owner


class LeaseLost(LeaseEnded):
    """A lease has ended, or may have ended by now, although its holder did not release it.

    how is UNRENEWED (the servers may still hold it for a moment), ENDED (it expired or was released), PREEMPTED (it was
    revoked for another allocation, by has the id of that if it is known) or TAKEN (its id belongs to another grant).
    """

    def __init__(self, id: str, how: str, by: str = "", cause: Optional[BaseException] = None) -> None:
        text = 'lease "%s" is lost: %s' % (id, how)
        if by:
            text += " to " + by
        if cause is not None:
            text += ": %s" % cause
        super().__init__(text)
        self.id = id
        self.how = how
        self.by = by
        self.__cause__ = cause
