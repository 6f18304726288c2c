import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RevisionSchema } from "#gen/revision_pb";
import { Unit } from "#gen/tree_pb";
import { lastChanges } from "./last_change";
import { parseLimit, writeLimit } from "./limit_text";

test("limits are written as they are read", () => {
  for (const text of ["0", "16Gi", "advisory:10Gi", "unlimited", "unset"]) {
    assert.equal(writeLimit(parseLimit(` ${text} `, Unit.BYTES), Unit.BYTES), text);
  }
  assert.equal(writeLimit(parseLimit("500m", Unit.MILLI), Unit.MILLI), "500m");
  assert.equal(writeLimit(undefined, Unit.COUNT), "unset");
});

test("what is no limit is refused with the reason", () => {
  assert.throws(() => parseLimit("many", Unit.COUNT), /is not an amount/);
  assert.throws(() => parseLimit("advisory:-1", Unit.COUNT), /negative/);
  assert.throws(() => parseLimit("", Unit.COUNT), /is not an amount/);
});

test("the last change of each setting is the newest", () => {
  const revision = (n: bigint, ...fields: string[]) =>
    create(RevisionSchema, { revision: n, changes: fields.map((field) => ({ field })) });
  const last = lastChanges([revision(9n, "limit gpu"), revision(4n, "limit gpu", "limit cores"), revision(1n, "limit cores")]);
  assert.equal(last.get("limit gpu")?.revision, 9n);
  assert.equal(last.get("limit cores")?.revision, 4n);
  assert.equal(last.get("limit disk"), undefined);
});
