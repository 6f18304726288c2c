import assert from "node:assert/strict";
import { test } from "node:test";
import { rowHeight, scrollFor, windowOf } from "./window";

test("only rows near the screen are drawn", () => {
  const height = 34 + 10 * rowHeight;
  assert.deepEqual(windowOf(20_000, 0, height), { first: 0, end: 27, page: 10 });
  assert.deepEqual(windowOf(20_000, 1000 * rowHeight, height), { first: 992, end: 1019, page: 10 });
  assert.deepEqual(windowOf(20_000, 19_990 * rowHeight, height), { first: 19_982, end: 20_000, page: 10 });
  assert.deepEqual(windowOf(20_000, 40_000, 434, 40), { first: 992, end: 1019, page: 10 });
  assert.deepEqual(windowOf(3, 5000, height), { first: 0, end: 3, page: 10 });
});

test("a row comes onto the screen without a larger jump than needed", () => {
  const height = 34 + 10 * rowHeight;
  assert.equal(scrollFor(5, 0, height), 0);
  assert.equal(scrollFor(10, 0, height), rowHeight);
  assert.equal(scrollFor(3, 5 * rowHeight, height), 3 * rowHeight);
});
