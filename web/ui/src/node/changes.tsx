// Changing the limits of a node, and its cordon, where the page offers changes.
import { useState } from "preact/hooks";
import type { Limit } from "#gen/common_pb";
import type { NodeUsage } from "#gen/tree_pb";
import { api, offersChanges } from "../api/clients";
import { useRight } from "../api/rights";
import { ChangeDialog, type ChangeOptions } from "../components/change";
import { Dialog, DialogActions } from "../components/dialog";
import { TextField } from "../components/field";
import { nodeName } from "../format";
import { address } from "../router";
import { parentOf } from "../tree/rows";
import { parseLimit, writeLimit } from "./limit_text";

interface NodeProps {
  tree: string;
  usage: NodeUsage;
}

/** LimitDialogButton opens a form for the limits of a node, if the user may set them. */
export function LimitDialogButton(props: NodeProps) {
  return offersChanges ? <LimitOffer {...props} /> : null;
}

function LimitOffer({ tree, usage }: NodeProps) {
  // The limits of a node belong to those who have the right above it.
  const right = useRight("limits.set", [{ tree, node: parentOf(usage.node) }]);
  const [open, setOpen] = useState(false);
  const [limits, setLimits] = useState<Record<string, Limit>>();
  if (!right) return null;
  if (!right.allowed) return <AskForMore {...{ tree, usage }} />;
  const call = async ({ dryRun, reason, expectedRevision }: ChangeOptions) => {
    const ask = { tree, node: usage.node, limits: limits!, dryRun, reason, expectedRevision };
    return (await api.trees.setLimits(ask)).result;
  };
  return (
    <p class="actions">
      <button onClick={() => setOpen(true)}>Set limits…</button>
      {open && (
        <LimitForm
          {...{ tree, usage }}
          close={() => setOpen(false)}
          plan={(changed) => {
            setOpen(false);
            setLimits(changed);
          }}
        />
      )}
      {limits && (
        <ChangeDialog title={`Limits of ${nodeName(tree, usage.node)}`} call={call} close={() => setLimits(undefined)} />
      )}
    </p>
  );
}

/** AskForMore leads to the form of requests for limits, for users who may not set them. */
function AskForMore({ tree, usage }: NodeProps) {
  const may = useRight("limits.request", [{ tree, node: usage.node }]);
  if (!may?.allowed) return null;
  return (
    <p class="actions">
      <a class="button" href={address("requests", { tree, node: usage.node })}>
        Ask for more…
      </a>
    </p>
  );
}

interface FormProps extends NodeProps {
  close: () => void;
  plan: (limits: Record<string, Limit>) => void;
}

function LimitForm({ tree, usage, close, plan }: FormProps) {
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [faults, setFaults] = useState<Record<string, string>>({});
  const [nothing, setNothing] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    const limits: Record<string, Limit> = {};
    const wrong: Record<string, string> = {};
    for (const u of usage.resources) {
      const text = texts[u.resource];
      if (text === undefined || text.trim() === writeLimit(u.limit, u.unit)) continue;
      try {
        limits[u.resource] = parseLimit(text, u.unit);
      } catch (e) {
        wrong[u.resource] = (e as Error).message;
      }
    }
    setFaults(wrong);
    setNothing(!Object.keys(limits).length);
    if (!Object.keys(wrong).length && Object.keys(limits).length) plan(limits);
  };
  return (
    <Dialog title={`Set limits of ${nodeName(tree, usage.node)}`} close={close}>
      <form onSubmit={submit}>
        <p class="quiet">An amount such as 25 or 16Gi, advisory:AMOUNT, unlimited or unset.</p>
        {usage.resources.map((u) => (
          <TextField
            key={u.resource}
            label={u.resource}
            value={texts[u.resource] ?? writeLimit(u.limit, u.unit)}
            change={(text) => setTexts({ ...texts, [u.resource]: text })}
            fault={faults[u.resource]}
          />
        ))}
        {nothing && <p role="alert">No limit is different from the present one.</p>}
        <DialogActions button="Show the plan" close={close} />
      </form>
    </Dialog>
  );
}
