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
