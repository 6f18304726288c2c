// Allocations and waiting requests, in the words of the command line.
import { AllocationState, type Allocation, type HeldClaim, type Waiting } from "#gen/allocation_pb";
import { EventKind, type Event } from "#gen/event_pb";
import { EndReasonKind, type EndReason, type EndReasonAmount } from "#gen/decision_pb";
import type { ItemPick } from "#gen/item_pb";
import { nodeName, type AmountText } from "../format";

/** word is the name of a value of an enumeration in lower case, such as "timed out". */
function word(name: string | undefined): string {
  return (name ?? "unknown").toLowerCase().replaceAll("_", " ");
}

/** stateWord is the state of an allocation. */
export function stateWord(state: AllocationState): string {
  return word(AllocationState[state]);
}

/** detailOf is what is known of an event beside its kind: at most one of the fields is set. */
export function detailOf({ detail }: Event) {
  return {
    decision: detail.case === "decision" ? detail.value : undefined,
    crossing: detail.case === "crossing" ? detail.value : undefined,
    scheduled: detail.case === "scheduled" ? detail.value : undefined,
    reason: detail.case === "reason" ? detail.value : undefined,
  };
}

/** eventWord is the kind of an event. */
export function eventWord(kind: EventKind): string {
  return word(EventKind[kind]);
}

/** hasEnded is true if an allocation counts against no limit and does not wait. */
export function hasEnded(state: AllocationState): boolean {
  return ![AllocationState.HELD, AllocationState.RESERVED, AllocationState.WAITING].includes(state);
}

/** Asked is one alternative of what a request asks for; its number is 0 if there is only one. */
export interface Asked {
  alternative: number;
  claims: HeldClaim[];
  position: bigint;
  line: string;
}

/** alternativesOf are the alternatives that a waiting request waits for. */
export function alternativesOf(a: Allocation): Asked[] {
  const w = a.waiting;
  if (w?.alternatives.length) return w.alternatives;
  return [{ alternative: 0, claims: a.claims, position: w?.position ?? 0n, line: w?.line ?? "" }];
}

/** waitingOf is the position of a request, or of a resize that waits. */
export function waitingOf(a: Allocation): Waiting | undefined {
  return a.waiting ?? a.resize?.waiting;
}

/**
 * lineText names what requests wait for, such as "cores at cern:atlas". The server writes a state of items as
 * "RESOURCE STATE of TREE".
 */
export function lineText(line: string): string {
  const [, resource, state, tree] = /^(\S+) (\S+) of (\S+)$/.exec(line) ?? [];
  return tree ? `${state} ${resource} in ${tree}` : line;
}

/** amountsOf are the amounts of a claim, those of ranges with their ranges. */
export function amountsOf(c: HeldClaim, amount: AmountText): string[] {
  return Object.keys(c.amounts)
    .sort()
    .map((resource) => {
      const write = (n: bigint) => amount(c.tree, resource, n);
      const range = c.ranges.find((r) => r.resource === resource);
      const of = range ? ` of ${write(range.least)}..${write(range.most)}/${write(range.step)}` : "";
      return `${resource}=${write(c.amounts[resource]!)}${of}`;
    });
}

/** itemsOf are the items that a claim holds, or those that it asks for. */
export function itemsOf(c: HeldClaim): string[] {
  if (!c.items.length) return c.picks.map(pickText);
  const names = new Map<string, string[]>();
  for (const item of c.items) names.set(item.resource, [...(names.get(item.resource) ?? []), item.name]);
  return [...names].map(([resource, held]) => `${resource}:${held.join(",")}`);
}

/** pickText writes requested items as --item takes them. */
export function pickText(pick: ItemPick): string {
  const what = pick.resource + (pick.state && pick.state !== "free" ? `@${pick.state}` : "");
  if (pick.names.length) return `${what}:${pick.names.join(",")}`;
  return `${what}=${pick.count > 0n ? pick.count : 1n}`;
}

/** notesOf is what of a claim differs from the default. */
export function notesOf(c: HeldClaim): string[] {
  const notes: string[] = [];
  if (c.placed !== c.node) notes.push(`counted at ${nodeName(c.tree, c.placed)}`);
  if (c.priority !== 0n) notes.push(`priority ${c.priority}`);
  if (c.preemptionClass !== 0n) notes.push(`preemption class ${c.preemptionClass}`);
  if (c.unpreemptable) notes.push("unpreemptable");
  if (c.group) notes.push(`counted for group ${c.group}`);
  return notes;
}

/** reasonText says why an allocation was ended or a lease revoked; empty if there is no reason. */
export function reasonText(r: EndReason | undefined, amount: AmountText): string {
  if (!r) return "";
  const at = nodeName(r.tree, r.node);
  switch (r.kind) {
    case EndReasonKind.DRAIN:
      return `${at} is drained${r.actor && ` by ${r.actor}`}${r.text && ` (${r.text})`}`;
    case EndReasonKind.RELEASE:
      return `released by ${r.actor || "another caller"}`;
    case EndReasonKind.PRIORITY:
    case EndReasonKind.SHARE:
      return capacityParts(r, at, amount).join(", ");
    default:
      return "";
  }
}

function capacityParts(r: EndReason, at: string, amount: AmountText): string[] {
  const parts = [r.kind === EndReasonKind.PRIORITY ? priorityText(r) : shareText(r)];
  for (const a of r.amounts) parts.push(missingText(r, a, at, amount));
  if (r.borrower) parts.push(`borrowed by ${nodeName(r.tree, r.borrower)}`);
  return parts;
}

/** Who may not read holders is not shown the priorities. */
function priorityText(r: EndReason): string {
  return r.requestPriority > r.priority ? `priority ${r.requestPriority} over ${r.priority}` : "a higher priority";
}

function shareText(r: EndReason): string {
  return r.share ? `${nodeName(r.tree, r.share)} took back its share` : "a share was taken back";
}

function missingText(r: EndReason, a: EndReasonAmount, at: string, amount: AmountText): string {
  const text = (n: bigint) => amount(r.tree, a.resource, n);
  if (a.missing === 0n) return `${text(a.given)} ${a.resource} given`;
  return `${text(a.missing)} of ${text(a.requested)} ${a.resource} missing at ${at}, ${text(a.given)} given`;
}
