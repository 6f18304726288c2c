"""Waiting, leases and watches."""

import queue
import threading
import time
import unittest
from typing import Any, Callable, List

import quorate
from fake_server import Answer, ClientTest, FakeServer, grant, problem
from quorate.v1 import AllocateRequest, Claim, WatchEventsRequest

REQUEST = AllocateRequest(id="x", claims=[Claim(tree="t", amounts={"cores": 1})])


def waiting(id: str) -> Any:
    """Returns the body of an answer that a request waits."""
    return {"allocation": {"id": id, "state": "ALLOCATION_STATE_WAITING"}, "decision": {"explanation": "full"}}


def grant_or_renewal(method: str, request: Any, ttl_ms: int, revoked_by: str = "") -> Any:
    """Returns the answer to Allocate, and to the renewal that follows a first answer which was slow."""
    granted = grant(request["id"], ttl_ms, **({"revokedBy": {"id": revoked_by}} if revoked_by else {}))
    if method == "Renew":
        return {"allocation": granted["allocation"], "write": granted["write"]}
    return granted if method == "Allocate" else {}


class Leases(ClientTest):
    def await_renewals(self, server: FakeServer, enough: Callable[[List[Any]], bool]) -> List[Any]:
        """Returns the calls that have renewed leases, as soon as they are enough."""
        until = time.monotonic() + 120
        while True:
            renewals = [request for method, request in server.asked if method == "BatchRenew"]
            if enough(renewals):
                return renewals
            self.assertLess(time.monotonic(), until, renewals)
            time.sleep(0.05)

    def test_a_lease_is_renewed(self) -> None:
        def answer(method: str, request: Any) -> Answer:
            if method == "BatchRenew":
                return 200, {"outcomes": [{"renewed": grant(r["id"], 9000)} for r in request["renewals"]]}
            return 200, grant_or_renewal(method, request, 9000)

        server = self.start(answer)
        lease = self.client([server.url]).acquire(REQUEST)
        renewals = self.await_renewals(server, lambda renewals: len(renewals) >= 2)
        self.assertGreater(lease.remaining(), 0)
        lease.check()
        self.assertEqual(renewals[0]["renewals"], [{"id": "x", "fence": 7}])
        lease.release()
        self.assertRaises(quorate.LeaseReleased, lease.check)
        self.assertEqual(lease.remaining(), 0)
        self.assertIn(("Release", {"id": "x", "fence": 7}), server.asked[-2:])  # a renewal may have been on its way

    def test_leases_are_renewed_together(self) -> None:
        def answer(method: str, request: Any) -> Answer:
            if method == "BatchRenew":
                return 200, {"outcomes": [{"renewed": grant(r["id"], 9000)} for r in request["renewals"]]}
            return 200, grant_or_renewal(method, request, 9000)

        server = self.start(answer)
        client = self.client([server.url])
        leases = [client.acquire(AllocateRequest(id=str(i), claims=REQUEST.claims)) for i in range(5)]
        self.await_renewals(server, lambda renewals: any(len(r["renewals"]) > 1 for r in renewals))
        for lease in leases:
            lease.release()

    def test_the_safe_moment_comes_although_a_renewal_hangs(self) -> None:
        over = threading.Event()
        self.addCleanup(over.set)

        def answer(method: str, request: Any) -> Answer:
            if method == "BatchRenew":
                over.wait()
                return 503, problem("unavailable", "NO_LEADER")
            return 200, grant_or_renewal(method, request, 9000)

        told: "queue.Queue[float]" = queue.Queue()
        lease = self.client([self.start(answer).url]).acquire(
            REQUEST, margin=3.0, on_lost=lambda lease, lost: told.put(lease.ends_in()))
        self.assertTrue(lease.wait(60))
        self.assertRaisesRegex(quorate.LeaseLost, "could not be renewed in time", lease.check)
        self.assertGreater(told.get(timeout=60), 0)  # it has not ended yet

    def test_check_looks_at_the_clock(self) -> None:
        server = self.start(lambda method, request: (200, grant_or_renewal(method, request, 600)))
        lease = self.client([server.url]).acquire(REQUEST)
        lease.extend(lease.allocation, time.monotonic() - 1, 1000)  # no thread has seen this
        self.assertRaises(quorate.LeaseLost, lease.check)

    def test_how_a_lease_is_lost(self) -> None:
        cases = (("not_found", "", quorate.ENDED), ("failed_precondition", "", quorate.ENDED),
                 ("aborted", "", quorate.TAKEN), ("not_found", "y", quorate.PREEMPTED))

        def acquire(code: str, revoked_by: str) -> quorate.Lease:
            def answer(method: str, request: Any) -> Answer:
                if method == "BatchRenew":
                    return 200, {"outcomes": [{"failure": {"code": code, "message": "over"}}]}
                return 200, grant_or_renewal(method, request, 9000, revoked_by)

            return self.client([self.start(answer).url]).acquire(REQUEST)

        leases = [acquire(code, revoked_by) for code, revoked_by, _ in cases]
        for lease, (_, revoked_by, how) in zip(leases, cases):
            self.assertTrue(lease.wait(60))
            assert isinstance(lease.ending, quorate.LeaseLost)
            self.assertEqual((lease.ending.how, lease.ending.by), (how, revoked_by))

    def test_waiting_is_reported_and_polls(self) -> None:
        answers = [waiting("x"), waiting("x"), grant("x", 60000)]

        def answer(method: str, request: Any) -> Answer:
            if method == "Renew":
                return 200, grant("x", 60000)
            return 200, answers.pop(0)

        seen: List[str] = []
        server = self.start(answer)
        lease = self.client([server.url]).acquire(
            REQUEST, timeout=30, progress=lambda p: seen.append(p.decision.explanation))
        asked = [request for method, request in server.asked if method == "Allocate"]
        self.assertEqual(seen, ["full", "full"])
        self.assertEqual([r.get("pollMs") for r in asked], [None, 10000, 10000])
        self.assertEqual({(r["mode"], r["waitMs"]) for r in asked}, {("MODE_WAIT", 30000)})
        self.assertEqual([m for m, _ in server.asked].count("Renew"), 1, "a grant that had to wait is renewed at once")
        lease.end(quorate.LeaseReleased())

    def test_the_caller_stops_waiting(self) -> None:
        cancel = threading.Event()

        def answer(method: str, request: Any) -> Answer:
            return 200, waiting("x") if method == "Allocate" else {}

        server = self.start(answer)
        client = self.client([server.url])
        threading.Timer(0.2, cancel.set).start()
        self.assertRaises(quorate.Cancelled, client.acquire, REQUEST, cancel=cancel)
        self.assertEqual(server.asked[-1], ("Release", {"id": "x"}))

    def test_time_to_wait_is_over(self) -> None:
        def answer(method: str, request: Any) -> Answer:
            if method == "GetAllocation":
                return 200, {"allocation": {"id": "x", "state": "ALLOCATION_STATE_TIMED_OUT"}}
            return (200, waiting("x")) if not request.get("pollMs") else (400, problem("failed_precondition", "ENDED"))

        client = self.client([self.start(answer).url])
        self.assertRaisesRegex(quorate.WaitTimedOut, "full", client.acquire, REQUEST)

    def test_no_server_answers(self) -> None:
        client = self.client(["http://127.0.0.1:1"])
        self.assertRaises(quorate.Unavailable, client.acquire, REQUEST, timeout=0.3)

    def test_what_makes_no_lease(self) -> None:
        client = self.client(["http://127.0.0.1:1"])
        mode = quorate.v1.Mode.RESERVE
        self.assertRaisesRegex(ValueError, mode.value, client.acquire, AllocateRequest(mode=mode))


