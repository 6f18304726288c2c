// The commands are those of cmd/quorate/internal/request/explain.go.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { HolderKind, RaiseSchema, ViolationKind } from "#gen/decision_pb";
import { Unit } from "#gen/tree_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { exact } from "../format";
import { raiseCommand, raiseObstacle, raiseText } from "./remedy";
import { argumentWord, flagWord } from "./shell";

const amount = (_tree: string, _resource: string, n: bigint) => exact(n, Unit.COUNT);
const cores = {
  tree: "cern", node: "atlas", resource: "cores", kind: ViolationKind.RESOURCE, limit: 10n, newLimit: 12n,
};

test("raises are commands to paste", () => {
  const cases: [MessageInitShape<typeof RaiseSchema>, string][] = [
    [cores, "quorate limit set cern:atlas cores=12"],
    [{ ...cores, needsReason: true },
      "quorate limit set cern:atlas cores=12 --reason='room for a denied request'"],
    [{ ...cores, holderKind: HolderKind.USER, holder: "o'hara" },
      "quorate limit set cern:atlas cores=12 --user='o'\\''hara'"],
    [{ ...cores, resource: "", kind: ViolationKind.APPLICATIONS, holderKind: HolderKind.GROUP, holder: "dev" },
      "quorate limit set cern:atlas --applications=12 --group=dev"],
  ];
  for (const [init, want] of cases) assert.equal(raiseCommand(create(RaiseSchema, init), amount), want);
});

test("a limit that no command can set says why", () => {
  const obstacle = (init: object) => raiseObstacle(create(RaiseSchema, { ...cores, ...init }));
  assert.equal(obstacle({}), "");
  assert.equal(obstacle({ unconfigured: true }), "after the node is configured");
  assert.equal(obstacle({ kind: ViolationKind.BORROWING }), "in the configuration");
  assert.equal(raiseCommand(create(RaiseSchema, { ...cores, kind: ViolationKind.BORROWING }), amount), "");
  assert.equal(raiseText(create(RaiseSchema, cores), amount), "cores: 10 → 12");
});

test("words that a shell interprets are quoted", () => {
  assert.equal(flagWord("a-b_c.d"), "a-b_c.d");
  assert.equal(flagWord("$(rm x)"), "'$(rm x)'");
  assert.equal(argumentWord("--force"), "-- '--force'");
  assert.equal(argumentWord("job-7"), "job-7");
});
