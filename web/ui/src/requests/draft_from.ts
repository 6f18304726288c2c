// A draft that asks for what an allocation holds, or a request waits for.
import type { Allocation, HeldClaim } from "#gen/allocation_pb";
import type { AmountText } from "../format";
import { alternativesOf } from "./allocation";
import type { Draft, DraftClaim, DraftRow } from "./draft";

/** draftFrom is a draft of the same request. */
export function draftFrom(a: Allocation, amount: AmountText): Draft {
  return {
    alternatives: alternativesOf(a).map((asked) => asked.claims.map((c) => claimFrom(c, amount))),
    user: a.principal?.user ?? "",
    groups: a.principal?.groups.join(",") ?? "",
    application: a.principal?.application ?? "",
    priority: a.priority === 0n ? "" : String(a.priority),
    wait: "",
    ttl: a.ttlMs > 0n ? spanText(a.ttlMs) : "",
  };
}

function claimFrom(c: HeldClaim, amount: AmountText): DraftClaim {
  const write = (resource: string, n: bigint) => amount(c.tree, resource, n);
  const counted = Object.keys(c.amounts).filter((name) => !c.picks.some((p) => p.resource === name));
  const rows = counted.sort().map((resource): DraftRow => {
    const range = c.ranges.find((r) => r.resource === resource);
    const value = range
      ? `${write(resource, range.least)}..${write(resource, range.most)}/${write(resource, range.step)}`
      : write(resource, c.amounts[resource]!);
    return { resource, value, items: false, state: "" };
  });
  for (const p of c.picks) {
    const value = p.names.length ? p.names.join(",") : String(p.count || 1n);
    rows.push({ resource: p.resource, value, items: true, state: p.state === "free" ? "" : p.state });
  }
  return { tree: c.tree, node: c.node, rows };
}

/** spanText writes a span exactly, in its largest whole unit. */
function spanText(ms: bigint): string {
  for (const [unit, length] of [["h", 3_600_000n], ["m", 60_000n], ["s", 1000n]] as const) {
    if (ms % length === 0n) return `${ms / length}${unit}`;
  }
  return `${ms}ms`;
}
