// Deciding about a request for limits: each decision is shown before it is made.
import { LimitRequestState, type LimitRequest } from "#gen/v1beta1/limit_request_pb";
import type { ConfigurationResult } from "#gen/tree_pb";
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/clients";
import { toFailure, type Failure } from "../api/failure";
import { ConfirmDialog } from "../components/confirm";
import { Plan } from "../components/plan";
import { Refusal } from "../components/refusal";

interface DecideProps {
  request: LimitRequest;
  user: string;
  again: () => void;
}

/** Decide offers what the user may do about an open request. */
export function Decide({ request: r, user, again }: DecideProps) {
  const [asked, setAsked] = useState<"approve" | "reject" | "withdraw">();
  if (r.state !== LimitRequestState.OPEN) return null;
  const own = r.asker === user;
  const dialog = { request: r, close: () => setAsked(undefined), again };
  return (
    <div class="actions">
      {r.mayDecide && !own && <button onClick={() => setAsked("approve")}>Approve…</button>}
      {r.mayDecide && !own && <button onClick={() => setAsked("reject")}>Reject…</button>}
      {own && <button onClick={() => setAsked("withdraw")}>Withdraw…</button>}
      {asked === "approve" && <Approve {...dialog} />}
      {asked === "reject" && <Reject {...dialog} />}
      {asked === "withdraw" && <Withdraw {...dialog} />}
    </div>
  );
}

interface DialogProps {
  request: LimitRequest;
  close: () => void;
  again: () => void;
}

// Approve approves the request exactly as it was planned: the digest names it and the limits that it changes.
function Approve({ request, close, again }: DialogProps) {
  const [shown] = useState(request);
  const [result, setResult] = useState<ConfigurationResult>();
  const [state, setState] = useState<LimitRequestState>();
  const [failure, setFailure] = useState<Failure>();
  const call = (dryRun: boolean) => api.limitRequests.approveRequest({ id: shown.id, digest: shown.digest, dryRun });
  useEffect(() => {
    call(true).then(
      (answer) => {
        setResult(answer.result);
        setState(answer.request?.state);
      },
      (thrown) => setFailure(toFailure(thrown)),
    );
  }, []);
  const carryOut = async () => {
    await call(false);
    again();
  };
  return (
    <ConfirmDialog
      title={`Approve request ${shown.id}`}
      button="Approve"
      carryOut={carryOut}
      close={close}
      disabled={state === undefined}
    >
      {failure && <Refusal failure={failure} />}
      {state === undefined && !failure && <p class="quiet">Planning…</p>}
      {state === LimitRequestState.OPEN && <p>It needs more approvals after yours. Nothing is changed yet.</p>}
      {state === LimitRequestState.STALE && <p>It cannot be carried out any more, and would be closed as stale.</p>}
      {result && <Plan result={result} />}
    </ConfirmDialog>
  );
}

function Reject({ request, close, again }: DialogProps) {
  const [reason, setReason] = useState("");
  const carryOut = async () => {
    await api.limitRequests.rejectRequest({ id: request.id, reason });
    again();
  };
  return (
    <ConfirmDialog
      title={`Reject request ${request.id}`}
      button="Reject"
      carryOut={carryOut}
      close={close}
      disabled={!reason.trim()}
    >
      <label class="wide">
        Reason, for <bdi>{request.asker}</bdi>
        <input value={reason} maxLength={512} required onInput={(e) => setReason(e.currentTarget.value)} />
      </label>
    </ConfirmDialog>
  );
}

function Withdraw({ request, close, again }: DialogProps) {
  const carryOut = async () => {
    await api.limitRequests.withdrawRequest({ id: request.id });
    again();
  };
  return (
    <ConfirmDialog title={`Withdraw request ${request.id}`} button="Withdraw" carryOut={carryOut} close={close}>
      <p>It is closed, and its approvals are void. You can ask again.</p>
    </ConfirmDialog>
  );
}
