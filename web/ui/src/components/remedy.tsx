// The smallest change that would admit a request.
import type { Decision, Raise } from "#gen/decision_pb";
import { amountText } from "../api/units";
import { raiseCommand, raiseObstacle, raiseText } from "../requests/remedy";
import { Command } from "./command";
import { nameKey } from "../requests/name";
import { AllocationLink, NodeLink } from "./names";

/** RemedyNote says what would have to change; it is nothing if the server found nothing. */
export function RemedyNote({ decision }: { decision: Decision }) {
  const remedy = decision.remedy;
  if (!remedy || (!remedy.raises.length && !remedy.releases.length)) return null;
  const ahead = decision.holders.some((h) => h.blockers.length > 0 || h.otherBlockers > 0n);
  const it = remedy.alternative > 0 ? `its alternative ${remedy.alternative}` : "it";
  const whose = ahead ? `Without the requests before it, ${it}` : it[0]!.toUpperCase() + it.slice(1);
  return (
    <div class="note">
      {remedy.raises.length > 0 && (
        <>
          <p>{whose} would be granted after all of these limits are raised:</p>
          <ul>
            {remedy.raises.map((r) => (
              <RaiseLine key={`${r.tree} ${r.node} ${r.resource} ${r.kind} ${r.holder}`} raise={r} />
            ))}
          </ul>
        </>
      )}
      {remedy.releases.length > 0 && (
        <>
          <p>{remedy.raises.length ? "Or after all of these are released:" : `${whose} would be granted after all of these are released:`}</p>
          <ul>
            {remedy.releases.map((r) => (
              <li key={nameKey(r)}>
                <AllocationLink of={r} />
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function RaiseLine({ raise }: { raise: Raise }) {
  const obstacle = raiseObstacle(raise);
  return (
    <li>
      <NodeLink tree={raise.tree} node={raise.node} /> <bdi>{raiseText(raise, amountText)}</bdi>
      {obstacle ? `, ${obstacle}` : <Command text={raiseCommand(raise, amountText)} />}
    </li>
  );
}
