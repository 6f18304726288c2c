"""Retries, failover, ids, tokens and joined calls."""

import os
import tempfile
import threading
import time
import unittest
from typing import Any, List

import quorate
from fake_server import Answer, ClientTest, FakeServer, grant, problem
from quorate.admin.v1 import CreateTokenRequest
from quorate.v1 import AllocateRequest, Claim, GetAllocationRequest, ReleaseRequest, SetLimitsRequest

REQUEST = AllocateRequest(claims=[Claim(tree="t", amounts={"cores": 1})])


class Calls(ClientTest):
    def serve(self, *answers: Any) -> FakeServer:
        """Starts a server that gives the answers in turn, and the last one for ever."""
        left = list(answers)

        def answer(method: str, request: Any) -> Answer:
            following = left.pop(0) if len(left) > 1 else left[0]
            result: Answer = following(method, request) if callable(following) else following
            return result

        return self.start(answer)

    def test_a_call_fails_over_and_keeps_its_id(self) -> None:
        first = self.serve((503, problem("unavailable", "NO_LEADER")))
        second = self.serve((0, None), lambda method, request: (200, grant(request["id"])))
        failures: List[str] = []
        client = self.client([first.url, second.url], notice=lambda e: failures.append(e.reason or e.code))
        client.allocations.allocate(REQUEST)
        asked = first.asked + second.asked
        self.assertGreaterEqual(len(asked), 3)
        self.assertEqual(len({request["id"] for _, request in asked}), 1)
        self.assertEqual(failures[:2], ["NO_LEADER", "unavailable"])
        self.assertEqual(REQUEST.id, "")
        client.allocations.allocate(REQUEST)
        self.assertEqual(len(first.asked) + len(second.asked), len(asked) + 1, "the server that answers is kept")

    def test_a_list_needs_no_request(self) -> None:
        client = self.client([self.serve((200, {"trees": [{"name": "t"}]})).url])
        self.assertEqual([tree.name for tree in client.trees.list_trees().trees], ["t"])

    def test_internals_are_not_public(self) -> None:
        client = self.client([self.serve((200, {})).url])
        public = {name for name in dir(client) if not name.startswith("_")}
        self.assertEqual(public & {"retrier", "renewer"}, set())
        self.assertEqual({name for name in dir(client.trees) if name in ("NAME", "call_unary", "open_stream")}, set())

    def test_changes_have_a_request_id(self) -> None:
        server = self.serve((503, problem("unavailable", "NO_LEADER")), (200, {}))
        self.client([server.url]).trees.set_limits(SetLimitsRequest(tree="t"))
        ids = [request["requestId"] for _, request in server.asked]
        self.assertEqual(len(ids), 2)
        self.assertEqual(len(set(ids)), 1)

    def test_an_overloaded_server_is_given_its_time(self) -> None:
        server = self.serve((503, problem("unavailable", "OVERLOADED", retry="0.400s")), (200, {}))
        began = time.monotonic()
        self.client([server.url]).allocations.release(ReleaseRequest(id="x"))
        self.assertGreaterEqual(time.monotonic() - began, 0.4)

    def test_an_answer_is_not_retried(self) -> None:
        server = self.serve((404, problem("not_found", "NOT_FOUND")))
        with self.assertRaises(quorate.QuorateError) as caught:
            self.client([server.url]).allocations.release(ReleaseRequest(id="x"))
        self.assertEqual((caught.exception.code, caught.exception.reason), ("not_found", "NOT_FOUND"))
        self.assertFalse(caught.exception.may_be_done)
        self.assertEqual(len(server.asked), 1)

    def test_a_denial_has_its_decision(self) -> None:
        decision = {"outcome": "OUTCOME_DENIED", "violations": [{"tree": "t", "missing": "3"}]}
        server = self.serve((429, {"code": "resource_exhausted", "message": "denied", "details": [
            {"type": "quorate.v1.Decision", "value": "", "debug": decision}]}))
        with self.assertRaises(quorate.Denied) as caught:
            self.client([server.url]).allocations.allocate(REQUEST)
        self.assertEqual(caught.exception.decision.violations[0].missing, 3)

    def test_tokens_are_made_once(self) -> None:
        for failure, most in ((0, None), 1), ((503, problem("unavailable", "NO_LEADER", not_applied=False)), 1):
            server = self.serve(failure)
            with self.assertRaises(quorate.QuorateError):
                self.client([server.url], patience=1).access.create_token(CreateTokenRequest())
            self.assertEqual(len(server.asked), most)

    def test_the_patience_ends(self) -> None:
        server = self.serve((503, problem("unavailable", "NO_LEADER", not_applied=False)))
        began = time.monotonic()
        with self.assertRaisesRegex(quorate.QuorateError, "no answer after [0-9]+ attempts") as caught:
            self.client([server.url], patience=600).allocations.release(ReleaseRequest(id="x"), timeout=2)
        self.assertLess(time.monotonic() - began, 300)
        self.assertGreater(len(server.asked), 1)
        self.assertTrue(caught.exception.may_be_done)

    def test_a_server_that_hangs_does_not_use_up_the_time(self) -> None:
        over = threading.Event()
        self.addCleanup(over.set)

        def hang(method: str, request: Any) -> Answer:
            over.wait()
            return 503, problem("unavailable", "NO_LEADER")

        slow, quick = self.serve(hang), self.serve((200, {}))
        client = self.client([slow.url, quick.url], attempt_timeout=0.3, patience=300)
        client.allocations.release(ReleaseRequest(id="x"))
        self.assertGreater(len(quick.asked), 0)

    def test_a_token_is_replaced(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "token")
            with open(path, "w") as file:
                file.write("old\n")

            def check(method: str, request: Any) -> Answer:
                if server.headers[-1]["authorization"] == "Bearer new":
                    return 200, {}
                return 401, {"code": "unauthenticated", "message": "no"}

            server = self.serve(check)
            client = self.client([server.url], token_file=path)
            with self.assertRaises(quorate.QuorateError):
                client.allocations.release(ReleaseRequest(id="x"))
            with open(path, "w") as file:
                file.write("new\n")
            time.sleep(1.1)  # the file is looked at once a second
            client.allocations.release(ReleaseRequest(id="x"))
        self.assertEqual([h["authorization"] for h in server.headers], ["Bearer old", "Bearer new"])

    def test_tokens_do_not_leave_in_plain_text(self) -> None:
        with self.assertRaisesRegex(ValueError, "a token is not sent in plain text to another machine"):
            self.client(["http://10.0.0.1:7101"], token="t")
        self.client(["http://10.0.0.1:7101"], token="t", insecure_token=True)
        with self.assertRaisesRegex(quorate.QuorateError, "alone on one line"):
            self.client(["http://127.0.0.1:1"], token="t t").allocations.release(ReleaseRequest(id="x"))

    def test_redirects_are_not_followed(self) -> None:
        server = self.serve((302, {}))
        with self.assertRaisesRegex(quorate.QuorateError, "redirects are not followed"):
            self.client([server.url]).allocations.release(ReleaseRequest(id="x"))

    def test_wrong_addresses(self) -> None:
        for address in "", "ftp://a:1", "http://", "http://a:b", "http://a:1?x":
            with self.assertRaisesRegex(ValueError, "is not an address"):
                self.client([address])
        with self.assertRaisesRegex(ValueError, "at least one server"):
            self.client([])

    def test_an_idle_connection_that_was_closed_costs_no_failure(self) -> None:
        server = self.serve((200, {}), (0, None), (200, {}))
        failures: List[Any] = []
        client = self.client([server.url], notice=failures.append)
        for _ in range(2):
            client.allocations.get_allocation(GetAllocationRequest(id="x"))
        self.assertEqual((len(server.asked), failures), (3, []))


