"""Tests of quorate_quota against a real server at QUORATE_SERVER, to which examples/zuul/nodepool.yaml was applied.

    quorate server dev &
    quorate apply --from zuul -f examples/zuul/nodepool.yaml
    cd examples/zuul && QUORATE_SERVER=http://127.0.0.1:7101 python3 -m unittest test_quorate_quota
"""

import logging
import math
import os
import threading
import time
import unittest

from quorate_quota import Client, Denied, QuorateError, TenantQuota, Unavailable, amounts_of, node_name, \
    queue_priority

SERVER = os.environ.get("QUORATE_SERVER", "")

# Two nodes with 4 cores and 4 GiB each, as Nodepool's QuotaInformation has them.
TWO_NODES = {"instances": 2, "cores": 8, "ram": 8192}
ONE_NODE = {"instances": 1, "cores": 4, "ram": 4096}


class QuotaInformation:
    """Has what Nodepool's class of that name has."""

    def __init__(self, **quota):
        self.quota = quota


class Conversions(unittest.TestCase):
    def test_names_of_tenants(self):
        for tenant, node in {
                "tenant-1": "tenant-1", "team one": "team+20one", "_a": "_a", "-a": "_+2Da", "_-a": "_-a",
                "_+": "_+5F+2B",
                "ä": "_+C3+A4", "x" * 63: "x" * 63,
                "x" * 64: "x" * 45 + "++" + "7ce100971f64e7001e8fe5a51973ecdf"[:16]}.items():
            self.assertEqual(node_name(tenant), node)

    def test_amounts(self):
        want = {"servers": 2, "cores": 8, "ram": 8192 << 20}
        self.assertEqual(amounts_of(TWO_NODES), want)
        self.assertEqual(amounts_of(QuotaInformation(**TWO_NODES)), want)
        self.assertEqual(amounts_of({"compute": TWO_NODES, "volumes": math.inf, "L-1": None, "volume_gb": 1.5}),
                         dict(want, **{"volume-gb": 2}))

    def test_priorities(self):
        first_to_last = [queue_priority(*request) for request in (
            ("100-0000000009", 0), ("100-0000000008", 7), ("100-0000000007", 999), ("200-0000000006", 0),
            ("300-0000000005", 0), ("300-0000000004", 1))]
        self.assertEqual(first_to_last, sorted(set(first_to_last), reverse=True))
        self.assertEqual(queue_priority("300-1", 5000), queue_priority("300-1", 999))
        self.assertEqual(queue_priority("100-1"), -100000)
        for request_id in "", "r1", "x-1", "-1":
            with self.assertRaisesRegex(ValueError, "begins with the precedence"):
                queue_priority(request_id)

    def test_wrong_arguments(self):
        with self.assertRaisesRegex(ValueError, "servers is empty"):
            Client([])
        with self.assertRaisesRegex(ValueError, "ttl is 0: allowed are 1 to 604800"):
            TenantQuota(None, "nl01", ttl=0)
        with self.assertRaisesRegex(ValueError, "poll is 60: allowed are 0.1 to 30"):
            TenantQuota(None, "nl01", poll=60)


