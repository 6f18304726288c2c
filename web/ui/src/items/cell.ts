// Items as cells of a grid.
import type { Item, ItemCount } from "#gen/item_pb";

/** statesOf are the states that items of a resource are in, with how many are, the most frequent first. */
export function statesOf(count: ItemCount): [string, bigint][] {
  return Object.entries(count.states)
    .filter(([, n]) => n > 0n)
    .sort(([a, n], [b, m]) => (n === m ? (a < b ? -1 : 1) : n < m ? 1 : -1));
}

/** totalOf is the number of items of a resource. */
export function totalOf(count: ItemCount): bigint {
  return Object.values(count.states).reduce((sum, n) => sum + n, 0n);
}

/** Usual states have a look of their own; all others share the remaining ones by their name. */
const usual: Record<string, number> = { free: 0, leased: 1, dirty: 2, cleaning: 3, busy: 1 };
const looks = 6;

/** lookOf is the number of the colour and pattern in which items of a state are drawn, from 0 to 5. */
export function lookOf(state: string): number {
  const known = usual[state];
  if (known !== undefined) return known;
  let sum = 0;
  for (const c of state) sum = (sum * 31 + c.codePointAt(0)!) % 65521;
  return 4 + (sum % (looks - 4));
}

/** letterOf is what stands in a cell, so that states are not told by colour alone. */
export function letterOf(state: string): string {
  return ([...state][0] ?? "?").toUpperCase();
}

/** groupsOf gathers items whose names begin alike, up to the last separator before their numbers. */
export function groupsOf(items: Item[]): [string, Item[]][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const name = item.name?.name ?? "";
    const prefix = /^(.*?)[-_.]?\d*$/.exec(name)?.[1] || name;
    const group = groups.get(prefix);
    if (group) group.push(item);
    else groups.set(prefix, [item]);
  }
  return [...groups];
}

/** moveIn is the cell that a key leads to in a grid, or undefined for another key. */
export function moveIn(key: string, at: number, count: number, columns: number): number | undefined {
  const to: Record<string, number> = {
    ArrowRight: at + 1,
    ArrowLeft: at - 1,
    ArrowDown: at + columns,
    ArrowUp: at - columns,
    Home: 0,
    End: count - 1,
  };
  const next = to[key];
  return next === undefined ? undefined : next < 0 || next >= count ? at : next;
}
