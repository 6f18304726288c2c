import { create } from "@bufbuild/protobuf";
import { AllocationState, HeldClaimSchema } from "#gen/allocation_pb";
import { EndReasonKind, EndReasonSchema } from "#gen/decision_pb";
import { Unit } from "#gen/tree_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { exact } from "../format";
import { amountsOf, itemsOf, lineText, notesOf, reasonText, stateWord } from "./allocation";

const amount = (_tree: string, resource: string, n: bigint) => exact(n, resource === "ram" ? Unit.BYTES : Unit.COUNT);

test("claims are written as the command line writes them", () => {
  const claim = create(HeldClaimSchema, {
    tree: "ci",
    node: "web",
    placed: "",
    amounts: { ram: 16n << 30n, gpus: 8n },
    ranges: [{ resource: "gpus", least: 4n, most: 16n, step: 4n }],
    picks: [{ resource: "account", state: "dirty" }, { resource: "slot", names: ["a", "b"] }, { resource: "vm", count: 3n }],
    group: "dev",
    priority: 7n,
  });
  assert.deepEqual(amountsOf(claim, amount), ["gpus=8 of 4..16/4", "ram=16Gi"]);
  assert.deepEqual(itemsOf(claim), ["account@dirty=1", "slot:a,b", "vm=3"]);
  assert.deepEqual(notesOf(claim), ["counted at ci", "priority 7", "counted for group dev"]);
});

test("items that are held are named", () => {
  const items = ["a", "b"].map((name) => ({ resource: "account", name }));
  const claim = create(HeldClaimSchema, { items: [...items, { resource: "vm", name: "v" }], picks: [{ resource: "vm" }] });
  assert.deepEqual(itemsOf(claim), ["account:a,b", "vm:v"]);
});

test("states and positions have words", () => {
  assert.equal(stateWord(AllocationState.TIMED_OUT), "timed out");
  assert.equal(lineText("cores at cern"), "cores at cern");
  assert.equal(lineText("gpu-machine free of ci"), "free gpu-machine in ci");
  assert.equal(lineText(""), "");
});

test("reasons are told as the command line tells them", () => {
  const amounts = [{ resource: "cores", requested: 3n, missing: 2n, given: 4n }];
  const shared = { tree: "cern", node: "", amounts };
  const text = (init: object) => reasonText(create(EndReasonSchema, { ...shared, ...init }), amount);
  assert.equal(
    text({ kind: EndReasonKind.PRIORITY, priority: 1n, requestPriority: 5n }),
    "priority 5 over 1, 2 of 3 cores missing at cern, 4 given",
  );
  assert.equal(
    text({ kind: EndReasonKind.SHARE, share: "a", borrower: "b", amounts: [{ resource: "cores", given: 4n }] }),
    "cern:a took back its share, 4 cores given, borrowed by cern:b",
  );
  assert.equal(text({ kind: EndReasonKind.DRAIN, actor: "ann", text: "racks" }), "cern is drained by ann (racks)");
  assert.equal(text({ kind: EndReasonKind.RELEASE }), "released by another caller");
  assert.equal(reasonText(undefined, amount), "");
});
