import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { LimitSchema } from "#gen/common_pb";
import { NodeUsageSchema, ResourceUsageSchema } from "#gen/tree_pb";
import { icicle, nextCell } from "./icicle";

function node(path: string, limit: number | undefined, subtree = 0) {
  const value = limit === undefined ? ({ case: "unlimited", value: true } as const) : ({ case: "amount", value: BigInt(limit) } as const);
  const effective = create(LimitSchema, { value });
  return create(NodeUsageSchema, {
    node: path,
    resources: [create(ResourceUsageSchema, { resource: "cores", subtree: BigInt(subtree), effective })],
  });
}

const shown = (nodes: ReturnType<typeof node>[]) =>
  icicle(nodes, "cores").map((c) => `${c.depth} ${c.path} ${c.x.toFixed(2)} ${c.width.toFixed(2)}`);

test("the width of a node is its limit, and what is not given away stays empty", () => {
  const nodes = [node("", 100), node("a", 50), node("a/x", 25), node("b", 25)];
  assert.deepEqual(shown(nodes), ["0  0.00 1.00", "1 a 0.00 0.50", "2 a/x 0.00 0.25", "1 b 0.50 0.25"]);
});

test("children with more than their parent share its width", () => {
  assert.deepEqual(shown([node("", 10), node("a", 30), node("b", 10)]), ["0  0.00 1.00", "1 a 0.00 0.75", "1 b 0.75 0.25"]);
});

test("without a limit the width is the use, and never nothing", () => {
  const cells = icicle([node("", undefined, 100), node("a", undefined, 50), node("b", undefined)], "cores");
  assert.equal(cells[1]!.width, 0.5);
  assert.ok(cells[2]!.width > 0);
});

test("keys lead to neighbours, parents and children", () => {
  const cells = icicle([node("", 100), node("a", 50), node("a/x", 25), node("b", 25)], "cores");
  const to = (path: string, key: string) => nextCell(cells, cells.find((c) => c.path === path)!, key)?.path;
  assert.equal(to("a", "ArrowRight"), "b");
  assert.equal(to("b", "ArrowLeft"), "a");
  assert.equal(to("a", "ArrowDown"), "a/x");
  assert.equal(to("a/x", "ArrowUp"), "a");
  assert.equal(to("a", "ArrowUp"), "");
  assert.equal(to("b", "ArrowRight"), undefined);
});
