import assert from "node:assert/strict";
import { test } from "node:test";
import { SubjectKind } from "#gen/access_pb";
import { subjectText } from "./subject";

test("subjects are written as in manifests", () => {
  assert.equal(subjectText({ kind: SubjectKind.USER, name: "corp/ann" }), "user corp/ann");
  assert.equal(subjectText({ kind: SubjectKind.EVERYONE, name: "" }), "everyone");
  assert.equal(subjectText({ kind: 99 as SubjectKind, name: "x" }), "unknown x");
});
