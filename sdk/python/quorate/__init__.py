"""The Python client of a Quorate cluster. It needs only the standard library of Python 3.9 or newer.

    import quorate
    from quorate.v1 import AllocateRequest, Claim

    client = quorate.Client(["http://10.0.0.1:7101", "http://10.0.0.2:7101"])
    request = AllocateRequest(claims=[Claim(tree="cern", node="atlas", amounts={
        "cores": 8, "memory": quorate.in_bytes("16Gi")})], ttl_ms=60_000)
    try:
        with client.acquire(request, timeout=600) as lease:
            while work_is_left():
                lease.check()  # raises LeaseLost at the safe moment
                do_some_work()
    except quorate.Denied as denial:
        for v in denial.decision.violations:
            print(v.tree, v.node, v.resource, v.limit, v.used, v.requested)

quorate.v1 has the messages and enumerations of the API.
"""

from quorate.acquire import Progress
from quorate.amounts import bytes_text, in_bytes, in_count, in_milli, milli_text
from quorate.client import Client
from quorate.errors import (ENDED, PREEMPTED, TAKEN, UNRENEWED, Cancelled, CertificateError, Denied, LeaseEnded,
                            LeaseInherited, LeaseLost, LeaseReleased, QuorateError, Unavailable, WaitTimedOut)
from quorate.lease import Lease
from quorate.watch import AllocationWatch, ChangeWatch

__all__ = ["ENDED", "PREEMPTED", "TAKEN", "UNRENEWED", "AllocationWatch", "Cancelled", "CertificateError",
           "ChangeWatch", "Client", "Denied", "Lease", "LeaseEnded", "LeaseInherited", "LeaseLost", "LeaseReleased",
           "Progress", "QuorateError", "Unavailable", "WaitTimedOut", "bytes_text", "in_bytes", "in_count", "in_milli",
           "milli_text"]

__version__ = "0.1.0"
