// Leases in groups by node, as the rows of one list.
import type { Allocation } from "#gen/allocation_pb";
import { natural, nodeName } from "../format";
import { nameKey } from "../requests/name";
import { bySoonestEnd } from "./lease";

/** LeaseRow is a node with the number of its leases, or one of them. */
export type LeaseRow =
  | { kind: "node"; key: string; tree: string; node: string; count: number }
  | { kind: "lease"; key: string; lease: Allocation };

const placeOf = ({ claims: [first] }: Allocation) => nodeName(first?.tree ?? "", first?.node ?? "");

/** leaseRows are the nodes at which leases are held, and below each its leases, all by name: a renewal moves no row. */
export function leaseRows(leases: Allocation[]): LeaseRow[] {
  const groups = new Map<string, Allocation[]>();
  for (const lease of leases) groups.set(placeOf(lease), [...(groups.get(placeOf(lease)) ?? []), lease]);
  return [...groups.keys()].sort(natural).flatMap((place) => {
    const all = groups.get(place)!.sort((a, b) => natural(a.id, b.id));
    const [tree = "", node = ""] = place.split(":");
    const head: LeaseRow = { kind: "node", key: `node ${place}`, tree, node, count: all.length };
    return [head, ...all.map(leaseRow)];
  });
}

/** endRows are leases without their nodes, soonest end first. */
export function endRows(leases: Allocation[]): LeaseRow[] {
  return bySoonestEnd(leases).map(leaseRow);
}

function leaseRow(lease: Allocation): LeaseRow {
  return { kind: "lease", key: nameKey(lease), lease };
}
