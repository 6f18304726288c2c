// The cases are those of internal/manifest/quantity_test.go.
import { Unit } from "#gen/tree_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { exact } from "../format";
import { maxAmount, parseAmounts, parseQuantity } from "./quantity";

const read: [string, Unit, bigint][] = [
  ["0", Unit.COUNT, 0n],
  ["25", Unit.COUNT, 25n],
  ["25", Unit.UNSPECIFIED, 25n],
  ["2k", Unit.COUNT, 2000n],
  ["1.5k", Unit.COUNT, 1500n],
  ["1.0", Unit.COUNT, 1n],
  ["250G", Unit.BYTES, 250_000_000_000n],
  ["1.5Gi", Unit.BYTES, 3n << 29n],
  ["0.5Ki", Unit.BYTES, 512n],
  ["1Ei", Unit.BYTES, 1n << 60n],
  ["4.6E", Unit.BYTES, 4_600_000_000_000_000_000n],
  ["2", Unit.MILLI, 2000n],
  ["500m", Unit.MILLI, 500n],
  ["0.25", Unit.MILLI, 250n],
  ["0.001", Unit.MILLI, 1n],
  ["1k", Unit.MILLI, 1_000_000n],
  ["4611686018427387903", Unit.COUNT, maxAmount],
  ["4611686018427387.903", Unit.MILLI, maxAmount],
  ["4611686018427387903m", Unit.MILLI, maxAmount],
  ["0.000000000000000000000000000000000000000000000000E", Unit.BYTES, 0n],
];

test("amounts are read as the command line reads them", () => {
  for (const [text, unit, want] of read) assert.equal(parseQuantity(text, unit), want, text);
});

const refused: [string, Unit, string][] = [
  ["", Unit.COUNT, "1 to 64 characters"],
  ["1".repeat(65), Unit.COUNT, "1 to 64 characters"],
  ["-5", Unit.COUNT, "negative"],
  ["-", Unit.COUNT, "negative"],
  ["+5", Unit.COUNT, "write a number"],
  [" 5", Unit.COUNT, "write a number"],
  ["5 ", Unit.COUNT, "write a number"],
  ["five", Unit.COUNT, "write a number"],
  [".5Gi", Unit.BYTES, "write a number"],
  ["5.", Unit.COUNT, "write a number"],
  ["1_000", Unit.COUNT, "write a number"],
  ["1,5", Unit.COUNT, "write a number"],
  ["0x10", Unit.COUNT, "write a number"],
  ["010", Unit.COUNT, "write a number"],
  ["1e3", Unit.COUNT, "write a number"],
  ["1e", Unit.COUNT, "suffixes are"],
  ["٥", Unit.COUNT, "write a number"],
  ["250K", Unit.BYTES, "suffixes are"],
  ["250GB", Unit.BYTES, "suffixes are"],
  ["500m", Unit.COUNT, "the unit is count"],
  ["500m", Unit.BYTES, "the unit is bytes"],
  ["1.5", Unit.COUNT, "not a whole number of things"],
  ["0.5", Unit.BYTES, "not a whole number of bytes"],
  ["0.0005", Unit.MILLI, "not a whole number of thousandths"],
  ["0.5m", Unit.MILLI, "not a whole number of thousandths"],
  ["4611686018427387904", Unit.COUNT, "at most 4611686018427387903"],
  ["9223372036854775808", Unit.COUNT, "at most 4611686018427387903"],
  ["4Ei", Unit.BYTES, "at most 4611686018427387903"],
  ["4611686018427387904m", Unit.MILLI, "at most 4611686018427387903m"],
  ["10E", Unit.MILLI, "too large"],
  ["unlimited", Unit.COUNT, "write a number"],
];

test("what is not an amount is refused with a sentence", () => {
  for (const [text, unit, want] of refused) {
    assert.throws(() => parseQuantity(text, unit), (e: Error) => e.message.includes(want), `${text}: ${want}`);
  }
});

test("amounts that are written are read back", () => {
  for (const amount of [0n, 1n, 999n, 1000n, 1024n, 123456789n, 3n << 29n, 10n ** 15n, maxAmount]) {
    for (const unit of [Unit.COUNT, Unit.MILLI, Unit.BYTES]) {
      assert.equal(parseQuantity(exact(amount, unit), unit), amount);
    }
  }
});

test("ranges have a step", () => {
  assert.deepEqual(parseAmounts("4..16/4", Unit.COUNT), { least: 4n, most: 16n, step: 4n });
  assert.deepEqual(parseAmounts("4..16", Unit.COUNT), { least: 4n, most: 16n, step: 1n });
  assert.deepEqual(parseAmounts("7", Unit.COUNT), { least: 7n });
  assert.throws(() => parseAmounts("4..16/0", Unit.COUNT), /steps of 0/);
  assert.throws(() => parseAmounts("4..x", Unit.COUNT), /not a range such as 4\.\.16\/4: "x" is not an amount/);
});
