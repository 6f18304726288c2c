import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLines, hunks, type Line } from "./diff";

const signs = { same: " ", removed: "-", added: "+" };
const written = (all: Line[]) => all.map((l) => signs[l.kind] + l.text).join("|");
const sideOf = (all: Line[], left: Line["kind"]) =>
  all.filter((l) => l.kind === "same" || l.kind === left).map((l) => l.text + "\n").join("");

test("changed lines stand between the same ones", () => {
  assert.equal(written(diffLines("a\nb\nc\n", "a\nx\nc\n")), " a|-b|+x| c");
  assert.equal(written(diffLines("", "a\n")), "+a");
  assert.equal(written(diffLines("a\nb\n", "a\nb\n")), " a| b");
});

// The oracle computes the length of the longest common subsequence by its definition.
function common(a: string[], b: string[]): number {
  const rows = a.map(() => b.map(() => 0));
  const at = (i: number, j: number) => rows[i]?.[j] ?? 0;
  a.forEach((line, i) =>
    b.forEach((other, j) => {
      rows[i]![j] = line === other ? at(i - 1, j - 1) + 1 : Math.max(at(i - 1, j), at(i, j - 1));
    }),
  );
  return at(a.length - 1, b.length - 1);
}

test("a difference has both texts and is the shortest", () => {
  let seed = 7;
  const draw = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 500; round++) {
    const text = () => Array.from({ length: draw(12) }, () => "abc"[draw(3)]!);
    const [a, b] = [text(), text()];
    const found = diffLines(a.map((l) => l + "\n").join(""), b.map((l) => l + "\n").join(""));
    assert.equal(sideOf(found, "removed"), a.map((l) => l + "\n").join(""));
    assert.equal(sideOf(found, "added"), b.map((l) => l + "\n").join(""));
    assert.equal(found.filter((l) => l.kind === "same").length, common(a, b), `${a} ${b}`);
  }
});

test("texts without a common line are replaced as a whole", () => {
  const lines = (letter: string) => Array.from({ length: 3000 }, (_, i) => `${letter}${i}\n`).join("");
  assert.equal(diffLines(lines("a"), lines("b")).length, 6000);
});

test("hunks leave out what is far from a change", () => {
  const all = diffLines("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\nx\n7\n");
  assert.deepEqual(hunks(all, 1).map((h) => [h.skipped, written(h.lines)]), [[4, " 5|-6|+x| 7"]]);
});
