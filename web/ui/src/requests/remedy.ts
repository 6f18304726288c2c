// The smallest change that would admit a request, as commands to paste.
import { HolderKind, ViolationKind, type Raise } from "#gen/decision_pb";
import { nodeName, type AmountText } from "../format";
import { flagWord } from "./shell";
import { limitName } from "./violation";

/** raiseText says which limit to raise, from what to what. */
export function raiseText(r: Raise, amount: AmountText): string {
  const text = (n: bigint) => amount(r.tree, r.resource, n);
  return `${limitName(r)}: ${text(r.limit)} → ${text(r.newLimit)}`;
}

/** raiseObstacle says why no command can raise a limit; empty if one can. */
export function raiseObstacle(r: Raise): string {
  if (r.unconfigured) return "after the node is configured";
  if (!changedLimit(r, "")) return "in the configuration";
  return "";
}

/** raiseCommand is the command that raises a limit; empty if none can. */
export function raiseCommand(r: Raise, amount: AmountText): string {
  if (raiseObstacle(r)) return "";
  const change = changedLimit(r, amount(r.tree, r.resource, r.newLimit));
  const place = flagWord(nodeName(r.tree, r.node));
  const reason = r.needsReason ? " --reason='room for a denied request'" : "";
  return `quorate limit set ${place} ${change}${reason}`;
}

/** changedLimit are the arguments that set a limit; empty if no arguments do. */
function changedLimit(r: Raise, to: string): string {
  let text = "";
  if (r.kind === ViolationKind.RESOURCE) text = `${r.resource}=${to}`;
  if (r.kind === ViolationKind.APPLICATIONS) text = `--applications=${to}`;
  if (text && r.holderKind === HolderKind.USER) text += ` --user=${flagWord(r.holder)}`;
  if (text && r.holderKind === HolderKind.GROUP) text += ` --group=${flagWord(r.holder)}`;
  return text;
}
