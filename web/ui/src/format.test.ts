import { Unit } from "#gen/tree_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { clockText, counted, exact, localText, natural, optionText, relative, short, span } from "./format";

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

test("one change is not several", () => {
  assert.equal(counted(1n, "change"), "1 change");
  assert.equal(counted(2, "change"), "2 changes");
});

test("names are in the order in which people count", () => {
  const names = ["account-10", "account-2", "account-1", "b", "Account-1"];
  assert.deepEqual(names.sort(natural).slice(1), ["Account-1", "account-2", "account-10", "b"]);
});

test("times are written by how far they are, and far ones by their date", () => {
  const at = Date.UTC(2026, 10, 30, 12);
  assert.equal(relative(at - 500, at), "now");
  assert.equal(relative(at - 59_000, at), "59 s ago");
  assert.equal(relative(at - 3 * 60_000, at), "3 min ago");
  assert.equal(relative(at + 26 * 3_600_000, at), "in 1 d");
  assert.equal(relative(at - 40 * 86_400_000, at), undefined);
});

test("a day has 24 hours, and dates are in the order of ISO 8601", () => {
  const evening = new Date(2026, 10, 3, 17, 4, 9);
  assert.equal(localText(evening), "2026-11-03 17:04:09");
  assert.equal(clockText(evening), "17:04");
});
