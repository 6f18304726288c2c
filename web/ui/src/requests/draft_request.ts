// The request that a draft stands for, or what is wrong with it.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AllocateRequestSchema,
  AmountRangeSchema,
  ClaimSchema,
  Mode,
  type AllocateRequest,
  type Claim,
} from "#gen/allocation_pb";
import { ItemPickSchema } from "#gen/item_pb";
import { Unit } from "#gen/tree_pb";
import { groupNames, isCount, type Draft, type DraftClaim, type DraftRow } from "./draft";
import { AmountError, parseAmounts } from "./quantity";
import { parseSpan } from "./span";

/** Faults are what is wrong, by the name of the field; those of a row are "row ALTERNATIVE CLAIM ROW", from 0. */
export type Faults = Map<string, string>;

/** Checked is a request, or why there is none. */
export interface Checked {
  request?: AllocateRequest;
  faults: Faults;
}

/** The most items of one resource. */
const mostItems = 1000;
const longest = 168n * 3_600_000n;

/** UnitOf is the unit of a resource of a tree. */
export type UnitOf = (tree: string, resource: string) => Unit;

/** checkDraft makes the request of a draft under an id. */
export function checkDraft(draft: Draft, id: string, unitOf: UnitOf): Checked {
  const faults: Faults = new Map();
  const alternatives = draft.alternatives.map((claims, a) =>
    claims.map((claim, c) => checkClaim(claim, `${a} ${c}`, unitOf, faults)),
  );
  const waitMs = checkSpan("wait", draft.wait, faults);
  const ttlMs = checkSpan("ttl", draft.ttl, faults);
  const request: MessageInitShape<typeof AllocateRequestSchema> = {
    id,
    ...(alternatives.length > 1 ? { anyOf: alternatives.map((claims) => ({ claims })) } : { claims: alternatives[0] }),
    mode: waitMs > 0n ? Mode.WAIT : Mode.REJECT,
    principal: checkPrincipal(draft, faults),
    priority: checkPriority(draft.priority, faults),
    ...(waitMs > 0n && { waitMs }),
    ttlMs,
  };
  return faults.size ? { faults } : { request: create(AllocateRequestSchema, request), faults };
}

function checkClaim(claim: DraftClaim, at: string, unitOf: UnitOf, faults: Faults): Claim {
  const made = create(ClaimSchema, { tree: claim.tree, node: claim.node });
  if (!claim.tree) faults.set(`claim ${at}`, "choose a tree");
  if (/^\/|\/$/.test(claim.node)) faults.set(`claim ${at}`, "a path has no slash at its start or end");
  const named = claim.rows.filter((r) => r.resource);
  if (claim.tree && !named.length) faults.set(`claim ${at}`, "ask for at least one resource");
  claim.rows.forEach((row, r) => {
    if (!row.resource) return;
    const fault = named.filter((n) => n.resource === row.resource && n.items === row.items).length > 1;
    const text = fault ? `${row.resource} is asked for twice` : addRow(made, row, unitOf);
    if (text) faults.set(`row ${at} ${r}`, text);
  });
  return made;
}

/** addRow adds a row to a claim, or says what is wrong with it. */
function addRow(claim: Claim, row: DraftRow, unitOf: UnitOf): string {
  if (row.items) return addItems(claim, row);
  if (!row.value) return "write an amount, such as 25";
  try {
    const { least, most, step } = parseAmounts(row.value, unitOf(claim.tree, row.resource));
    if (step === undefined) claim.amounts[row.resource] = least;
    else claim.ranges.push(create(AmountRangeSchema, { resource: row.resource, least, most, step }));
    return "";
  } catch (e) {
    if (e instanceof AmountError) return e.message;
    throw e;
  }
}

function addItems(claim: Claim, row: DraftRow): string {
  const names = isCount(row.value) ? [] : row.value.split(",").map((n) => n.trim());
  const count = names.length ? names.length : Number(row.value || "1");
  if (count < 1 || count > mostItems) return `ask for 1 to ${mostItems} items, or name them with commas between`;
  if (names.includes("")) return "an item has no name: write names with one comma between";
  claim.items.push(create(ItemPickSchema, { resource: row.resource, state: row.state, count: BigInt(count), names }));
  return "";
}

function checkPrincipal(draft: Draft, faults: Faults) {
  const groups = groupNames(draft);
  if (!draft.user && (groups.length || draft.application)) faults.set("user", "groups and applications need a user");
  return draft.user ? { user: draft.user, groups, application: draft.application } : undefined;
}

function checkPriority(text: string, faults: Faults): bigint {
  if (/^-?[0-9]{1,18}$/.test(text)) return BigInt(text);
  if (text) faults.set("priority", "a priority is a whole number, such as 10 or -5");
  return 0n;
}

function checkSpan(name: string, text: string, faults: Faults): bigint {
  if (!text) return 0n;
  const ms = parseSpan(text);
  if (ms && ms > 0n && ms <= longest) return ms;
  faults.set(name, "write a time from 1ms to 168h, such as 90s or 1h30m");
  return 0n;
}
