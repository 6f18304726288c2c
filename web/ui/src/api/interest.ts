// Which changes concern a read.
import type { TreeChanges, WatchChangesResponse } from "#gen/change_pb";

/** Interest is what a read depends on: it is repeated when one of these changes. */
export interface Interest {
  /** The tree; absent for all trees. */
  tree?: string;
  /** The node that is read; with it, changes elsewhere in the tree count only where they can reach it. */
  node?: string;
  usage?: boolean;
  queue?: boolean;
  items?: boolean;
  configuration?: boolean;
  members?: boolean;
  limitRequests?: boolean;
}

/** concerns reports whether what a message names may have changed what a read with the interest answers. */
export function concerns(message: WatchChangesResponse, interest: Interest): boolean {
  if (message.everything) return true;
  if (message.configuration) return true;
  if (message.members && interest.members) return true;
  if (message.limitRequests && interest.limitRequests) return true;
  return message.trees.some((t) => (!interest.tree || t.tree === interest.tree) && reaches(t, interest));
}

function reaches(changes: TreeChanges, interest: Interest): boolean {
  if (changes.many) return !!(interest.usage || interest.queue || interest.items);
  if (interest.usage && changes.nodes.length > 0) return true;
  if (interest.queue && changes.queue) return true;
  return !!interest.items && changes.items.length > 0;
}
