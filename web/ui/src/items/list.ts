// Reading the items of a resource.
import type { Item, ListItemsResponse } from "#gen/item_pb";
import { api } from "../api/clients";
import type { Fresh } from "../api/read";
import { natural } from "../format";

/** How many items are read and drawn at most. */
export const mostItems = 2000;
const pageSize = 1000;

interface Wanted {
  tree: string;
  resource: string;
  state: string;
  owner?: string;
  /** The whole name of one item; empty for all. */
  name?: string;
}

/** listItems reads the first items by name, in the order in which people count; more is true if there are others. */
export async function listItems(what: Wanted, read: Fresh, signal: AbortSignal) {
  const items: Item[] = [];
  let answer: ListItemsResponse;
  let pageToken = "";
  do {
    answer = await api.items.listItems({ ...what, pageSize, pageToken, read }, { signal });
    items.push(...answer.items);
    pageToken = answer.nextPageToken;
  } while (pageToken && items.length < mostItems);
  items.splice(mostItems);
  items.sort((a, b) => natural(a.name?.name ?? "", b.name?.name ?? ""));
  return { items, more: pageToken !== "", read: answer.read };
}
