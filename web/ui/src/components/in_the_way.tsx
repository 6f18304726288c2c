// What is in the way of a request: each limit as a sentence, who holds what counts against it, and who comes first.
import type { Decision, LevelHolders, Violation } from "#gen/decision_pb";
import { amountText } from "../api/units";
import { neverText, toBlocker } from "../requests/violation";
import { Ahead, HeldBy } from "./blockers";
import { NodeLink } from "./names";

/** InTheWay lists the limits in the way of a request, and who is there as far as the decision tells. */
export function InTheWay({ decision }: { decision: Decision }) {
  if (!decision.violations.length) return <p class="quiet">Nothing is in its way now.</p>;
  return (
    <ul class="blockers">
      {decision.violations.map((v) => (
        <li key={keyOf(v)}>
          <ViolationLine violation={v} />
          {v.neverFits && <span class="never">{neverText(v, amountText)}</span>}
          <Who level={decision.holders.find((h) => keyOf(h) === keyOf(v))} />
        </li>
      ))}
    </ul>
  );
}

function keyOf(v: Violation | LevelHolders): string {
  return [v.tree, v.node, v.kind, v.resource, v.holderKind, v.holder, v.item, v.alternative].join("\n");
}

/** ViolationLine is one limit in the way, as a sentence. */
export function ViolationLine({ violation: v }: { violation: Violation }) {
  const b = toBlocker(v, amountText);
  return (
    <span class="violation">
      {b.alternative > 0 && `alternative ${b.alternative}: `}
      {b.hasNode ? (
        <NodeLink tree={v.tree} node={v.node} />
      ) : (
        <>
          a level above in <bdi>{v.tree}</bdi>
        </>
      )}{" "}
      {b.limit && (
        <>
          <bdi class="limit">{b.limit}</bdi>:{" "}
        </>
      )}
      <bdi>{b.text}</bdi>
    </span>
  );
}

function Who({ level }: { level?: LevelHolders }) {
  return (
    level && (
      <>
        <Ahead level={level} />
        <HeldBy level={level} />
      </>
    )
  );
}