class Watches(ClientTest):
    def test_a_watch_resumes_after_the_last_change(self) -> None:
        def change(index: int) -> Any:
            return {"index": str(index), "number": 1,
                    "change": {"kind": "ALLOCATION_CHANGE_KIND_GRANTED", "allocation": {"id": "x"}}}

        streams = [[change(5), {"index": "6"}], [change(7), {"end": {"error": {"code": "unavailable"}}}], [change(8)]]
        server = self.start(lambda method, request: (200, streams.pop(0)))
        with self.client([server.url]).watch(WatchEventsRequest(tree="t")) as watch:
            self.assertEqual([next(watch).index for _ in range(3)], [5, 7, 8])
        self.assertEqual([(r["tree"], r.get("afterIndex"), r.get("afterNumber")) for _, r in server.asked],
                         [("t", None, None), ("t", 6, None), ("t", 7, 1)])
        self.assertRaises(StopIteration, next, watch)

    def test_a_refusal_ends_it(self) -> None:
        server = self.start(lambda method, request: (200, [{"end": {"error": problem("out_of_range", "FORGOTTEN")}}]))
        with self.assertRaises(quorate.QuorateError) as caught:
            next(self.client([server.url]).watch())
        self.assertEqual(caught.exception.reason, "FORGOTTEN")

    def test_close_wakes_the_reader(self) -> None:
        hanging = threading.Event()

        def answer(method: str, request: Any) -> Answer:
            hanging.wait()
            return 200, []

        server = self.start(answer)
        self.addCleanup(hanging.set)
        watch = self.client([server.url]).watch_changes()
        threading.Timer(0.2, watch.close).start()
        self.assertEqual(list(watch), [])


if __name__ == "__main__":
    unittest.main()
