// Addresses within the page: /ui/VIEW?name=value, so that each can be sent to a colleague.
import { signal } from "@preact/signals";

const root = "/ui/";

/** Route is the address that is shown. */
export interface Route {
  view: string;
  query: URLSearchParams;
}

function parse(): Route {
  const path = location.pathname.startsWith(root) ? location.pathname.slice(root.length) : "";
  return { view: path.replace(/\/+$/, "") || "overview", query: new URLSearchParams(location.search) };
}

/** The address that is shown. */
export const route = signal<Route>(parse());

/** Query is what an address says beside the view; values that are empty or absent are left out. */
export type Query = Record<string, string | undefined>;

/** address is that of a view. */
export function address(view: string, query: Query = {}): string {
  const kept = Object.entries(query).filter((e): e is [string, string] => !!e[1]);
  const text = new URLSearchParams(kept).toString();
  return root + (view === "overview" ? "" : view) + (text && `?${text}`);
}

/** go shows another address. Replacing one leaves no trace in the history of the tab. */
export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  route.value = parse();
}

/** setQuery changes values of the present address, without a new entry in the history of the tab. */
export function setQuery(changes: Query): void {
  const now = Object.fromEntries(route.value.query);
  go(address(route.value.view, { ...now, ...changes }), true);
}

/** followLinks makes links within the page show their view without loading the page again. */
export function followLinks(): void {
  window.addEventListener("popstate", () => (route.value = parse()));
  document.addEventListener("click", (event) => {
    const link = (event.target as Element | null)?.closest?.("a");
    const own = link && link.origin === location.origin && link.pathname.startsWith(root) && !link.dataset.load;
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!own || !plain || event.defaultPrevented || link.target) return;
    event.preventDefault();
    go(link.pathname + link.search);
    window.scrollTo(0, 0);
    document.getElementById("content")?.focus({ preventScroll: true });
  });
}
