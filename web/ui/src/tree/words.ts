// What the numbers of a node mean, in words.
import type { NodeUsage, ResourceUsage } from "#gen/tree_pb";
import { shareOf } from "../components/bar";
import { limitText, short } from "../format";

/** usedText is what counts at a node, of its limit in force. Where more than the limit may be held, it is a share. */
export function usedText(u: ResourceUsage): string {
  const limit = u.effective ?? u.limit;
  const used = short(u.subtree, u.unit);
  if (limit?.value.case === "unlimited") return `${used}, no limit`;
  return beyondShare(u) > 0n ? `${used}, share ${limitText(limit, u.unit)}` : `${used} of ${limitText(limit, u.unit)}`;
}

/** beyondShare is what a node holds beyond its limit although it is not over it: it borrows. It serves for drawing. */
export function beyondShare(u: ResourceUsage): bigint {
  const limit = (u.effective ?? u.limit)?.value;
  return limit?.case === "amount" && u.over === 0n && u.subtree > limit.value ? u.subtree - limit.value : 0n;
}

/** Fill is the state of a bar: how full the limit of the node itself is, whatever others leave. */
export type Fill = "free" | "nearly" | "full" | "over" | "share" | "unlimited";

/** fillOf is the state of a bar. */
export function fillOf(u: ResourceUsage): Fill {
  const share = shareOf(u);
  if (u.over > 0n) return "over";
  if (share === undefined) return "unlimited";
  if (beyondShare(u) > 0n) return "share";
  if (share >= 1 && u.subtree > 0n) return "full";
  return share >= 0.9 ? "nearly" : "free";
}

/** roomText is what a claim at the node could still get. */
export function roomText(u: ResourceUsage): string {
  if (u.over > 0n) return `over by ${short(u.over, u.unit)}`;
  if (u.headroom === undefined) return "";
  return u.headroom === 0n ? "none free" : `${short(u.headroom, u.unit)} free`;
}

/** Above is a level above a node: what it is called, and its usage of the same resource. */
export interface Above {
  name: string;
  usage: ResourceUsage;
}

/**
 * roomAbove says which level above a node leaves less than its own limit does, or nothing to a node without a limit;
 * empty if none does, or if it is not known. It compares numbers of the server and decides nothing.
 */
export function roomAbove(u: ResourceUsage, above: Above[]): string {
  const own = leftOf(u);
  if (u.headroom === undefined || u.over > 0n || (own === undefined ? u.headroom > 0n : own <= u.headroom)) return "";
  const least = above.find((a) => leftOf(a.usage) === u.headroom);
  if (!least) return "";
  return u.headroom === 0n ? `${least.name} is full` : `only ${short(u.headroom, u.unit)} left in ${least.name}`;
}

/** leftOf is what the limit of a level itself leaves; undefined without one. */
function leftOf(u: ResourceUsage): bigint | undefined {
  const limit = u.effective?.value;
  return limit?.case === "amount" ? (limit.value > u.subtree ? limit.value - u.subtree : 0n) : undefined;
}

/** levelsAbove are the levels above a node that are among some nodes, the nearest first. */
export function levelsAbove(tree: string, node: string, resource: string, nodes: NodeUsage[]): Above[] {
  const isAbove = (n: NodeUsage) => n.node !== node && (n.node === "" || node.startsWith(`${n.node}/`));
  return nodes
    .filter(isAbove)
    .sort((a, b) => b.node.length - a.node.length)
    .flatMap((n) => {
      const usage = n.resources.find((r) => r.resource === resource);
      return usage ? [{ name: n.node.slice(n.node.lastIndexOf("/") + 1) || tree, usage }] : [];
    });
}

/** marksOf are other facts about a resource of a node. */
export function marksOf(u: ResourceUsage): string[] {
  const marks: string[] = [];
  if (u.borrowed > 0n) marks.push(`borrows ${short(u.borrowed, u.unit)}`);
  if (u.lends > 0n) marks.push(`lends up to ${short(u.lends, u.unit)}`);
  if (u.effective?.value.case === "advisory") marks.push("advisory");
  if (u.limitChangesAt) marks.push("scheduled");
  return marks;
}

/** matters is true if a resource has a limit of its own at a node, or is used there. */
export function matters(u: ResourceUsage): boolean {
  return u.subtree > 0n || u.over > 0n || u.limit !== undefined || isLimited(u);
}

function isLimited(u: ResourceUsage): boolean {
  const kind = u.effective?.value.case;
  return kind === "amount" || kind === "advisory";
}

/** The most resources that are shown unless others are chosen. */
const most = 4;

/** usualResources are the resources that a tree shows unless others are chosen: those that matter somewhere, by name. */
export function usualResources(nodes: NodeUsage[]): string[] {
  const all = nodes[0]?.resources ?? [];
  const mattering = all.filter((_, i) => nodes.some((n) => n.resources[i] && matters(n.resources[i]!)));
  return (mattering.length ? mattering : all).slice(0, most).map((r) => r.resource);
}
