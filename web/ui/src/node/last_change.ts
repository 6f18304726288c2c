// The last change of each setting of a node.
import type { Revision } from "#gen/revision_pb";

/** LastChange says who changed a setting last, when and why. */
export type LastChange = Pick<Revision, "revision" | "appliedAt" | "actor" | "reason">;

/** lastChanges finds them by field. The revisions have changes of one node only, the newest first. */
export function lastChanges(revisions: Revision[]): Map<string, LastChange> {
  const last = new Map<string, LastChange>();
  for (const r of revisions) {
    for (const change of r.changes) if (!last.has(change.field)) last.set(change.field, r);
  }
  return last;
}
