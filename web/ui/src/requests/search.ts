// What a text in the search field may mean.
import { address } from "../router";

/** Found is something that the search field offers. */
export interface Found {
  kind: "tree" | "node" | "allocation" | "page" | "action";
  name: string;
  to: string;
  /** What it is for. */
  about?: string;
}

/** Named has a name by which it is found. */
type Named = Pick<Found, "name" | "about">;

/** sortFound are those whose names contain a text, those first that begin with it. */
export function sortFound<T extends Named>(text: string, all: T[]): T[] {
  const at = ({ name }: T) => name.toLowerCase().indexOf(text.toLowerCase());
  return [...all.filter((f) => at(f) === 0), ...all.filter((f) => at(f) > 0)];
}

/** Shorter texts are in too many descriptions. */
const shortest = 3;

/** findAbout are those that are for what a text says, and do not have it in their names. */
export function findAbout<T extends Named>(text: string, all: T[]): T[] {
  if (text.length < shortest) return [];
  const named = new Set(sortFound(text, all));
  return all.filter((f) => !named.has(f) && f.about?.toLowerCase().includes(text.toLowerCase()));
}

/** findTrees are the trees whose names contain a text, those first that begin with it. */
export function findTrees(text: string, names: string[]): Found[] {
  return sortFound(text, names.map((name) => ({ kind: "tree", name, to: address("tree", { tree: name }) })));
}

/** The actions that the search field offers: each leads to where it is done. */
export const actions: (Found & { view: string })[] = [
  { view: "what-if", name: "Request capacity", about: "allocate, ask what if" },
  { view: "requests", name: "Ask for another limit", about: "more quota" },
  { view: "plan", name: "Change the configuration", about: "apply a manifest" },
  { view: "history", name: "Roll back the configuration", about: "undo a change" },
  { view: "items", name: "Change the state of items", about: "clean, reset" },
  { view: "cluster", name: "Compare the states of all members", about: "checkpoint, digest" },
  { view: "cluster", name: "Make another member the leader", about: "transfer leadership" },
].map((a) => ({ ...a, kind: "action", to: address(a.view) }));
