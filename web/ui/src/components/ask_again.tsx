// The way from a request to the question what another one like it would lead to.
import type { Allocation } from "#gen/allocation_pb";
import { amountText } from "../api/units";
import { writeDraft } from "../requests/draft";
import { draftFrom } from "../requests/draft_from";
import { address } from "../router";

/** AskAgainLink leads to the view "What if" with the same request. */
export function AskAgainLink({ allocation }: { allocation: Allocation }) {
  return (
    <p>
      <a href={`${address("what-if")}?${writeDraft(draftFrom(allocation, amountText))}`}>
        What if another one like it, or a smaller one, were requested?
      </a>
    </p>
  );
}
