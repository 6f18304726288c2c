"""Forked processes, interrupts, and answers to other requests."""

import json
import os
import signal
import threading
import unittest
from typing import Any, Callable, Dict, List

import quorate
from fake_server import Answer, ClientTest, grant
from quorate import process
from quorate.v1 import AllocateRequest, Claim, GetAllocationRequest, WatchEventsRequest

REQUEST = AllocateRequest(id="x", claims=[Claim(tree="t", node="a", amounts={"cores": 1})])


def answer_all(method: str, request: Any) -> Answer:
    """Grants and renews what is asked for."""
    if method == "BatchRenew":
        return 200, {"outcomes": [{"renewed": grant(r["id"], 60000)} for r in request["renewals"]]}
    if method == "WatchEvents":
        return 200, [{"end": {}}]
    return 200, grant(request["id"], 60000)


@unittest.skipUnless(hasattr(os, "fork"), "this system does not fork")
class Forked(ClientTest):
    def in_child(self, work: Callable[[], Any]) -> Any:
        """Returns what work returns in a forked process."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                told = work()
            except BaseException as e:
                told = "%s: %s" % (type(e).__name__, e)
            os.write(write, json.dumps(told).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        return json.loads(text)

    def test_a_child_makes_connections_of_its_own(self) -> None:
        server = self.start(answer_all)
        client = self.client([server.url])
        client.allocations.get_allocation(GetAllocationRequest(id="warm"))
        parent = [id(c) for connections in client._pool._idle for c in connections]
        self.assertEqual(len(parent), 1)

        def use() -> Any:
            before = sum(len(c) for c in client._pool._idle)
            record = client.allocations.allocate(AllocateRequest(id="child", claims=REQUEST.claims)).allocation
            return [before, record.id if record else ""]

        self.assertEqual(self.in_child(use), [0, "child"])
        self.assertEqual([id(c) for connections in client._pool._idle for c in connections], parent)

    def test_a_child_is_not_stopped_by_locks_of_threads_that_it_does_not_have(self) -> None:
        client = self.client([self.start(answer_all).url])
        held, over = threading.Event(), threading.Event()

        def hold() -> None:
            with client._pool._lock, client._renewer._condition, client._retrier.transport.servers._lock:
                held.set()
                over.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(60)
        try:
            told = self.in_child(lambda: client.acquire(REQUEST).id)
        finally:
            over.set()
            thread.join()
        self.assertEqual(told, "x")

    def test_a_child_neither_renews_nor_releases_the_lease_of_its_parent(self) -> None:
        server = self.start(answer_all)
        client = self.client([server.url])
        lease = client.acquire(REQUEST)

        def use() -> Any:
            told: Dict[str, Any] = {"left": lease.remaining(), "over": lease.is_over}
            for name, call in (("check", lease.check), ("release", lease.release)):
                try:
                    call()
                except quorate.LeaseInherited as e:
                    told[name] = str(e)
            with lease:
                pass
            own = client.acquire(AllocateRequest(id="own", claims=REQUEST.claims))
            told["threads"] = sorted(client._renewer._running)
            told["renewed"] = [renewed.id for renewed in client._renewer._due]
            own.check()
            return told

        told = self.in_child(use)
        inherited = ('lease "x" belongs to process %d, from which this one was forked: acquire a lease in the process '
                     "that uses it" % os.getpid())
        self.assertEqual(told, {"left": 0, "over": True, "check": inherited, "release": inherited,
                                "threads": ["quorate-expire", "quorate-renew"], "renewed": ["own"]})
        self.assertNotIn("Release", [method for method, _ in server.asked])
        lease.check()
        self.assertFalse(lease.is_over)
        lease.release()

    def test_a_child_that_closes_a_watch_does_not_end_that_of_its_parent(self) -> None:
        messages = [{"index": "1", "number": "1", "change": {"allocation": {"id": "x"}}},
                    {"index": "2", "change": {"allocation": {"id": "x"}}}]

        def answer(method: str, request: Any) -> Answer:
            return 200, messages if not request.get("afterIndex") else [{"end": {}}]

        watch = self.client([self.start(answer).url]).watch(WatchEventsRequest())
        self.assertEqual(next(watch).index, 1)
        self.in_child(watch.close)
        self.assertEqual(next(watch).index, 2)
        watch.close()


class Interrupted(ClientTest):
    def test_an_exception_while_waiting_withdraws_the_request(self) -> None:
        for kind in KeyboardInterrupt, SystemExit, OSError:
            def answer(method: str, request: Any) -> Answer:
                return 200, {"allocation": {"id": "x", "state": "ALLOCATION_STATE_WAITING"}}

            def interrupt(p: quorate.Progress) -> None:
                raise kind()

            server = self.start(answer)
            with self.assertRaises(kind):
                self.client([server.url]).acquire(REQUEST, progress=interrupt)
            self.assertEqual([method for method, _ in server.asked], ["Allocate", "Release"])


class Answers(ClientTest):
    def test_an_answer_to_another_request_is_never_a_grant(self) -> None:
        answers: List[str] = ["other", "other", "x"]

        def answer(method: str, request: Any) -> Answer:
            return 200, grant(answers.pop(0))

        failures: List[str] = []
        client = self.client([self.start(answer).url], notice=lambda e: failures.append(str(e)))
        lease = client.acquire(REQUEST)
        self.assertEqual((lease.id, len(failures)), ("x", 2))
        self.assertIn('the answer is about "other" instead of "x"', failures[0])

    def test_a_renewal_of_another_lease_renews_nothing(self) -> None:
        asked = threading.Event()

        def answer(method: str, request: Any) -> Answer:
            if method == "BatchRenew":
                asked.set()
                return 200, {"outcomes": [{"renewed": grant("other", 3000)}]}
            return 200, grant(request["id"], 3000)

        lease = self.client([self.start(answer).url]).acquire(REQUEST)
        self.assertTrue(lease.wait(60))
        self.assertTrue(asked.is_set())
        self.assertIsInstance(lease.ending, quorate.LeaseLost)


class Clock(ClientTest):
    def test_the_time_of_a_suspended_machine_counts(self) -> None:
        shift = [0.0]
        clock = process.now
        import quorate.lease

        def shifted() -> float:
            return clock() + shift[0]

        setattr(quorate.lease, "now", shifted)
        self.addCleanup(setattr, quorate.lease, "now", clock)
        lease = self.client([self.start(answer_all).url]).acquire(REQUEST)
        lease.check()
        shift[0] = 3600.0
        self.assertRaises(quorate.LeaseLost, lease.check)

    @unittest.skipUnless(hasattr(__import__("time"), "CLOCK_BOOTTIME"), "this system has another clock")
    def test_leases_end_by_the_clock_that_counts_suspended_time(self) -> None:
        import time
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        self.assertLessEqual(before, process.now())
        self.assertLessEqual(process.now(), time.clock_gettime(time.CLOCK_BOOTTIME))

    def test_a_lease_says_what_it_is(self) -> None:
        lease = self.client([self.start(answer_all).url]).acquire(REQUEST)
        self.assertRegex(repr(lease), r"^<Lease 'x' of nothing, fence 7: [0-9.]+ s left>$")
        lease.release()
        self.assertEqual(repr(lease), "<Lease 'x' of nothing, fence 7: the lease was released>")
