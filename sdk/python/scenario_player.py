"""Plays the scenarios of sdk/scenarios with the Python client: reads a step a line, and writes its outcome."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Dict

import quorate
from quorate import v1

HOW = {quorate.UNRENEWED: "unrenewed", quorate.ENDED: "ended", quorate.PREEMPTED: "preempted", quorate.TAKEN: "taken"}


class Player:
    """The state between steps."""

    def __init__(self, client: quorate.Client) -> None:
        self.client = client
        self.leases: Dict[str, quorate.Lease] = {}
        self.early: Dict[str, float] = {}
        self.waiting: Dict[str, Future[Dict[str, Any]]] = {}
        self.watches: Dict[str, "queue.Queue[Any]"] = {}
        self.threads = ThreadPoolExecutor(64)

    def play(self, step: Dict[str, Any]) -> Dict[str, Any]:
        """Does one step and returns its outcome."""
        name = "await_outcome" if step["do"] == "await" else step["do"].replace("-", "_")
        do: Callable[[Dict[str, Any]], Dict[str, Any]] = getattr(self, name)
        return do(step)

    def acquire(self, step: Dict[str, Any]) -> Dict[str, Any]:
        if step.get("background"):
            self.waiting[step["as"]] = self.threads.submit(self._acquire, step)
            return {"outcome": "started"}
        return self._acquire(step)

    def _acquire(self, step: Dict[str, Any]) -> Dict[str, Any]:
        request = v1.AllocateRequest.from_json(step["request"])
        try:
            lease = self.client.acquire(
                request, timeout=step.get("timeout"), margin=step.get("margin"),
                on_lost=lambda lost, _: self.early.update({lost.id: lost.ends_in()}))
        except quorate.Denied as denial:
            violations = [v.to_json() for v in denial.decision.violations]
            return {"outcome": "denied", "neverFits": denial.decision.never_fits, "violations": violations}
        except quorate.WaitTimedOut:
            return {"outcome": "timed-out"}
        except quorate.Unavailable as e:
            return {"outcome": "unavailable", "text": str(e), "mayBeDone": e.may_be_done}
        except quorate.QuorateError as e:
            return {"outcome": "failed", "code": e.code, "reason": e.reason, "text": str(e),
                    "mayBeDone": e.may_be_done}
        self.leases[step["as"]] = lease
        return {"outcome": "granted", "id": lease.id, "fence": lease.fence, "items": lease.items}

    def await_outcome(self, step: Dict[str, Any]) -> Dict[str, Any]:
        return self.waiting[step["as"]].result(step["within"])

    def release(self, step: Dict[str, Any]) -> Dict[str, Any]:
        self.leases.pop(step["as"]).release()
        return {"outcome": "released"}

    def await_loss(self, step: Dict[str, Any]) -> Dict[str, Any]:
        lease = self.leases[step["as"]]
        if not lease.wait(step["within"]):
            return {"outcome": "held"}
        lost = lease.ending
        assert isinstance(lost, quorate.LeaseLost)
        until = time.monotonic() + 1
        while lease.id not in self.early and time.monotonic() < until:
            time.sleep(0.001)  # the callback comes after the event
        return {"outcome": "lost", "how": HOW[lost.how], "earlyMs": int(self.early[lease.id] * 1000), "text": str(lost)}

    def await_revoked(self, step: Dict[str, Any]) -> Dict[str, Any]:
        revoked = self.leases[step["as"]].revoked.wait(step["within"])
        return {"outcome": "revoked" if revoked else "held"}

    def state(self, step: Dict[str, Any]) -> Dict[str, Any]:
        record = self.client.allocations.get_allocation(v1.GetAllocationRequest(id=step["id"])).allocation
        assert record is not None
        return {"outcome": "state", "state": record.state.name.lower()}

    def set_limit(self, step: Dict[str, Any]) -> Dict[str, Any]:
        limit = v1.Limit(amount=step["amount"])
        self.client.trees.set_limits(v1.SetLimitsRequest(
            tree=step["tree"], node=step["node"], limits={step["resource"]: limit}, reason="scenario"))
        return {"outcome": "set"}

    def watch(self, step: Dict[str, Any]) -> Dict[str, Any]:
        changes: "queue.Queue[Any]" = queue.Queue()
        watch = self.client.watch(v1.WatchEventsRequest.from_json(step["request"]))
        self.watches[step["as"]] = changes
        threading.Thread(target=read_changes, args=(watch, changes), daemon=True).start()
        until = time.monotonic() + 10
        while not watch.is_open and time.monotonic() < until:
            time.sleep(0.01)
        return {"outcome": "watching" if watch.is_open else "error"}

    def next(self, step: Dict[str, Any]) -> Dict[str, Any]:
        change = self.watches[step["as"]].get(timeout=step["within"]).change
        return {"outcome": "change", "change": change.kind.name.lower(), "id": change.allocation.id}

    def many(self, step: Dict[str, Any]) -> Dict[str, Any]:
        def one(number: int) -> str:
            outcome = self._acquire({"as": "many-%d" % number, "request": step["request"]})
            return str(outcome["outcome"])
        outcomes = list(self.threads.map(one, range(step["count"])))
        if not step.get("hold"):
            for released in self.threads.map(quorate.Lease.release, list(self.leases.values())):
                assert released is None
            self.leases.clear()
        return {"outcome": "done", "granted": outcomes.count("granted"), "denied": outcomes.count("denied")}


def read_changes(watch: quorate.AllocationWatch, changes: "queue.Queue[Any]") -> None:
    """Puts the changes of a watch into a queue."""
    for change in watch:
        changes.put(change)


def main() -> None:
    """Plays until the end of the input."""
    player = Player(quorate.Client(sys.argv[1].split(",")))
    for line in sys.stdin:
        step = json.loads(line)
        try:
            outcome = player.play(step)
        except Exception as e:  # the driver reports it
            outcome = {"outcome": "error", "text": "%s: %s" % (type(e).__name__, e)}
        print(json.dumps(outcome), flush=True)
    os._exit(0)  # threads may wait for answers


if __name__ == "__main__":
    main()
