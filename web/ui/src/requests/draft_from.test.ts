import { create } from "@bufbuild/protobuf";
import { AllocationSchema } from "#gen/allocation_pb";
import { Unit } from "#gen/tree_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { exact } from "../format";
import { allocateCommand } from "./draft";
import { draftFrom } from "./draft_from";

const amount = (_tree: string, resource: string, n: bigint) => exact(n, resource === "ram" ? Unit.BYTES : Unit.COUNT);

test("what an allocation holds can be asked for again", () => {
  const a = create(AllocationSchema, {
    principal: { user: "ann", groups: ["dev"] },
    priority: 3n,
    ttlMs: 5_400_000n,
    claims: [
      {
        tree: "ci",
        node: "web",
        amounts: { ram: 16n << 30n, gpus: 8n },
        ranges: [{ resource: "gpus", least: 4n, most: 16n, step: 4n }],
        picks: [{ resource: "account", state: "free" }, { resource: "slot", state: "dirty", names: ["a", "b"] }],
      },
    ],
  });
  assert.equal(
    allocateCommand(draftFrom(a, amount)),
    "quorate allocate --ttl 90m --user ann --group dev --priority 3 --at ci:web --amount gpus=4..16/4" +
      " --amount ram=16Gi --item account=1 --item slot@dirty:a,b",
  );
});

test("a request with alternatives keeps them", () => {
  const claims = (tree: string) => [{ tree, amounts: { cores: 1n } }];
  const a = create(AllocationSchema, {
    claims: claims("a"),
    waiting: { alternatives: [{ alternative: 1, claims: claims("a") }, { alternative: 2, claims: claims("b") }] },
  });
  assert.equal(
    allocateCommand(draftFrom(a, amount)),
    "quorate allocate --at a --amount cores=1 --or --at b --amount cores=1",
  );
});
