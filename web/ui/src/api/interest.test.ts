import { create } from "@bufbuild/protobuf";
import { TreeChangesSchema, WatchChangesResponseSchema } from "#gen/change_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { concerns } from "./interest";

const inTree = (changes: object) =>
  create(WatchChangesResponseSchema, { trees: [create(TreeChangesSchema, { tree: "a", ...changes })] });

test("a change of usage concerns reads of usage in its tree", () => {
  const message = inTree({ nodes: ["", "x"] });
  assert.ok(concerns(message, { tree: "a", usage: true }));
  assert.ok(concerns(message, { usage: true }));
  assert.ok(!concerns(message, { tree: "b", usage: true }));
  assert.ok(!concerns(message, { tree: "a", queue: true }));
  assert.ok(!concerns(message, { configuration: true }));
});

test("queues and items are told apart", () => {
  assert.ok(concerns(inTree({ nodes: ["x"], queue: true }), { queue: true }));
  assert.ok(concerns(inTree({ items: ["host"] }), { tree: "a", items: true }));
  assert.ok(!concerns(inTree({ items: ["host"] }), { tree: "a", usage: true }));
});

test("what is not named may have changed", () => {
  assert.ok(concerns(inTree({ many: true }), { tree: "a", queue: true }));
  assert.ok(!concerns(inTree({ many: true }), { tree: "a", members: true }));
  assert.ok(concerns(create(WatchChangesResponseSchema, { everything: true }), { members: true }));
  assert.ok(concerns(create(WatchChangesResponseSchema, { configuration: true }), { tree: "a", usage: true }));
  assert.ok(concerns(create(WatchChangesResponseSchema, { limitRequests: true }), { limitRequests: true }));
  assert.ok(!concerns(create(WatchChangesResponseSchema, { limitRequests: true }), { usage: true }));
});

test("a heartbeat concerns no read", () => {
  assert.ok(!concerns(create(WatchChangesResponseSchema, { heartbeat: true }), { usage: true, members: true }));
});
