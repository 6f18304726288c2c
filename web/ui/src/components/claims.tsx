// What an allocation holds, or a request asks for.
import type { Allocation, HeldClaim } from "#gen/allocation_pb";
import { amountText } from "../api/units";
import { alternativesOf, amountsOf, itemsOf, notesOf } from "../requests/allocation";
import { NodeLink } from "./names";

/** Claims lists claims, one a line. */
export function Claims({ claims }: { claims: HeldClaim[] }) {
  return (
    <ul class="claims">
      {claims.map((c) => (
        <ClaimLine key={`${c.tree}:${c.node}`} claim={c} />
      ))}
    </ul>
  );
}

function ClaimLine({ claim }: { claim: HeldClaim }) {
  const notes = notesOf(claim);
  return (
    <li>
      <NodeLink tree={claim.tree} node={claim.node} />{" "}
      {[...amountsOf(claim, amountText), ...itemsOf(claim)].map((text) => (
        <bdi key={text} class="amount">
          {text}
        </bdi>
      ))}
      {notes.length > 0 && (
        <span class="quiet">
          {" "}
          (<bdi>{notes.join(", ")}</bdi>)
        </span>
      )}
    </li>
  );
}

/** AskedClaims lists what a request asks for, with all its alternatives. */
export function AskedClaims({ request }: { request: Allocation }) {
  const asked = alternativesOf(request);
  if (asked.length === 1) return <Claims claims={asked[0]!.claims} />;
  return (
    <ol class="alternatives">
      {asked.map((a) => (
        <li key={a.alternative} value={a.alternative}>
          <Claims claims={a.claims} />
        </li>
      ))}
    </ol>
  );
}

/** ResizeClaims lists what a resize that waits asks for. */
export function ResizeClaims({ request }: { request: Allocation }) {
  return (
    <ul class="claims">
      {request.resize?.claims.map((c) => (
        <li key={`${c.tree}:${c.node}`}>
          resize to <NodeLink tree={c.tree} node={c.node} />{" "}
          {Object.keys(c.amounts)
            .sort()
            .map((resource) => (
              <bdi key={resource} class="amount">
                {resource}={amountText(c.tree, resource, c.amounts[resource]!)}
              </bdi>
            ))}
        </li>
      ))}
    </ul>
  );
}
