// What a request would lead to.
import { Mode, type AllocateRequest } from "#gen/allocation_pb";
import { Outcome, type Decision } from "#gen/decision_pb";
import { api, offersChanges } from "../api/clients";
import { useRead } from "../api/read";
import { amountText } from "../api/units";
import { Command } from "../components/command";
import { InTheWay } from "../components/in_the_way";
import { Levels } from "../components/levels";
import { NodeLink } from "../components/names";
import { RemedyNote } from "../components/remedy";
import { Answer } from "../components/states";
import { allocateCommand, explainCommand, writeDraft, type Draft } from "../requests/draft";
import { Victims } from "./allocation_facts";
import { RequestIt } from "./what_if_request";

interface AnswerProps {
  draft: Draft;
  request: AllocateRequest;
  /** False while the user is still writing. */
  settled: boolean;
}

/** WhatIfAnswer asks the server, again whenever use, queue or configuration change. */
export function WhatIfAnswer({ draft, request, settled }: AnswerProps) {
  return (
    <>
      {settled ? <Asked request={request} key={writeDraft(draft)} /> : <p class="quiet">…</p>}
      <h2>On the command line</h2>
      <p class="quiet">Explain it:</p>
      <Command text={explainCommand(draft)} />
      <p class="quiet">Request it:</p>
      <Command text={allocateCommand(draft)} />
      {offersChanges && <RequestIt draft={draft} request={request} />}
    </>
  );
}

function Asked({ request }: { request: AllocateRequest }) {
  const read = useRead("what if", { usage: true, queue: true, configuration: true }, (fresh, signal) =>
    api.allocations.explain({ question: { case: "request", value: request }, read: fresh }, { signal }),
  );
  return (
    <Answer read={read}>
      {(e) =>
        e.decision && (
          <>
            <Verdict decision={e.decision} waits={request.mode === Mode.WAIT} />
            <Levels answer={e} />
          </>
        )
      }
    </Answer>
  );
}

function Verdict({ decision, waits }: { decision: Decision; waits: boolean }) {
  if (decision.outcome === Outcome.GRANTED) {
    return (
      <>
        <h2 class="verdict verdict-granted">It would be granted now</h2>
        <Placements decision={decision} />
      </>
    );
  }
  return (
    <>
      <h2 class={`verdict verdict-${waits && !decision.neverFits ? "waits" : "denied"}`}>{refusal(decision, waits)}</h2>
      <InTheWay decision={decision} />
      <RemedyNote decision={decision} />
    </>
  );
}

function refusal(decision: Decision, waits: boolean): string {
  if (decision.neverFits) return "It would be denied: it is larger than a limit itself";
  return waits ? "It would wait in the queue" : "It would be denied now";
}

/** Placements says what is not as it was asked for: ranges, nodes that borrow, and who would have to give way. */
function Placements({ decision }: { decision: Decision }) {
  const moved = decision.placements.filter((p) => p.placed !== p.node || Object.keys(p.rangeAmounts).length);
  return (
    <>
      {decision.alternative > 0 && <p>Alternative {decision.alternative} would be given.</p>}
      <ul class="claims">
        {moved.map((p) => (
          <li key={`${p.tree}:${p.node}`}>
            <NodeLink tree={p.tree} node={p.node} />
            {Object.keys(p.rangeAmounts)
              .sort()
              .map((r) => ` would hold ${r}=${amountText(p.tree, r, p.rangeAmounts[r]!)}`)}
            {p.placed !== p.node && (
              <>
                {" "}
                would be counted at <NodeLink tree={p.tree} node={p.placed} />
              </>
            )}
          </li>
        ))}
      </ul>
      {decision.preempted.length > 0 && (
        <div class="note note-problem">
          <p>It would preempt:</p>
          <Victims list={decision.preempted} />
        </div>
      )}
    </>
  );
}