@unittest.skipUnless(SERVER, "QUORATE_SERVER is not set")
class AgainstAServer(unittest.TestCase):
    def setUp(self):
        self.lost = []
        self.quota = self.new_quota()
        self.prefix = "%s-%d-" % (self.id().rsplit(".", 1)[1], time.time_ns())

    def new_quota(self, launcher="nl01", ttl=60.0):
        quota = TenantQuota(Client([SERVER]), launcher, ttl=ttl, on_lost=self.lost.append)
        self.addCleanup(self.end, quota)
        return quota

    def end(self, quota):
        quota.close()
        quota.resume([])  # releases everything of the launcher

    def test_a_request_is_held_and_released(self):
        first, second = self.prefix + "1", self.prefix + "2"
        self.assertTrue(self.quota.request(first, "tenant-1", TWO_NODES))
        self.assertTrue(self.quota.request(first, "tenant-1", TWO_NODES), "asking twice holds once")
        self.assertEqual(self.quota.get_quota_used("tenant-1")["instances"], 2)
        self.assertEqual(self.quota.get_quota_used("tenant-1")["ram"], 8192)
        self.assertEqual(self.quota.estimated_quota_left("tenant-1"), {
            "instances": 0, "cores": 0, "ram": 8192, "volumes": math.inf, "volume-gb": math.inf,
            "L-43DA4232": math.inf})
        self.assertFalse(self.quota.has_remaining_quota("tenant-1", ONE_NODE))
        with self.assertRaises(Denied) as denied:
            self.quota.request(second, "tenant-1", ONE_NODE)
        self.assertFalse(denied.exception.never_fits)
        self.assertEqual({v["resource"]: v["missing"] for v in denied.exception.violations},
                         {"servers": "1", "cores": "4"})
        self.quota.release(first)
        self.quota.release(first)
        self.quota.release("never-heard-of")
        self.assertTrue(self.quota.has_remaining_quota("tenant-1", ONE_NODE))
        self.assertTrue(self.quota.request(second, "tenant-1", ONE_NODE))

    def test_a_request_that_never_fits(self):
        for wait in 0, 60:
            with self.assertRaises(Denied) as denied:
                self.quota.request(self.prefix + str(wait), "tenant-1", {"instances": 3}, wait=wait)
            self.assertTrue(denied.exception.never_fits)
        self.assertEqual(self.quota.get_quota_limits("tenant-3")["instances"], 0)

    def test_tenants_without_limits(self):
        self.quota.request(self.prefix + "1", "team one", ONE_NODE)
        self.quota.request(self.prefix + "2", None, ONE_NODE)
        self.assertEqual(self.quota.get_quota_used("team one"), {"instances": 1, "cores": 4, "ram": 4096})
        self.assertEqual(self.quota.get_quota_used(None), {"instances": 1, "cores": 4, "ram": 4096})
        self.assertEqual(self.quota.get_quota_used("newcomer"), {})
        self.assertEqual(self.quota.get_quota_limits("team one")["cores"], math.inf)
        elsewhere = TenantQuota(self.quota.client, "nl07", tree="no-such-tree")
        self.addCleanup(elsewhere.close)
        for question in elsewhere.get_quota_used, elsewhere.get_quota_limits, elsewhere.estimated_quota_left:
            with self.assertRaises(QuorateError, msg="a tree that is not there is not an empty one"):
                question("team one")

    def test_a_request_waits(self):
        first, second = self.prefix + "1", self.prefix + "2"
        self.quota.request(first, "tenant-1", TWO_NODES)
        self.assertFalse(self.quota.request(second, "tenant-1", TWO_NODES, wait=600))
        self.quota.renew()
        self.assertFalse(self.quota.is_granted(second))
        self.quota.release(first)
        self.quota.renew()
        self.assertTrue(self.quota.is_granted(second))

    def test_gate_is_granted_before_check(self):
        granted = []
        quota = TenantQuota(Client([SERVER]), "nl08", poll=0.1, on_granted=granted.append, on_lost=self.lost.append)
        self.addCleanup(self.end, quota)
        quota.request(self.prefix + "held", "tenant-1", TWO_NODES)
        for name, zuul_id, relative in ("second", "300-2", 1), ("check", "300-3", 0), ("gate", "100-4", 0):
            self.assertFalse(quota.request(self.prefix + name, "tenant-1", TWO_NODES, wait=600,
                                           priority=queue_priority(zuul_id, relative)))
        mine = [request for request in quota.waiting() if request["id"].startswith(self.prefix)]
        self.assertEqual([(request["id"], request["position"]) for request in mine], [
            (self.prefix + "gate", 1), (self.prefix + "check", 2), (self.prefix + "second", 3)])
        self.assertEqual({v["resource"]: v["missing"] for v in mine[0]["violations"]}, {"servers": "2", "cores": "8"})
        for name in "held", "gate", "check":
            quota.release(self.prefix + name)
            self.wait_until(lambda: len(granted) == ["held", "gate", "check"].index(name) + 1)
            self.assertTrue(quota.is_granted(granted[-1]))
        self.assertEqual(granted, [self.prefix + name for name in ("gate", "check", "second")])
        self.assertEqual(quota.waiting(), [])
        self.assertEqual(self.lost, [])

    def test_a_request_leaves_the_queue(self):
        quota = TenantQuota(Client([SERVER]), "nl09", poll=0.1, on_lost=self.lost.append)
        self.addCleanup(self.end, quota)
        quota.request(self.prefix + "held", "tenant-1", TWO_NODES)
        self.assertFalse(quota.request(self.prefix + "late", "tenant-1", ONE_NODE, wait=1))
        self.wait_until(lambda: self.lost == [self.prefix + "late"])
        self.assertTrue(quota.is_granted(self.prefix + "held"))

    def test_the_thread_renews(self):
        quota = self.new_quota("nl02", ttl=4)
        quota.request(self.prefix, "tenant-2", {"volumes": 1})
        time.sleep(6)
        self.assertTrue(quota.is_granted(self.prefix))
        self.assertEqual(self.quota.get_quota_used("tenant-2")["volumes"], 1)
        quota.close()  # as if the launcher had died
        self.wait_until(lambda: self.quota.get_quota_used("tenant-2")["volumes"] == 0)
        self.assertFalse(quota.is_granted(self.prefix))
        self.assertEqual(self.lost, [])
        quota.renew()
        self.assertEqual(self.lost, [self.prefix])

    def wait_until(self, condition):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def test_what_others_end_is_reported(self):
        self.quota.request(self.prefix, "tenant-1", ONE_NODE)
        self.new_quota("nl03").release(self.prefix)
        self.quota.renew()
        self.assertEqual(self.lost, [self.prefix])
        self.assertFalse(self.quota.is_granted(self.prefix))
        with self.assertRaises(QuorateError) as failure:
            self.quota.request(self.prefix, "tenant-1", ONE_NODE)
        self.assertEqual(failure.exception.code, "failed_precondition")

    def test_an_end_is_reported_while_no_server_answers(self):
        quota = self.new_quota("nl05", ttl=1)
        quota.request(self.prefix, "tenant-2", {"volumes": 1})
        reachable, quota.client = quota.client, Client(["http://127.0.0.1:9"], patience=0.1)
        self.wait_until(lambda: self.lost == [self.prefix])
        self.assertFalse(quota.is_granted(self.prefix))
        quota.client = reachable

    def test_a_failure_of_on_lost_does_not_end_the_renewals(self):
        def fail(request_id):
            raise RuntimeError("on_lost of " + request_id)
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        quota = TenantQuota(Client([SERVER]), "nl06", ttl=4, on_lost=fail)
        self.addCleanup(self.end, quota)
        quota.request(self.prefix + "ended", "tenant-2", {"volumes": 1})
        quota.request(self.prefix + "kept", "tenant-2", {"volumes": 1})
        self.quota.release(self.prefix + "ended")
        time.sleep(6)
        self.assertTrue(quota.is_granted(self.prefix + "kept"))

    def test_a_new_process_resumes(self):
        kept, ended = self.prefix + "kept", self.prefix + "ended"
        for request_id in kept, ended:
            self.quota.request(request_id, "tenant-1", ONE_NODE)
        self.quota.close()
        quota = self.new_quota()
        self.assertEqual(quota.resume([kept, "never-asked"]), {kept})
        self.assertTrue(quota.is_granted(kept))
        self.assertEqual(quota.get_quota_used("tenant-1")["instances"], 1)

    def test_launchers_at_once_do_not_exceed_a_limit(self):
        granted = []

        def ask(number):
            try:
                if self.quota.request(self.prefix + str(number), "tenant-1", ONE_NODE):
                    granted.append(number)
            except Denied:
                pass
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(granted), 2)

    def test_the_next_server_answers(self):
        client = Client(["http://127.0.0.1:9", SERVER + "/"], patience=20)
        TenantQuota(client, "nl04").get_quota_used("tenant-1")
        with self.assertRaises(Unavailable):
            Client(["http://127.0.0.1:9"], patience=0.2).call("TreeService/ListTrees", {})
        with self.assertRaises(QuorateError) as failure:
            client.call("AllocationService/Allocate", {"id": "", "claims": []})
        self.assertEqual(failure.exception.code, "invalid_argument")


if __name__ == "__main__":
    unittest.main()
