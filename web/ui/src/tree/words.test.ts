import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Limit } from "#gen/common_pb";
import { LimitSchema } from "#gen/common_pb";
import { NodeUsageSchema, ResourceUsageSchema, Unit, type ResourceUsage } from "#gen/tree_pb";
import { fillOf, levelsAbove, marksOf, roomAbove, roomText, usedText, usualResources } from "./words";

const amount = (value: bigint): Limit => create(LimitSchema, { value: { case: "amount", value } });
const advisory = (value: bigint): Limit => create(LimitSchema, { value: { case: "advisory", value } });
const unlimited: Limit = create(LimitSchema, { value: { case: "unlimited", value: true } });

function usage(resource: string, subtree: bigint, effective: Limit, more: Partial<ResourceUsage> = {}): ResourceUsage {
  return Object.assign(create(ResourceUsageSchema, { resource, unit: Unit.BYTES, subtree, effective }), more);
}

test("use and room are told with their units", () => {
  assert.equal(usedText(usage("memory", 2n ** 34n, amount(2n ** 36n))), "16Gi of 64Gi");
  assert.equal(usedText(usage("memory", 0n, unlimited)), "0, no limit");
  assert.equal(usedText(usage("memory", 8n, amount(4n))), "8, share 4");
  assert.equal(usedText(usage("memory", 8n, amount(4n), { over: 4n })), "8 of 4");
  assert.equal(roomText(usage("memory", 0n, unlimited)), "");
  assert.equal(roomText(usage("memory", 0n, unlimited, { headroom: 1024n })), "1Ki free");
  assert.equal(roomText(usage("memory", 5n, amount(5n), { headroom: 0n })), "none free");
  assert.equal(roomText(usage("memory", 9n, amount(5n), { headroom: 0n, over: 4n })), "over by 4");
});

test("a bar tells how full the limit of the node itself is", () => {
  assert.equal(fillOf(usage("gpu", 2n, amount(8n), { headroom: 0n })), "free");
  assert.equal(fillOf(usage("gpu", 8n, amount(8n))), "full");
  assert.equal(fillOf(usage("gpu", 0n, amount(0n))), "free");
  assert.equal(fillOf(usage("gpu", 8n, amount(4n))), "share");
  assert.equal(fillOf(usage("gpu", 8n, amount(4n), { over: 4n })), "over");
  assert.equal(fillOf(usage("gpu", 8n, unlimited)), "unlimited");
});

test("marks tell what the bar does not", () => {
  assert.deepEqual(marksOf(usage("gpu", 1n, amount(4n))), []);
  assert.deepEqual(marksOf(usage("gpu", 8n, amount(4n), { borrowed: 4n, lends: 2n })), ["borrows 4", "lends up to 2"]);
  assert.deepEqual(marksOf(usage("gpu", 8n, advisory(4n))), ["advisory"]);
});

test("resources that matter nowhere are not shown", () => {
  const root = create(NodeUsageSchema, { resources: [usage("a", 0n, unlimited), usage("b", 0n, unlimited)] });
  const child = create(NodeUsageSchema, { resources: [usage("a", 0n, unlimited), usage("b", 3n, unlimited)] });
  assert.deepEqual(usualResources([root, child]), ["b"]);
  assert.deepEqual(usualResources([root]), ["a", "b"]);
});

test("a level above that leaves less than the limit is named", () => {
  const level = (node: string, used: bigint, limit: bigint, headroom: bigint, over = 0n) =>
    create(NodeUsageSchema, { node, resources: [usage("gpu", used, amount(limit), { headroom, over, unit: Unit.COUNT })] });
  const [root, full] = [level("", 90n, 100n, 10n), level("life", 8n, 8n, 0n)];
  const why = (node: string, used: bigint, limit: bigint, headroom: bigint, above = [root, full]) =>
    roomAbove(level(node, used, limit, headroom).resources[0]!, levelsAbove("uni", node, "gpu", above));
  assert.equal(why("life/genes", 4n, 8n, 0n), "life is full");
  assert.equal(why("physics", 4n, 80n, 10n), "only 10 left in uni");
  assert.equal(why("physics", 4n, 8n, 4n), "");
  assert.equal(why("lifeless/x", 4n, 8n, 0n), "");
  assert.equal(roomAbove(usage("gpu", 0n, unlimited, { headroom: 10n }), levelsAbove("uni", "x", "gpu", [root])), "");
  assert.equal(why("life/genes", 4n, 8n, 0n, []), "");
  assert.equal(why("life/genes", 9n, 8n, 0n, [root, level("life", 9n, 8n, 0n, 1n)]), "");
});
