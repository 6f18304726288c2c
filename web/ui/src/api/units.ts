// The units of resources, which answers that carry bare amounts do not repeat.
import { signal } from "@preact/signals";
import { Consistency } from "#gen/common_pb";
import { Unit } from "#gen/tree_pb";
import { exact, natural } from "../format";
import { api } from "./clients";
import { listen, position } from "./live";
import { token } from "./session";

/** Units by tree and resource. */
const units = signal<ReadonlyMap<string, ReadonlyMap<string, Unit>>>(new Map());

/** Whose trees are known: the token of the user who asked. */
const askedBy = signal<string>();

let reading = false;

async function readUnits(): Promise<void> {
  if (reading) return;
  reading = true;
  const asker = token.value;
  try {
    const read = { consistency: Consistency.STALE, minIndex: position.value?.index ?? 0n };
    const { trees } = await api.trees.listTrees({ read });
    askedBy.value = asker;
    units.value = new Map(trees.map((t) => [t.name, new Map(t.resources.map((r) => [r.name, r.unit]))]));
  } catch {
    // Amounts are shown in base units until the next change of the configuration.
  } finally {
    reading = false;
    if (token.value !== asker) void readUnits();
  }
}

/** followUnits reads the units now, for each new user, who may see other trees, and after changes of the configuration. */
export function followUnits(): void {
  listen({ configuration: true }, () => void readUnits());
  token.subscribe(() => void readUnits());
}

/** treesAreKnown is true once the server has told the user which trees there are. */
export function treesAreKnown(): boolean {
  return askedBy.value === token.value;
}

/** unitOf is the unit of a resource; that of a count while it is not known. */
export function unitOf(tree: string, resource: string): Unit {
  return units.value.get(tree)?.get(resource) ?? Unit.UNSPECIFIED;
}

/** amountText writes an amount exactly. */
export function amountText(tree: string, resource: string, amount: bigint): string {
  return exact(amount, unitOf(tree, resource));
}

/** resourcesOf are the names of the resources of a tree, sorted. */
export function resourcesOf(tree: string): string[] {
  return [...(units.value.get(tree)?.keys() ?? [])].sort(natural);
}

/** treeNames are the names of the trees that the user may see, sorted. */
export function treeNames(): string[] {
  return [...units.value.keys()].sort(natural);
}