class Joined(ClientTest):
    def start_in_turn(self, client: quorate.Client, method: str, threads: List[threading.Thread]) -> None:
        """Starts calls, each as soon as those before it are under way or wait."""
        queues: Any = getattr(client._retrier.send, "__self__")._queues
        calls = queues["/quorate.v1.AllocationService/" + method]
        until = time.monotonic() + 120
        for i, thread in enumerate(threads):
            thread.start()
            while calls._under_way + len(calls._waiting) <= i:
                self.assertLess(time.monotonic(), until, i)
                time.sleep(0.001)

    def test_concurrent_calls_are_joined_and_each_has_its_outcome(self) -> None:
        gate = threading.Event()

        def answer(method: str, request: Any) -> Answer:
            gate.wait()
            if method == "Allocate":
                return 200, grant(request["id"])
            outcomes = [{"failure": problem_of(r)} if r["id"] == "id-19" else {"granted": grant(r["id"])}
                        for r in request["requests"]]
            return 200, {"outcomes": outcomes}

        def problem_of(request: Any) -> Any:
            return {"code": "already_exists", "message": "taken", "problem": {"reason": "ID_TAKEN"}}

        server = self.start(answer)
        client, results = self.client([server.url], attempt_timeout=60), {}

        def call(id: str) -> None:
            try:
                granted = client.allocations.allocate(AllocateRequest(id=id, claims=REQUEST.claims)).allocation
                results[id] = granted.id if granted else ""
            except quorate.QuorateError as e:
                results[id] = e.reason

        ids = ["id-%d" % i for i in range(20)]
        threads = [threading.Thread(target=call, args=(id,)) for id in ids]
        self.start_in_turn(client, "Allocate", threads)
        gate.set()
        for thread in threads:
            thread.join()
        self.assertEqual(results, {id: "ID_TAKEN" if id == "id-19" else id for id in ids})
        self.assertEqual([method for method, _ in server.asked], ["Allocate", "Allocate", "BatchAllocate"])

    def test_a_refused_batch_is_made_one_by_one(self) -> None:
        gate = threading.Event()

        def answer(method: str, request: Any) -> Answer:
            gate.wait()
            if method == "BatchRelease":
                return 404, {"code": "unimplemented", "message": "no"}
            return 200, {"allocation": {"id": request["id"]}}

        server = self.start(answer)
        client, done = self.client([server.url], attempt_timeout=60), []

        def call(id: str) -> None:
            record = client.allocations.release(ReleaseRequest(id=id)).allocation
            done.append(record.id if record else "")

        threads = [threading.Thread(target=call, args=(str(i),)) for i in range(5)]
        self.start_in_turn(client, "Release", threads)
        gate.set()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(done), ["0", "1", "2", "3", "4"])


if __name__ == "__main__":
    unittest.main()
