// What the user may do. The server decides in every case; the page asks so that it offers no change that is refused.
import { AccessMode, type CanIResponse } from "#gen/access_pb";
import { api } from "./clients";
import { useRead, type Fresh } from "./read";

/** Where a right is needed; the empty tree is the cluster. */
export interface RightAt {
  tree: string;
  node: string;
}

/** Rights are what the user may do; undefined while they are not known. */
export type Rights = { allowed: boolean; user: string } | undefined;

/** The most questions of one call. */
const mostQuestions = 100;

/** useRight says whether the user has a verb at all of some places. In a cluster that is not guarded every user has. */
export function useRight(verb: string, places: RightAt[]): Rights {
  const key = places.map((p) => `${p.tree}:${p.node}`).join("\n");
  const me = useRead("who am I", { configuration: true }, (read, signal) => api.access.whoAmI({ read }, { signal }));
  const can = useRead<CanIResponse>(`can I ${verb}\n${key}`, { configuration: true }, (read, signal) =>
    askAll(verb, places, read, signal),
  );
  if (!me.data) return undefined;
  if (me.data.mode !== AccessMode.GUARDED) return { allowed: true, user: me.data.user };
  return can.data && { allowed: can.data.allowed.every(Boolean), user: me.data.user };
}

function askAll(verb: string, places: RightAt[], read: Fresh, signal: AbortSignal): Promise<CanIResponse> {
  const questions = places.slice(0, mostQuestions).map((place) => ({ verb, ...place }));
  return api.access.canI({ questions, read }, { signal });
}
