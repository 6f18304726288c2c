// The cordon of a node, or of one above it, and making or ending one where the page offers changes.
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

/** CordonNote tells that nothing new is admitted, since when, by whom and why. */
export function CordonNote({ tree, usage }: { tree: string; usage: NodeUsage }) {
  const cordon = usage.cordon;
  if (!cordon) return null;
  return (
    <div class="note note-problem">
      <p>
        <strong>{cordon.drain ? (cordon.drained ? "Drained" : "Draining") : "Cordoned"}</strong>
        {cordon.node !== usage.node && cordon.tree && (
          <>
            {" "}
            with <NodeLink tree={cordon.tree} node={cordon.node} />
          </>
        )}
        : nothing new is admitted here
        {cordon.drain && ", and leases are revoked"}
        {cordon.deny && "; requests that would wait are denied"}.
      </p>
      <p>
        {cordon.beganAt && (
          <>
            Since <Instant at={cordon.beganAt} exact />
          </>
        )}
        {cordon.actor && (
          <>
            {" "}
            by <bdi>{cordon.actor}</bdi>
          </>
        )}
        {cordon.reason && (
          <>
            : <bdi>{cordon.reason}</bdi>
          </>
        )}
        {cordon.endsLedgerMs > 0n && (
          <>
            . It ends in <Remaining ledgerMs={cordon.endsLedgerMs} />
          </>
        )}
      </p>
      {cordon.node === usage.node && <Left tree={tree} node={usage.node} />}
    </div>
  );
}

/** Left says what is still held at a cordoned node. */
function Left({ tree, node }: { tree: string; node: string }) {
  const read = useRead(`cordon ${tree} ${node}`, { tree, node, usage: true }, (fresh, signal) =>
    api.cordons.listCordons({ tree, node, read: fresh }, { signal }),
  );
  const cordon = read.data?.cordons.find((h) => h.node === node);
  return cordon ? <p>{leftText(tree, cordon)}</p> : null;
}

function leftText(tree: string, cordon: NodeCordon): string {
  if (!cordon.isUsed) return "Nothing is held here any more.";
  const amounts = Object.keys(cordon.used)
    .sort()
    .map((r) => `${r}=${amountText(tree, r, cordon.used[r]!)}`);
  return `Still held: ${amounts.join(", ") || "claims that borrow further up"}${cordon.revoking ? "; leases are being revoked" : ""}`;
}

type Action = "cordon" | "drain" | "uncordon";

const titles = { cordon: "Cordon", drain: "Drain", uncordon: "Uncordon" };

/** CordonButtons offers to cordon, drain and uncordon a node, if the user may. */
export function CordonButtons(props: { tree: string; usage: NodeUsage }) {
  return offersChanges ? <CordonOffer {...props} /> : null;
}

function CordonOffer({ tree, usage }: { tree: string; usage: NodeUsage }) {
  // A node is cordoned by those who have the right above it.
  const right = useRight("nodes.cordon", [{ tree, node: parentOf(usage.node) }]);
  const [action, setAction] = useState<Action>();
  if (!right?.allowed) return null;
  const cordoned = usage.cordon?.node === usage.node && usage.cordon.tree === tree;
  const offered: Action[] = cordoned ? (usage.cordon!.drain ? ["uncordon"] : ["drain", "uncordon"]) : ["cordon", "drain"];
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
  const call = action === "uncordon" ? api.cordons.uncordonNode(ask) : api.cordons.cordonNode({ ...ask, drain: action === "drain" });
  return (await call).result;
}
