// The beginning of a place, such as TREE:node/pa.

/** Place is a node that is being written, as TREE:node/path. */
export interface Place {
  tree: string;
  /** The node that is written already; empty for the root. */
  parent: string;
  /** How the paths of the nodes begin that are meant. */
  prefix: string;
}

/** toPlace reads the beginning of a place; absent if the text is none. */
export function toPlace(text: string): Place | undefined {
  const colon = text.indexOf(":");
  if (colon < 1) return undefined;
  const prefix = text.slice(colon + 1);
  const slash = prefix.lastIndexOf("/");
  return { tree: text.slice(0, colon), parent: slash < 0 ? "" : prefix.slice(0, slash), prefix };
}
