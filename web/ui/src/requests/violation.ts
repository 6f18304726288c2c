// Limits that are in the way of a request, in the words of the command line.
import { HolderKind, ViolationKind, type Violation } from "#gen/decision_pb";
import { TenantsSee } from "#gen/common_pb";
import { nodeName, type AmountText } from "../format";

/** LimitOf is what violations, raises and levels have in common. */
export interface LimitOf {
  kind: ViolationKind;
  holderKind: HolderKind;
  holder: string;
  resource: string;
  item?: string;
}

/** limitName names the holder and the resource of a limit, for example "user ann, cores". */
export function limitName(l: LimitOf): string {
  let what = l.resource + (l.item ? ` (${l.item})` : "");
  if (l.kind === ViolationKind.APPLICATIONS) what = "applications";
  if (l.kind === ViolationKind.BORROWING) what = `borrowed ${what}`;
  if (l.holderKind === HolderKind.USER) return `user ${l.holder}, ${what}`;
  if (l.holderKind === HolderKind.GROUP) return `group ${l.holder}, ${what}`;
  return what;
}

/** Blocker is a violation in words. Where it is stands apart, because it is a link. */
export interface Blocker {
  /** False if the user may not see at which node the limit is; it is "a level above in" the tree. */
  hasNode: boolean;
  /** The number of the alternative, from 1; 0 for none. */
  alternative: number;
  /** The limit, such as "user ann, cores"; empty for a cordon. */
  limit: string;
  /** What is in the way, such as "limit 8, used 6, requested 6, missing 4". */
  text: string;
}

/** toBlocker puts a violation into words. */
export function toBlocker(v: Violation, amount: AmountText): Blocker {
  const shared = { hasNode: v.seen !== TenantsSee.NOTHING, alternative: v.alternative };
  switch (v.kind) {
    case ViolationKind.CORDON:
      return { ...shared, limit: "", text: `cordoned${clause(v.reason)}: nothing new is admitted there and below` };
    case ViolationKind.QUEUE:
      return { ...shared, limit: limitName(v) || "everything", text: queueText(v) };
    default:
      return { ...shared, limit: limitName(v), text: numbersText(v, amount) };
  }
}

/** violationText is the whole sentence. */
export function violationText(v: Violation, amount: AmountText): string {
  const b = toBlocker(v, amount);
  const where = b.hasNode ? nodeName(v.tree, v.node) : `a level above in ${v.tree}`;
  const prefix = b.alternative > 0 ? `alternative ${b.alternative}: ` : "";
  return prefix + where + "  " + (b.limit ? `${b.limit}: ${b.text}` : b.text);
}

/** neverText says of a limit that no release admits the request, and by how much it is too large if that is known. */
export function neverText(v: Violation, amount: AmountText): string {
  const excess = v.excess > 0n ? ` by ${amount(v.tree, v.resource, v.excess)}` : "";
  return `Larger than the limit itself${excess}: no release helps.`;
}

function queueText(v: Violation): string {
  if (v.seen !== undefined) return "other requests come first";
  return v.used === 1n ? "1 request comes first" : `${v.used} requests come first`;
}

function numbersText(v: Violation, amount: AmountText): string {
  const text = (n: bigint) => amount(v.tree, v.resource, n);
  const numbers = `requested ${text(v.requested)}, missing ${text(v.missing)}`;
  if (v.seen !== undefined) return numbers;
  return `limit ${text(v.limit)}, used ${text(v.used)}, ${numbers}`;
}

function clause(reason: string): string {
  return reason ? ` (${reason})` : "";
}
