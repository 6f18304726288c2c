import { create } from "@bufbuild/protobuf";
import { ItemCountSchema, ItemNameSchema, ItemSchema } from "#gen/item_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { groupsOf, letterOf, lookOf, moveIn, statesOf, totalOf } from "./cell";

test("states are counted, the most frequent first", () => {
  const count = create(ItemCountSchema, { states: { free: 2n, dirty: 5n, busy: 2n, gone: 0n } });
  assert.deepEqual(statesOf(count), [["dirty", 5n], ["busy", 2n], ["free", 2n]]);
  assert.equal(totalOf(count), 9n);
});

test("states that are usual differ in their looks, and others do not look like them", () => {
  assert.equal(new Set(["free", "leased", "dirty", "cleaning"].map(lookOf)).size, 4);
  assert.ok(lookOf("toBeDeleted") >= 4 && lookOf("") >= 4);
  assert.equal(letterOf("dirty"), "D");
  assert.equal(letterOf(""), "?");
});

test("items are grouped by what their names have in common", () => {
  const items = ["host-1", "host-22", "gpu.3", "single"].map((name) =>
    create(ItemSchema, { name: create(ItemNameSchema, { name }) }),
  );
  assert.deepEqual(groupsOf(items).map(([prefix, list]) => [prefix, list.length]), [["host", 2], ["gpu", 1], ["single", 1]]);
});

test("arrow keys move in the grid and stop at its edges", () => {
  assert.equal(moveIn("ArrowDown", 1, 10, 4), 5);
  assert.equal(moveIn("ArrowDown", 8, 10, 4), 8);
  assert.equal(moveIn("ArrowLeft", 0, 10, 4), 0);
  assert.equal(moveIn("End", 0, 10, 4), 9);
  assert.equal(moveIn("x", 0, 10, 4), undefined);
});
