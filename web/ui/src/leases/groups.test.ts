import { create } from "@bufbuild/protobuf";
import { AllocationSchema } from "#gen/allocation_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { endRows, leaseRows, type LeaseRow } from "./groups";

const lease = (id: string, node: string, expiresLedgerMs: bigint) =>
  create(AllocationSchema, { id, expiresLedgerMs, claims: [{ tree: "ci", node }] });
const leases = [lease("job-10", "team-2", 5n), lease("job-9", "team-2", 9n), lease("c", "team-10", 7n)];
const text = (r: LeaseRow) => (r.kind === "node" ? `${r.tree}:${r.node} ${r.count}` : r.lease.id);

test("leases stand below their nodes, in the order in which people count", () => {
  assert.deepEqual(leaseRows(leases).map(text), ["ci:team-2 2", "job-9", "job-10", "ci:team-10 1", "c"]);
});

test("leases can stand in the order of their ends", () => {
  assert.deepEqual(endRows(leases).map(text), ["job-10", "c", "job-9"]);
});
