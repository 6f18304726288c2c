import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { NodeUsageSchema } from "#gen/tree_pb";
import type { Level } from "./levels";
import { activeIndex, inPlace, step, treeRows, typeAhead } from "./rows";

const node = (path: string, children = 0) => create(NodeUsageSchema, { node: path, childCount: BigInt(children) });
const level = (top: string, ...nodes: [string, number][]): Level => ({
  top: node(top, nodes.length),
  nodes: nodes.map(([path, children]) => node(path, children)),
  more: false,
  filtered: false,
});
const shown = (rows: ReturnType<typeof treeRows>) => rows.map((r) => `${r.level} ${r.kind} ${r.path} ${r.open ?? ""}`.trim());

const levels = new Map([
  ["", level("", ["a", 2], ["b", 1], ["c", 0])],
  ["a", level("a", ["a/x", 0], ["a/y", 3])],
]);

test("rows have the open levels in place", () => {
  const rows = treeRows("", levels, new Set(["a", "b"]));
  assert.deepEqual(shown(rows), [
    "1 node  true",
    "2 node a true",
    "3 node a/x",
    "3 node a/y false",
    "2 node b true",
    "3 reading b",
    "2 node c",
  ]);
  assert.deepEqual([rows[3]!.place, rows[3]!.siblings], [2, 2]);
});

test("a level says that more follows", () => {
  const some = new Map([["", { ...levels.get("")!, more: true }]]);
  assert.deepEqual(shown(treeRows("", some, new Set())).at(-1), "2 more");
});

test("without the node itself its level is the first", () => {
  const some = new Map([["", { ...levels.get("")!, top: undefined }]]);
  assert.equal(treeRows("", some, new Set())[0]!.level, 1);
});

test("keys move as the pattern says", () => {
  const rows = treeRows("", levels, new Set(["a"]));
  const at = (path: string) => rows.findIndex((r) => r.path === path);
  assert.deepEqual(step("ArrowRight", rows, at("b"), 10), { open: true });
  assert.deepEqual(step("ArrowRight", rows, at("a"), 10), { to: at("a/x") });
  assert.deepEqual(step("ArrowRight", rows, at("c"), 10), undefined);
  assert.deepEqual(step("ArrowLeft", rows, at("a"), 10), { open: false });
  assert.deepEqual(step("ArrowLeft", rows, at("a/y"), 10), { to: at("a") });
  assert.deepEqual(step("ArrowLeft", rows, at("b"), 10), { to: 0 });
  assert.deepEqual(step("ArrowLeft", rows, 0, 10), undefined);
  assert.deepEqual(step("End", rows, 0, 10), { to: rows.length - 1 });
  assert.deepEqual(step("ArrowUp", rows, 0, 10), { to: 0 });
  assert.deepEqual(step("PageDown", rows, 1, 2), { to: 3 });
});

test("the active row is found again when others take its place", () => {
  const rows = treeRows("", levels, new Set(["a"]));
  const path = (kind: "node" | "reading", of: string) => rows[activeIndex(rows, { kind, path: of })]!.path;
  assert.equal(path("node", "a/y"), "a/y");
  assert.equal(path("reading", "a"), "a/x");
  assert.equal(path("node", "a/gone"), "a");
  assert.equal(path("reading", "b"), "b");
  assert.equal(path("node", "gone"), "");
});

test("typing finds the next name", () => {
  const rows = treeRows("", levels, new Set(["a"]));
  const name = (r: { path: string }) => r.path.split("/").at(-1)!;
  assert.equal(rows[typeAhead(rows, 0, "Y", name)]!.path, "a/y");
  assert.equal(rows[typeAhead(rows, 0, "b", name)]!.path, "b");
  assert.equal(typeAhead(rows, 1, "zz", name), 1);
});

test("nodes keep their places", () => {
  const before = new Map([["b", 0], ["a", 1]]);
  const names = inPlace(before, [node("c"), node("a"), node("b"), node("d")]).map((n) => n.node);
  assert.deepEqual(names, ["b", "a", "c", "d"]);
});
