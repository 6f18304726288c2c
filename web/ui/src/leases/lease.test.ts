import { create } from "@bufbuild/protobuf";
import { AllocationSchema } from "#gen/allocation_pb";
import { AllocationRefSchema } from "#gen/common_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { bySoonestEnd, markOf, placeOf, spanAround } from "./lease";

const lease = (id: string, granted: number, ends: number, more: object = {}) =>
  create(AllocationSchema, {
    id,
    grantedLedgerMs: BigInt(granted),
    expiresLedgerMs: BigInt(ends),
    ttlMs: 60_000n,
    ...more,
  });
const ids = (list: { id: string }[]) => list.map((a) => a.id).join(" ");

test("a lease of which less than a third is left was renewed late", () => {
  assert.equal(markOf(lease("a", 0, 60_000), 39_000), "");
  assert.equal(markOf(lease("a", 0, 60_000), 41_000), "renewal late");
  assert.equal(markOf(lease("a", 0, 60_000, { revokedBy: create(AllocationRefSchema, { id: "b" }) }), 0), "revoked");
  assert.equal(markOf(lease("a", 0, 60_000, { endsLedgerMs: 60_000n }), 59_000), "declared end");
});

test("the span has the ends of all leases", () => {
  const span = spanAround([lease("a", 0, 100_000), lease("b", 0, 1_200_000)], 0);
  assert.deepEqual(span, { from: -1_800_000, to: 3_600_000 });
  assert.deepEqual(spanAround([], 1000), { from: -29_000, to: 61_000 });
});

test("a bar goes from the grant to the end, as far as it is drawn", () => {
  const span = { from: 0, to: 1000 };
  assert.deepEqual(placeOf(lease("a", 250, 750), span), { left: 25, width: 50, cut: false });
  assert.deepEqual(placeOf(lease("a", -500, 2000), span), { left: 0, width: 100, cut: true });
});

test("the lease that ends first comes first", () => {
  assert.equal(ids(bySoonestEnd([lease("late", 0, 900), lease("soon", 0, 100)])), "soon late");
});
