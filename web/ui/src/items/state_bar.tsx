// How many items are in each state, as one bar and in words.
import type { ItemCount } from "#gen/item_pb";
import { letterOf, lookOf, statesOf, totalOf } from "./cell";

/** StateBar shows the states of the items of a resource. */
export function StateBar({ count }: { count: ItemCount }) {
  const total = Number(totalOf(count)) || 1;
  const states = statesOf(count);
  return (
    <>
      <span class="state-bar" aria-hidden="true">
        {states.map(([state, n]) => (
          <span key={state} class={`look-${lookOf(state)}`} style={{ width: `${(Number(n) / total) * 100}%` }}>
            {letterOf(state)}
          </span>
        ))}
      </span>
      <ul class="legend">
        {states.map(([state, n]) => (
          <li key={state}>
            <span class={`cell small look-${lookOf(state)}`} aria-hidden="true">
              {letterOf(state)}
            </span>
            {String(n)} <bdi>{state}</bdi>
          </li>
        ))}
      </ul>
    </>
  );
}
