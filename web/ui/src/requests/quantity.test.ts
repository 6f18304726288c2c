// The table is that of the parser of manifests and of the command line.
import { Unit } from "#gen/tree_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import table from "../../../../client/quantity/testdata/quantities.json";
import { exact } from "../format";
import { maxAmount, parseAmounts, parseQuantity } from "./quantity";

interface Row {
  text: string;
  unit: string;
  amount?: string;
  refused?: string;
}

const units: Record<string, Unit> = {
  unspecified: Unit.UNSPECIFIED, count: Unit.COUNT, milli: Unit.MILLI, bytes: Unit.BYTES, items: Unit.ITEMS,
};

test("amounts are read and refused as the command line does", () => {
  for (const { text, unit, amount, refused } of table as Row[]) {
    const parse = () => parseQuantity(text, units[unit] as Unit);
    if (refused === undefined) assert.equal(String(parse()), amount, text);
    else assert.throws(parse, (e: Error) => e.message.includes(refused), `${text}: ${refused}`);
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
