"""Allocates, is denied, waits in the queue, renews and releases over gRPC: queue.py HOST:PORT TREE NODE.

README.md says how the modules that it imports are generated. It needs grpcio 1.51 and protobuf 3.21 or later. Against
servers with certificates, use grpc.secure_channel and send a token as the metadata ("authorization", "Bearer TOKEN").
"""
import sys
import time

import grpc

import google_rpc_status_pb2 as rpc_status
from quorate.v1 import allocation_pb2 as pb
from quorate.v1 import allocation_pb2_grpc, decision_pb2

address, tree, node = sys.argv[1:4]
channel = grpc.insecure_channel(address)
allocations = allocation_pb2_grpc.AllocationServiceStub(channel)


def details(error):
    """Returns the Decision of a denial or the Problem of any other error, and None if there is neither."""
    encoded = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    for detail in rpc_status.Status.FromString(encoded).details:
        for message in (decision_pb2.Decision(), decision_pb2.Problem()):
            if detail.Unpack(message):
                return message
    return None


def call(method, request):
    """Calls until a server answers. All requests here have ids, so a repetition is never counted twice."""
    end = time.monotonic() + 60
    while True:
        try:
            return method(request, timeout=15)
        except grpc.RpcError as error:
            transient = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
            if not transient or time.monotonic() > end:
                raise
        time.sleep(0.2)


def allocate(name, cores, **more):
    claim = pb.Claim(tree=tree, node=node, amounts={"cores": cores})
    return call(allocations.Allocate, pb.AllocateRequest(id=name, claims=[claim], ttl_ms=60_000, **more))


def release(name, fence):
    return call(allocations.Release, pb.ReleaseRequest(id=name, fence=fence))


first = allocate("python-1", 6, mode=pb.MODE_REJECT)
print("granted", first.allocation.id)

try:
    allocate("python-2", 6, mode=pb.MODE_REJECT)
    sys.exit("python-2 was granted")
except grpc.RpcError as error:
    decision = details(error)
    if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED or not isinstance(decision, decision_pb2.Decision):
        raise
    print("denied:", "it can never fit" if decision.never_fits else "it may fit later")
    for v in decision.violations:
        print(f"  {v.tree}:{v.node} {v.resource}: limit {v.limit}, used {v.used}, requested {v.requested}")

second = allocate("python-2", 6, mode=pb.MODE_WAIT)
print("waits at position", second.allocation.waiting.position)

renewed = call(allocations.Renew, pb.RenewRequest(id="python-1", fence=first.allocation.fence))
remaining = renewed.allocation.expires_ledger_ms - renewed.write.ledger_time_ms
print("renewed for", remaining // 1000, "s")

release("python-1", first.allocation.fence)
print("released python-1")

while second.allocation.state == pb.ALLOCATION_STATE_WAITING:  # each call keeps its place in the queue
    second = allocate("python-2", 6, mode=pb.MODE_WAIT, poll_ms=5_000)
if second.allocation.state != pb.ALLOCATION_STATE_HELD or second.allocation.fence <= first.allocation.fence:
    sys.exit("python-2 left the queue, or has an old fence: %s" % second.allocation)
print("granted python-2")

third = allocate("python-3", 1, mode=pb.MODE_REJECT)
print("granted python-3")
try:
    release("python-3", second.allocation.fence)  # that of another grant: a late call must not end this one
    sys.exit("python-3 was released")
except grpc.RpcError as error:
    print("refused:", details(error).reason)

token, pages = "", 0
while token or not pages:
    page = call(allocations.ListAllocations,
                pb.ListAllocationsRequest(tree=tree, id_prefix="python-", page_size=1, page_token=token))
    token, pages = page.next_page_token, pages + 1
    for a in page.allocations:
        print(f"page {pages}: {a.id} {pb.AllocationState.Name(a.state)}")

release("python-2", second.allocation.fence)
release("python-3", third.allocation.fence)
print("released python-2 python-3")
channel.close()
