// What the user may do. The server decides in every case; the page asks so that it offers no change that is refused.
import { AccessMode, type CanIResponse } from "#gen/access_pb";
import { api } from "./clients";
import { useRead } from "./read";

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
  const answers = useAnswers(places.slice(0, mostQuestions).map((place) => ({ verb, ...place })));
  return answers && { allowed: answers.all || answers.allowed.every(Boolean), user: answers.user };
}

type Question = RightAt & { verb: string };

/** useAnswers asks what the user may do; all is true in a cluster in which every user may do everything. */
function useAnswers(questions: Question[]): { all: boolean; allowed: boolean[]; user: string } | undefined {
  const key = questions.map((q) => `${q.verb} ${q.tree}:${q.node}`).join("\n");
  const me = useRead("who am I", { configuration: true }, (read, signal) => api.identity.whoAmI({ read }, { signal }));
  const can = useRead<CanIResponse>(`can I ${key}`, { configuration: true }, (read, signal) =>
    api.identity.canI({ questions, read }, { signal }),
  );
  if (!me.data) return undefined;
  if (me.data.mode !== AccessMode.GUARDED) return { all: true, allowed: [], user: me.data.user };
  return can.data && { all: false, allowed: can.data.allowed, user: me.data.user };
}

/** useRights are those of some verbs that the user has at one of their places at least. */
export function useRights(wanted: { verb: string; places: RightAt[] }[]): ReadonlySet<string> {
  const questions = wanted.flatMap(({ verb, places }) => places.map((place) => ({ verb, ...place }))).slice(0, mostQuestions);
  const answers = useAnswers(questions);
  return new Set(questions.filter((_, i) => answers?.all || answers?.allowed[i]).map((q) => q.verb));
}
