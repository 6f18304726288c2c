"""Asks for too much of 1, 3 and 8 resources through gRPC's C core, and prints what arrives of each denial.

Requests are encoded by hand, so that the program needs nothing but grpcio: AllocateRequest has id = 1 and claims = 2, a
claim has tree, node and amounts = 1, 2, 3.
"""
import sys
import time

import grpc


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def request(name, count):
    claim = field(1, b"deep") + field(2, sys.argv[2].encode())
    for i in range(count):
        claim += field(3, field(1, b"res%d" % i) + varint(2 << 3) + varint(5))
    return field(1, name.encode()) + field(3, claim)


call = grpc.insecure_channel(sys.argv[1]).unary_unary(
    "/quorate.v1.AllocationService/Allocate", request_serializer=lambda b: b, response_deserializer=lambda b: b)


def ask(n):
    """Returns the error of a request, once the servers have a leader."""
    for _ in range(120):
        try:
            call(request("grpcio-%d" % n, n), timeout=60, wait_for_ready=True)
            sys.exit("granted")
        except grpc.RpcError as e:
            if e.code() != grpc.StatusCode.UNAVAILABLE:
                return e
        time.sleep(0.5)
    sys.exit("the servers find no leader")


for n in (1, 3, 8):
    e = ask(n)
    detail = dict(e.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    print(e.code().name, detail.hex())
