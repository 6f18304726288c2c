import { Unit } from "#gen/tree_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { exact, optionText, short, span } from "./format";

test("amounts are written as the command line writes them", () => {
  assert.equal(exact(1500n, Unit.MILLI), "1500m");
  assert.equal(exact(2000n, Unit.MILLI), "2");
  assert.equal(exact(64n * 2n ** 30n, Unit.BYTES), "64Gi");
  assert.equal(exact(1000n, Unit.BYTES), "1k");
  assert.equal(exact(1000n, Unit.COUNT), "1000");
  assert.equal(exact(9007199254740993n, Unit.COUNT), "9007199254740993");
});

test("long amounts of bytes are rounded down and marked", () => {
  assert.equal(short(123456789n, Unit.BYTES), "~117.73Mi");
  assert.equal(short(123456789n, Unit.COUNT), "123456789");
});

test("spans have their two largest units", () => {
  assert.equal(span(7_500_000), "2h5m");
  assert.equal(span(0), "0s");
  assert.equal(span(86_400_000 + 5000), "1d");
});

test("texts of options cannot change the direction of what follows", () => {
  assert.equal(optionText("ci\u202egnp.exe\u2069"), "ci\ufffdgnp.exe\ufffd");
  assert.equal(optionText("\u05d0nna"), "\u05d0nna");
});
