// The hold of a node, or of one above it, and making or ending one where the page offers changes.
import { useState } from "preact/hooks";
import type { NodeCordon, NodeUsage } from "#gen/tree_pb";
import { api, offersChanges } from "../api/clients";
import { useRead } from "../api/read";
import { useRight } from "../api/rights";
import { amountText } from "../api/units";
import { ChangeDialog, type ChangeOptions } from "../components/change";
import { NodeLink } from "../components/names";
import { Instant, Remaining } from "../components/time";
import { nodeName } from "../format";
import { parentOf } from "../tree/rows";

/** HoldNote tells that nothing new is admitted, since when, by whom and why. */
export function HoldNote({ tree, usage }: { tree: string; usage: NodeUsage }) {
  const hold = usage.cordon;
  if (!hold) return null;
  return (
    <div class="note note-problem">
      <p>
        <strong>{hold.drain ? (hold.drained ? "Drained" : "Draining") : "On hold"}</strong>
        {hold.node !== usage.node && hold.tree && (
          <>
            {" "}
            with <NodeLink tree={hold.tree} node={hold.node} />
          </>
        )}
        : nothing new is admitted here
        {hold.drain && ", and leases are revoked"}
        {hold.deny && "; requests that would wait are denied"}.
      </p>
      <p>
        {hold.beganAt && (
          <>
            Since <Instant at={hold.beganAt} exact />
          </>
        )}
        {hold.actor && (
          <>
            {" "}
            by <bdi>{hold.actor}</bdi>
          </>
        )}
        {hold.reason && (
          <>
            : <bdi>{hold.reason}</bdi>
          </>
        )}
        {hold.endsLedgerMs > 0n && (
          <>
            . It ends in <Remaining ledgerMs={hold.endsLedgerMs} />
          </>
        )}
      </p>
      {hold.node === usage.node && <Left tree={tree} node={usage.node} />}
    </div>
  );
}

/** Left says what is still held at a node on hold. */
function Left({ tree, node }: { tree: string; node: string }) {
  const holds = useRead(`holds ${tree} ${node}`, { tree, node, usage: true }, (read, signal) =>
    api.cordons.listCordons({ tree, node, read }, { signal }),
  );
  const hold = holds.data?.cordons.find((h) => h.node === node);
  return hold ? <p>{leftText(tree, hold)}</p> : null;
}

function leftText(tree: string, hold: NodeCordon): string {
  if (!hold.isUsed) return "Nothing is held here any more.";
  const amounts = Object.keys(hold.used)
    .sort()
    .map((r) => `${r}=${amountText(tree, r, hold.used[r]!)}`);
  return `Still held: ${amounts.join(", ") || "claims that borrow further up"}${hold.revoking ? "; leases are being revoked" : ""}`;
}

type Action = "hold" | "drain" | "resume";

const titles = { hold: "Put on hold", drain: "Drain", resume: "Resume" };

/** HoldButtons offers holding, draining and resuming a node, if the user may. */
export function HoldButtons(props: { tree: string; usage: NodeUsage }) {
  return offersChanges ? <HoldOffer {...props} /> : null;
}

function HoldOffer({ tree, usage }: { tree: string; usage: NodeUsage }) {
  // A node is put on hold by those who have the right above it.
  const right = useRight("nodes.cordon", [{ tree, node: parentOf(usage.node) }]);
  const [action, setAction] = useState<Action>();
  if (!right?.allowed) return null;
  const held = usage.cordon?.node === usage.node && usage.cordon.tree === tree;
  const offered: Action[] = held ? (usage.cordon!.drain ? ["resume"] : ["drain", "resume"]) : ["hold", "drain"];
  return (
    <div class="actions">
      {offered.map((a) => (
        <button key={a} onClick={() => setAction(a)}>
          {titles[a]}…
        </button>
      ))}
      {action && (
        <ChangeDialog
          title={`${titles[action]}: ${nodeName(tree, usage.node)}`}
          call={(options) => change(action, tree, usage.node, options)}
          close={() => setAction(undefined)}
        />
      )}
    </div>
  );
}

async function change(action: Action, tree: string, node: string, options: ChangeOptions) {
  const ask = { tree, node, ...options };
  const call = action === "resume" ? api.cordons.uncordonNode(ask) : api.cordons.cordonNode({ ...ask, drain: action === "drain" });
  return (await call).result;
}
