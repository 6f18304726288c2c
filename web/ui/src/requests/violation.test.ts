// The sentences are those of cmd/quorate/internal/cli/violation.go.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { TenantsSee } from "#gen/common_pb";
import { HolderKind, ViolationKind, ViolationSchema } from "#gen/decision_pb";
import { Unit } from "#gen/tree_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { exact } from "../format";
import { neverText, violationText } from "./violation";

const units: Record<string, Unit> = { "cern cores": Unit.COUNT, "cern ram": Unit.BYTES };
const amount = (tree: string, resource: string, n: bigint) => exact(n, units[`${tree} ${resource}`] ?? Unit.COUNT);

const cores = { tree: "cern", node: "atlas", resource: "cores", limit: 100n, used: 90n, requested: 25n, missing: 15n };

const sentences: [MessageInitShape<typeof ViolationSchema>, string][] = [
  [cores, "cern:atlas  cores: limit 100, used 90, requested 25, missing 15"],
  [{ ...cores, node: "" }, "cern  cores: limit 100, used 90, requested 25, missing 15"],
  [
    { ...cores, resource: "ram", limit: 64n << 30n, used: 60n << 30n, requested: 8n << 30n, missing: 4n << 30n },
    "cern:atlas  ram: limit 64Gi, used 60Gi, requested 8Gi, missing 4Gi",
  ],
  [
    { ...cores, holderKind: HolderKind.USER, holder: "ann" },
    "cern:atlas  user ann, cores: limit 100, used 90, requested 25, missing 15",
  ],
  [
    { ...cores, kind: ViolationKind.APPLICATIONS, resource: "", holderKind: HolderKind.GROUP, holder: "dev" },
    "cern:atlas  group dev, applications: limit 100, used 90, requested 25, missing 15",
  ],
  [{ ...cores, kind: ViolationKind.BORROWING, seen: TenantsSee.NAMES },
    "cern:atlas  borrowed cores: requested 25, missing 15"],
  [{ ...cores, seen: TenantsSee.NOTHING, alternative: 2 },
    "alternative 2: a level above in cern  cores: requested 25, missing 15"],
  [{ ...cores, kind: ViolationKind.ITEMS, item: "free" },
    "cern:atlas  cores (free): limit 100, used 90, requested 25, missing 15"],
  [{ ...cores, kind: ViolationKind.QUEUE, used: 1n }, "cern:atlas  cores: 1 request comes first"],
  [{ ...cores, kind: ViolationKind.QUEUE, used: 3n, resource: "" }, "cern:atlas  everything: 3 requests come first"],
  [{ ...cores, kind: ViolationKind.QUEUE, seen: TenantsSee.NAMES }, "cern:atlas  cores: other requests come first"],
  [{ tree: "cern", node: "atlas", kind: ViolationKind.CORDON, reason: "new racks" },
    "cern:atlas  cordoned (new racks): nothing new is admitted there and below"],
  [{ tree: "gone", node: "x", resource: "ram", limit: 1024n, used: 0n, requested: 2048n, missing: 1024n },
    "gone:x  ram: limit 1024, used 0, requested 2048, missing 1024"],
];

test("limits in the way are told as the command line tells them", () => {
  for (const [init, want] of sentences) assert.equal(violationText(create(ViolationSchema, init), amount), want);
});

test("a request that never fits is told by how much it is too large, if that is known", () => {
  const never = (init: MessageInitShape<typeof ViolationSchema>) => neverText(create(ViolationSchema, init), amount);
  assert.equal(
    never({ tree: "cern", resource: "ram", excess: 8n << 30n }),
    "Larger than the limit itself by 8Gi: no release helps.",
  );
  assert.equal(never({ tree: "cern", resource: "ram" }), "Larger than the limit itself: no release helps.");
});
