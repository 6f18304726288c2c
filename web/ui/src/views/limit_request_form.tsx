// Asking for another limit.
import type { LimitRequest } from "#gen/v1beta1/limit_request_pb";
import { useState } from "preact/hooks";
import { api } from "../api/clients";
import { resourcesOf, unitOf } from "../api/units";
import { filter } from "../components/filters";
import { ConfirmDialog } from "../components/confirm";
import { TextField } from "../components/field";
import { NodePicker, TreePicker } from "../components/pickers";
import { parseLimit } from "../node/limit_text";

/** AskButton opens the form. */
export function AskButton({ tree, done }: { tree: string; done: () => void }) {
  const [open, setOpen] = useState(false);
  const [made, setMade] = useState<{ request?: LimitRequest; notByRule: string }>();
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Ask for a limit…
      </button>
      <span role="status">
        {made?.request && `Request ${made.request.id} ${made.request.revision ? "was carried out at once." : "is open."}`}{" "}
        {made?.notByRule}
      </span>
      {open && <AskDialog tree={tree} close={() => setOpen(false)} made={(m) => (setMade(m), done())} />}
    </>
  );
}

interface AskProps {
  tree: string;
  close: () => void;
  made: (answer: { request?: LimitRequest; notByRule: string }) => void;
}

function AskDialog(props: AskProps) {
  const [tree, setTree] = useState(props.tree);
  const [node, setNode] = useState(filter("node"));
  const [resource, setResource] = useState("");
  const [limit, setLimit] = useState("");
  const [reason, setReason] = useState("");
  const fault = limit ? faultOf(limit, tree, resource) : "";
  const carryOut = async () => {
    const limits = { [resource]: parseLimit(limit, unitOf(tree, resource)) };
    props.made(await api.limitRequests.requestLimits({ tree, node, limits, reason }));
  };
  return (
    <ConfirmDialog
      title="Ask for a limit"
      button="Ask"
      carryOut={carryOut}
      close={props.close}
      disabled={!tree || !resource || !limit || !!fault || !reason.trim()}
    >
      <p>Those who may set the limits of the node are asked. Nothing is changed until they approve.</p>
      <div class="manifest">
        <TreePicker value={tree} change={setTree} />
        <NodePicker tree={tree} value={node} change={setNode} />
        <label>
          Resource
          <select value={resource} disabled={!tree} onChange={(e) => setResource(e.currentTarget.value)}>
            <option value="">Choose a resource</option>
            {resourcesOf(tree).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <TextField
          label="New limit"
          value={limit}
          change={setLimit}
          fault={fault}
          hint="An amount, advisory:AMOUNT, unlimited, or unset"
          list={["unlimited", "unset"]}
        />
        <TextField label="Reason, for those who decide" value={reason} change={setReason} />
      </div>
    </ConfirmDialog>
  );
}

function faultOf(limit: string, tree: string, resource: string): string {
  try {
    parseLimit(limit, unitOf(tree, resource));
    return "";
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}
