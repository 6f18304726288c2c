// What a text in the search field may mean.
import { address } from "../router";

/** Found is something that the search field offers. */
export interface Found {
  kind: "tree" | "node" | "allocation";
  name: string;
  to: string;
}

/** findTrees are the trees whose names contain a text, those first that begin with it. */
export function findTrees(text: string, names: string[]): Found[] {
  const wanted = text.toLowerCase();
  const begins = names.filter((n) => n.toLowerCase().startsWith(wanted));
  const contains = names.filter((n) => !begins.includes(n) && n.toLowerCase().includes(wanted));
  return [...begins, ...contains].map((name) => ({ kind: "tree", name, to: address("tree", { tree: name }) }));
}
