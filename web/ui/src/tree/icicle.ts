// The layout of the map of a tree: each level is a row, and the width of a node is its limit.
import type { NodeUsage, ResourceUsage } from "#gen/tree_pb";
import { parentOf } from "./rows";

/** Cell is the place of a node in the map, in parts of the whole width. */
export interface Cell {
  path: string;
  depth: number;
  x: number;
  width: number;
  usage: ResourceUsage;
}

/** The part of its parent that a node without a limit and without use has. */
const least = 0.02;

/** The narrowest cell, in parts of the whole width; narrower ones and what is below them are left out. */
const narrowest = 0.002;

function weightOf(usage: ResourceUsage, parent: number): number {
  const limit = usage.effective?.value;
  const limited = limit?.case === "amount" || limit?.case === "advisory";
  return limited ? Number(limit.value) : Math.max(Number(usage.subtree), parent * least);
}

/**
 * icicle lays out nodes in the order of paths, the top first. Children share the width of their parent by their limits;
 * what no child has been given stays empty, and if they were given more than the parent has, all are narrower.
 */
export function icicle(nodes: NodeUsage[], resource: string): Cell[] {
  const below = new Map<string, NodeUsage[]>();
  for (const n of nodes.slice(1)) {
    const parent = parentOf(n.node);
    below.set(parent, [...(below.get(parent) ?? []), n]);
  }
  const cells: Cell[] = [];
  const place = (n: NodeUsage, depth: number, x: number, width: number, weight: number) => {
    const usage = n.resources.find((r) => r.resource === resource);
    if (!usage || width < narrowest) return;
    cells.push({ path: n.node, depth, x, width, usage });
    const children = (below.get(n.node) ?? []).map((child) => {
      const of = child.resources.find((r) => r.resource === resource);
      return { child, weight: of ? weightOf(of, weight || 1) : 0 };
    });
    const whole = Math.max(weight, children.reduce((sum, c) => sum + c.weight, 0)) || 1;
    let left = x;
    for (const c of children) {
      const part = (c.weight / whole) * width;
      place(c.child, depth + 1, left, part, c.weight);
      left += part;
    }
  };
  const top = nodes[0]?.resources.find((r) => r.resource === resource);
  if (top) place(nodes[0]!, 0, 0, 1, weightOf(top, 0));
  return cells;
}

/** nextCell is the cell to which a key leads from one: to its neighbours in the row, its parent or its first child. */
export function nextCell(cells: Cell[], at: Cell, key: string): Cell | undefined {
  const row = cells.filter((c) => c.depth === at.depth);
  switch (key) {
    case "ArrowRight":
      return row[row.indexOf(at) + 1];
    case "ArrowLeft":
      return row[row.indexOf(at) - 1];
    case "ArrowUp":
      return at.depth > 0 ? cells.find((c) => c.depth === at.depth - 1 && c.path === parentOf(at.path)) : undefined;
    case "ArrowDown":
      return cells.find((c) => c.depth === at.depth + 1 && parentOf(c.path) === at.path);
    case "Home":
      return row[0];
    case "End":
      return row.at(-1);
    default:
      return undefined;
  }
}
