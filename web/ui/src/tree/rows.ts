// Which rows a tree grid has, and how the keys move between them.
import type { NodeUsage } from "#gen/tree_pb";
import type { Failure } from "../api/failure";
import type { Level } from "./levels";

/** Row is one row of the grid: a node, or what stands for nodes that are not there. */
export interface Row {
  kind: "node" | "reading" | "failure" | "more";
  /** Of a node its path, otherwise that of the node whose level it is. */
  path: string;
  /** Depth in the grid, from 1. */
  level: number;
  /** The level that it comes from. */
  from: string;
  node?: NodeUsage;
  /** Whether it is open; absent for a node without nodes below. */
  open?: boolean;
  /** Its place among its siblings, from 1, and their number; absent if that is not known. */
  place?: number;
  siblings?: number;
  failure?: Failure;
}

/** parentOf is the path of the node above one. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** lastName is the last part of a path, or the tree's name for the root. */
export function lastName(tree: string, path: string): string {
  return path ? path.slice(path.lastIndexOf("/") + 1) : tree;
}

/** treeRows are the rows of a node and of the open levels below it. */
export function treeRows(top: string, levels: ReadonlyMap<string, Level>, open: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  const level = levels.get(top);
  if (level?.top) {
    const count = level.top.childCount > 0n;
    rows.push({ kind: "node", path: top, level: 1, from: top, node: level.top, open: count || undefined, place: 1, siblings: 1 });
    addLevel(rows, top, 2, levels, open);
  } else {
    addLevel(rows, top, 1, levels, open);
  }
  return rows;
}

function addLevel(
  rows: Row[],
  from: string,
  level: number,
  levels: ReadonlyMap<string, Level>,
  open: ReadonlySet<string>,
): void {
  const known = levels.get(from);
  if (known?.failure) rows.push({ kind: "failure", path: from, level, from, failure: known.failure });
  else if (!known?.nodes) rows.push({ kind: "reading", path: from, level, from });
  const siblings = known?.more ? undefined : known?.nodes?.length;
  known?.nodes?.forEach((node, i) => {
    const opens = node.childCount > 0n ? open.has(node.node) : undefined;
    rows.push({ kind: "node", path: node.node, level, from, node, open: opens, place: i + 1, siblings });
    if (opens) addLevel(rows, node.node, level + 1, levels, open);
  });
  if (known?.more) rows.push({ kind: "more", path: from, level, from });
}

/** listRows are the rows of a list of nodes without levels. */
export function listRows(nodes: NodeUsage[]): Row[] {
  return nodes.map((node, i) => ({
    kind: "node",
    path: node.node,
    level: 1,
    from: "",
    node,
    place: i + 1,
    siblings: nodes.length,
  }));
}

/** inPlace sorts nodes into the order that they had before; new ones follow in their own order. */
export function inPlace(before: ReadonlyMap<string, number>, nodes: NodeUsage[]): NodeUsage[] {
  const rank = (n: NodeUsage) => before.get(n.node) ?? before.size;
  return nodes.map((n, i) => ({ n, i })).sort((a, b) => rank(a.n) - rank(b.n) || a.i - b.i).map((e) => e.n);
}

/** keyOf identifies a row. */
export function keyOf(row: Pick<Row, "kind" | "path">): string {
  return `${row.kind} ${row.path}`;
}

/**
 * activeIndex is where the active row is. Where rows have taken the place of the one that said they were being read, it
 * is the first of them, and where a node is gone, that above it.
 */
export function activeIndex(rows: Row[], active?: Pick<Row, "kind" | "path">): number {
  if (!active) return 0;
  const at = rows.findIndex((r) => keyOf(r) === keyOf(active));
  if (at >= 0) return at;
  const first = active.kind === "node" ? -1 : rows.findIndex((r) => r.from === active.path && r.path !== r.from);
  if (first >= 0 || !active.path) return Math.max(0, first);
  return activeIndex(rows, { kind: "node", path: active.kind === "node" ? parentOf(active.path) : active.path });
}

/** Step is what a key does: it goes to a row, or opens or closes the present one. */
export type Step = { to: number } | { open: boolean } | undefined;

/** step is what a key does at a row, as the ARIA pattern of tree grids describes it. */
export function step(key: string, rows: Row[], at: number, page: number): Step {
  const row = rows[at];
  const clamp = (i: number) => ({ to: Math.max(0, Math.min(rows.length - 1, i)) });
  switch (key) {
    case "ArrowDown":
      return clamp(at + 1);
    case "ArrowUp":
      return clamp(at - 1);
    case "PageDown":
      return clamp(at + page);
    case "PageUp":
      return clamp(at - page);
    case "Home":
      return clamp(0);
    case "End":
      return clamp(rows.length - 1);
    case "ArrowRight":
      if (row?.open === false) return { open: true };
      return row?.open && (rows[at + 1]?.level ?? 0) > row.level ? { to: at + 1 } : undefined;
    case "ArrowLeft":
      return row?.open && row.path !== row.from ? { open: false } : toParent(rows, at);
    default:
      return undefined;
  }
}

function toParent(rows: Row[], at: number): Step {
  const level = rows[at]?.level ?? 0;
  for (let i = at - 1; i >= 0; i--) if (rows[i]!.level < level) return { to: i };
  return undefined;
}

/** typeAhead finds the next row below the present one whose name begins with a text; the present one if none does. */
export function typeAhead(rows: Row[], at: number, text: string, nameOf: (row: Row) => string): number {
  const start = text.length > 1 ? at : at + 1;
  for (let i = 0; i < rows.length; i++) {
    const found = (start + i) % rows.length;
    const row = rows[found]!;
    if (row.kind === "node" && nameOf(row).toLowerCase().startsWith(text.toLowerCase())) return found;
  }
  return at;
}
