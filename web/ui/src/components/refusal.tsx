// Why a change of the configuration was refused, with every rule that forbids it.
import type { Failure } from "../api/failure";
import { NodeLink } from "./names";
import { FailureNote } from "./states";

/** Refusal says why a change was refused. */
export function Refusal({ failure }: { failure: Failure }) {
  const breaches = failure.problem?.breaches ?? [];
  return (
    <>
      <FailureNote failure={failure} />
      {breaches.length > 1 && (
        <ul class="plain-list">
          {breaches.map((b) => (
            <li key={`${b.tree} ${b.node} ${b.resource} ${b.text}`}>
              <NodeLink tree={b.tree} node={b.node} /> <bdi>{b.text}</bdi>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
