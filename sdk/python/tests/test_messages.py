"""The JSON mapping of messages."""

import unittest
from datetime import datetime, timedelta, timezone
from typing import Any

from quorate.admin.v1 import RestoreRequest
from quorate.v1 import (AllocateRequest, Allocation, Claim, Consistency, GetUsageRequest, Limit, Mode, Raise,
                        ReadOptions)


def wrong_type(value: Any) -> Any:
    """Hides the type of a value from the type checker."""
    return value


class Messages(unittest.TestCase):
    def test_zero_values_are_left_out_and_optional_ones_are_kept(self) -> None:
        self.assertEqual(AllocateRequest().to_json(), {})
        self.assertEqual(Limit(amount=0).to_json(), {"amount": 0})
        self.assertEqual(Claim(priority=0, tree="t").to_json(), {"tree": "t", "priority": 0})
        read = ReadOptions(consistency=Consistency.STALE, min_index=2**63)
        self.assertEqual(GetUsageRequest(read=read).to_json()["read"],
                         {"consistency": "CONSISTENCY_STALE", "minIndex": 2**63})

    def test_a_message_survives_both_ways(self) -> None:
        request = AllocateRequest(id="a", mode=Mode.WAIT, labels={"k": "v"}, ttl_ms=5, claims=[
            Claim(tree="t", node="n", amounts={"cores": 2**53 + 1}, unpreemptable=False)])
        self.assertEqual(AllocateRequest.from_json(request.to_json()), request)

    def test_names(self) -> None:
        self.assertEqual(Raise.from_json({"limit": "1", "needsReason": True}), Raise(limit=1, needs_reason=True))
        self.assertEqual(Raise(limit=3).to_json(), {"limit": 3})
        self.assertEqual(AllocateRequest.from_json({"anyOf": []}), AllocateRequest())

    def test_what_a_newer_server_sends(self) -> None:
        record = Allocation.from_json({"state": "ALLOCATION_STATE_FROZEN", "colour": {"x": 1}, "ttlMs": 7})
        self.assertEqual((record.state, record.ttl_ms), ("ALLOCATION_STATE_FROZEN", 7))

    def test_times_and_bytes(self) -> None:
        record = Allocation.from_json({"grantedAt": "2026-11-20T12:00:00.123456789Z"})
        self.assertEqual(record.granted_at, datetime(2026, 11, 20, 12, 0, 0, 123456, timezone.utc))
        self.assertEqual(record.to_json()["grantedAt"], "2026-11-20T12:00:00.123456Z")
        east = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
        self.assertEqual(Allocation(granted_at=east).to_json()["grantedAt"], "2026-01-01T00:00:00.000000Z")
        self.assertEqual(RestoreRequest.from_json({"chunk": "_-8"}), RestoreRequest.from_json({"chunk": "/+8="}))

    def test_wrong_types_name_their_field(self) -> None:
        for wrong, named in (
            (AllocateRequest(ttl_ms=wrong_type("5")), "AllocateRequest.ttl_ms: an int is expected, not str"),
            (AllocateRequest(claims=wrong_type("x")), "AllocateRequest.claims: a list is expected"),
            (AllocateRequest(mode=wrong_type(Consistency.STALE)), "AllocateRequest.mode: Mode is expected"),
            (Claim(node=wrong_type(5)), "Claim.node: a str is expected, not int"),
        ):
            with self.assertRaisesRegex(TypeError, named):
                wrong.to_json()
        with self.assertRaisesRegex(ValueError, "Allocation.ttl_ms"):
            Allocation.from_json({"ttlMs": "soon"})


if __name__ == "__main__":
    unittest.main()
