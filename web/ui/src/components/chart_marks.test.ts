import assert from "node:assert/strict";
import { test } from "node:test";
import { marksUpTo } from "./chart_marks";

const gi = 1024 ** 3;

test("marks of bytes are round in the units in which bytes are written", () => {
  assert.deepEqual(marksUpTo(2048 * gi, "bytes"), [0, 512 * gi, 1024 * gi, 1536 * gi, 2048 * gi]);
  assert.deepEqual(marksUpTo(800e12, "decimal bytes"), [0, 200e12, 400e12, 600e12, 800e12]);
  assert.deepEqual(marksUpTo(0, "bytes"), [0, 1]);
});

test("marks of spans are whole seconds, minutes or hours, and no two look alike", () => {
  assert.deepEqual(marksUpTo(0, "span"), [0, 1000]);
  assert.deepEqual(marksUpTo(800, "span"), [0]);
  assert.deepEqual(marksUpTo(7_200_000, "span"), [0, 1_800_000, 3_600_000, 5_400_000, 7_200_000]);
});

test("marks of numbers are whole", () => {
  assert.deepEqual(marksUpTo(1, "number"), [0, 1]);
  assert.deepEqual(marksUpTo(10, "number"), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(marksUpTo(2000, "thousandths"), [0, 500, 1000, 1500, 2000]);
});
