import assert from "node:assert/strict";
import { test } from "node:test";
import { toPlace } from "./place";

test("a text with a colon is the beginning of a place", () => {
  assert.deepEqual(toPlace("cern:atlas/ph"), { tree: "cern", parent: "atlas", prefix: "atlas/ph" });
  assert.deepEqual(toPlace("cern:"), { tree: "cern", parent: "", prefix: "" });
  assert.deepEqual(toPlace("cern:atlas/"), { tree: "cern", parent: "atlas", prefix: "atlas/" });
  assert.equal(toPlace("cern"), undefined);
  assert.equal(toPlace(":x"), undefined);
});
