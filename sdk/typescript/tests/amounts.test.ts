// Amounts: the table that the command line, the dashboard and the other clients play.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bytesText, inBytes, inCount, inMilli, milliText } from "../src/index.js";

interface Row {
  text: string;
  unit: string;
  amount?: string;
  refused?: string;
}

const readers: Record<string, (text: string) => bigint> = {
  bytes: inBytes, milli: inMilli, count: inCount, items: inCount, unspecified: inCount,
};

test("the table of amounts", () => {
  const rows = JSON.parse(readFileSync("../../client/quantity/testdata/quantities.json", "utf8")) as Row[];
  assert.ok(rows.length > 80);
  for (const { text, unit, amount, refused } of rows) {
    const read = () => readers[unit]!(text);
    if (refused === undefined) assert.equal(String(read()), amount, `${text} ${unit}`);
    else assert.throws(read, RangeError, `${text} ${unit}`);
  }
});

test("what is written is read", () => {
  assert.deepEqual([0n, 250n * 10n ** 9n, 16n << 30n, 3n << 29n, 1000n].map(bytesText), ["0", "250G", "16Gi", "1536Mi", "1k"]);
  assert.deepEqual([500n, 2000n, 2500n].map(milliText), ["500m", "2", "2500m"]);
  for (let amount = 1n; amount < 1n << 61n; amount = amount * 3n + 1n) {
    for (const n of [amount, amount * 1000n % (1n << 61n), amount << 10n & (1n << 61n) - 1n]) {
      assert.equal(inBytes(bytesText(n)), n);
      assert.equal(inMilli(milliText(n)), n);
    }
  }
});
