// The difference of two texts by lines: the shortest one, as E. Myers describes it (An O(ND) Difference Algorithm, 1986).

/** Line is a line of a difference. */
export interface Line {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Hunk is lines that changed with some around them; skipped is how many equal lines are left out before them. */
export interface Hunk {
  skipped: number;
  lines: Line[];
}

/** How many lines may differ until the whole middle counts as replaced: the search takes the square of it. */
const mostEdits = 1000;

/** diffLines returns all lines of both texts, removed ones before added ones. */
export function diffLines(before: string, after: string): Line[] {
  const a = linesOf(before);
  const b = linesOf(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const middle = shortest(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return [...lines("same", a.slice(0, start)), ...middle, ...lines("same", a.slice(a.length - end))];
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function lines(kind: Line["kind"], texts: string[]): Line[] {
  return texts.map((text) => ({ kind, text }));
}

// shortest notes for each number of edits how far each diagonal reaches, and then goes back from the end.
function shortest(a: string[], b: string[]): Line[] {
  const reached = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let edits = 0; edits <= Math.min(mostEdits, a.length + b.length); edits++) {
    trace.push(new Map(reached));
    for (let k = -edits; k <= edits; k += 2) {
      let x = comesFromAbove(reached, k, edits) ? reached.get(k + 1)! : reached.get(k - 1)! + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reached.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a, b);
    }
  }
  return [...lines("removed", a), ...lines("added", b)];
}

function comesFromAbove(reached: Map<number, number>, k: number, edits: number): boolean {
  return k === -edits || (k !== edits && reached.get(k - 1)! < reached.get(k + 1)!);
}

function walkBack(trace: Map<number, number>[], a: string[], b: string[]): Line[] {
  const found: Line[] = [];
  let [x, y] = [a.length, b.length];
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const reached = trace[edits]!;
    const from = comesFromAbove(reached, x - y, edits) ? x - y + 1 : x - y - 1;
    const fromX = edits === 0 ? 0 : reached.get(from)!;
    const fromY = edits === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY) {
      found.push({ kind: "same", text: a[--x]! });
      y--;
    }
    if (edits === 0) break;
    if (x === fromX) found.push({ kind: "added", text: b[--y]! });
    else found.push({ kind: "removed", text: a[--x]! });
  }
  return found.reverse();
}

/** hunks keeps the changed lines and so many around them. */
export function hunks(all: Line[], around = 3): Hunk[] {
  const shown = all.map(() => false);
  all.forEach((line, i) => {
    if (line.kind !== "same") shown.fill(true, Math.max(0, i - around), i + around + 1);
  });
  const found: Hunk[] = [];
  let skipped = 0;
  all.forEach((line, i) => {
    if (!shown[i]) {
      skipped++;
      return;
    }
    if (i === 0 || !shown[i - 1]) found.push({ skipped, lines: [] });
    skipped = 0;
    found.at(-1)!.lines.push(line);
  });
  return found;
}
