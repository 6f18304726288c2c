"""Acquires a lease of a few cores, works while it is held, and says why if it is denied.

    python3 sdk/python/example.py http://127.0.0.1:7101 cern:atlas/operations/web cores=4

The environment names certificates and a token, as for the command line of Quorate.
"""

import os
import sys
import time

import quorate
from quorate.v1 import AllocateRequest, Claim, Mode


def main(servers: str, place: str, amount: str) -> int:
    """Returns the exit status: 0 after the work, 3 if the request was denied, 7 if the lease was lost."""
    tree, _, node = place.partition(":")
    resource, _, number = amount.partition("=")
    client = quorate.Client(
        servers.split(","),
        ca=os.environ.get("QUORATE_TLS_CA"),
        cert=os.environ.get("QUORATE_TLS_CERT"),
        key=os.environ.get("QUORATE_TLS_KEY"),
        token_file=os.environ.get("QUORATE_TOKEN_FILE"),
    )
    request = AllocateRequest(
        claims=[Claim(tree=tree, node=node, amounts={resource: int(number)})],
        ttl_ms=30_000,      # renewed in the background; it ends by itself if this process dies
        mode=Mode.REJECT,   # leave it out to wait in the queue
    )
    try:
        with client.acquire(request) as lease:
            print("granted", lease.id, "with fence", lease.fence)
            for _ in range(3):
                lease.check()  # raises LeaseLost at the safe moment
                time.sleep(0.1)  # the work
    except quorate.Denied as denial:
        print("denied:", denial.decision.explanation)
        for v in denial.decision.violations:
            print(f"  {v.tree}:{v.node} {v.resource}: limit {v.limit}, used {v.used}, requested {v.requested}, "
                  f"missing {v.missing}")
        return 3
    except quorate.LeaseLost as lost:
        print(lost)
        return 7
    print("released")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
