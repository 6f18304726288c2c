// Finding a page or an action by a word, an allocation by its id or the beginning of it, a tree or a node by a part of
// its name, and a node by its path. The key / leads here.
import type { ListAllocationsResponse } from "#gen/allocation_pb";
import type { ReadInfo } from "#gen/common_pb";
import type { RefObject } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { api, offersChanges } from "../api/clients";
import { useRead, type Fresh } from "../api/read";
import { allocationAddress } from "./names";
import { useDelayed } from "./delayed";
import { treeNames } from "../api/units";
import { address, go } from "../router";
import { toPlace, type Place } from "../requests/place";
import { actions, findAbout, findTrees, sortFound, type Found } from "../requests/search";
import { Icon, type IconName } from "./icon";
import type { Entry } from "./navigation";

const most = 8;
/** In how many trees nodes are found by name: each is a call. */
const mostTrees = 8;

/** Search is the field in the header. */
export function Search({ entries }: { entries: Entry[] }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const asked = useDelayed(text.trim());
  useSlash(() => {
    input.current?.focus();
    setOpen(true);
  });
  return (
    <search
      class="search"
      onFocusOut={(e) => !e.currentTarget.contains(e.relatedTarget as Node | null) && setOpen(false)}
    >
      <Icon name="search" />
      <Field {...{ input, text, open, setOpen, asked, entries }} setText={setText} />
      {!open && !text && <kbd aria-hidden="true">/</kbd>}
    </search>
  );
}

interface FieldProps {
  input: RefObject<HTMLInputElement | null>;
  text: string;
  setText: (text: string) => void;
  open: boolean;
  setOpen: (open: boolean) => void;
  asked: string;
  entries: Entry[];
}

function Field({ input, text, setText, open, setOpen, asked, entries }: FieldProps) {
  const id = useId();
  const held = useFound(asked);
  const pages = pagesFrom(entries);
  const typed = text.trim();
  const found = typed ? [...sortFound(typed, pages), ...held, ...findAbout(typed, pages)] : pages.filter((f) => f.kind === "page");
  const [at, setAt] = useState(-1);
  const shown = open && (found.length > 0 || text.trim() !== "");
  const choose = (f: Found | undefined) => {
    if (!f) return;
    setText("");
    setOpen(false);
    go(f.to);
    document.getElementById("content")?.focus({ preventScroll: true });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") setOpen(false);
    if (event.key === "Enter") choose(found[at] ?? exactly(text.trim(), found));
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !found.length) return;
    event.preventDefault();
    setOpen(true);
    setAt((at + step + found.length) % found.length);
  };
  return (
    <>
      <input
        ref={input}
        type="search"
        role="combobox"
        list={undefined}
        aria-label="Find a node, an id, a page or an action"
        aria-expanded={shown}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={shown && found[at] ? `${id}-${at}` : undefined}
        aria-keyshortcuts="/"
        placeholder="Find a node, an id, a page…"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(e) => {
          setText(e.currentTarget.value);
          setOpen(true);
          setAt(-1);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id={id} role="listbox" aria-label="Found" hidden={!shown}>
        {found.map((f, i) => (
          <li
            key={`${f.kind} ${f.name} ${f.to}`}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === at}
            onMouseDown={(e) => e.preventDefault()}
            onClick={() => choose(f)}
          >
            <Icon name={f.kind === "page" ? (iconOf(f, entries) ?? "more") : icons[f.kind]} />
            <bdi>{f.name}</bdi>
            <span class="quiet">{f.about ?? f.kind}</span>
          </li>
        ))}
        {!held.length && text.trim() !== "" && (
          <li role="option" aria-disabled="true" aria-selected="false" class="quiet">
            Enter opens the request of this id
          </li>
        )}
      </ul>
    </>
  );
}

const icons = { tree: "tree", node: "node", allocation: "allocation", page: "more", action: "action" } as const;

function iconOf(f: Found, entries: Entry[]): IconName | undefined {
  return entries.find((e) => address(e.view) === f.to)?.icon;
}

/** pagesFrom are the pages of the navigation and the actions that are offered. */
function pagesFrom(entries: Entry[]): Found[] {
  const pages = entries.map((e): Found => ({ kind: "page", name: e.title, about: e.about, to: address(e.view) }));
  const open = actions.filter((a) => entries.some((e) => e.view === a.view) && (offersChanges || a.view === "what-if"));
  return [...pages, ...open];
}

/** exactly is what Enter opens without a choice: a place if the text names one, and otherwise the id as it was typed. */
function exactly(text: string, found: Found[]): Found | undefined {
  if (!text) return undefined;
  const same =
    found.find((f) => f.name === text) ?? found.find((f) => f.kind === "page" && f.name.toLowerCase() === text.toLowerCase());
  return same ?? { kind: "allocation", name: text, to: address("allocation", { id: text }) };
}

type Nodes = { found: Found[]; read?: ReadInfo };
type Held = Pick<ListAllocationsResponse, "allocations" | "read">;

/** useFound are trees, nodes and allocations for a text, in this order. */
function useFound(text: string): Found[] {
  const nodes = useRead<Nodes>(`find node ${text}`, {}, async (read, signal) => {
    const place = toPlace(text);
    return { found: await (place ? findBelow(place, read, signal) : findNamed(text, read, signal)) };
  });
  const held = useRead<Held>(`find id ${text}`, {}, async (read, signal) => {
    if (!/^[!-~]{1,128}$/.test(text)) return { allocations: [] };
    return api.allocations.listAllocations({ idPrefix: text, pageSize: most, read }, { signal });
  });
  if (!text) return [];
  return [
    ...findTrees(text, treeNames()),
    ...(nodes.data?.found ?? []),
    ...(held.data?.allocations ?? []).map(
      (a): Found => ({ kind: "allocation", name: a.id, to: allocationAddress(a) }),
    ),
  ].slice(0, most * 2);
}

/** findBelow are the nodes whose paths begin as a place does. */
async function findBelow({ tree, parent, prefix }: Place, read: Fresh, signal: AbortSignal): Promise<Found[]> {
  const asked = { tree, node: parent, subtree: true, maxDepth: 1, pageSize: 1000, read };
  const { nodes } = await api.trees.getUsage(asked, { signal });
  return nodes.filter((n) => n.node.startsWith(prefix)).map((n) => nodeFound(tree, n.node));
}

/** findNamed are the first nodes of the first trees whose own names contain a text; a tree that cannot be read has none. */
async function findNamed(nameContains: string, read: Fresh, signal: AbortSignal): Promise<Found[]> {
  if (nameContains.length < 2) return [];
  const ask = async (tree: string) => {
    const asked = { tree, subtree: true, nameContains, pageSize: most, read };
    const { nodes } = await api.trees.getUsage(asked, { signal });
    return nodes.filter((n) => n.node).map((n) => nodeFound(tree, n.node));
  };
  const found = await Promise.all(treeNames().slice(0, mostTrees).map((tree) => ask(tree).catch(() => [])));
  return found.flat().slice(0, most);
}

function nodeFound(tree: string, node: string): Found {
  return { kind: "node", name: node ? `${tree}:${node}` : tree, to: address("node", { tree, node }) };
}

/** useSlash calls when / is pressed outside of a field. */
function useSlash(call: () => void): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const types = target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName);
      if (event.key !== "/" || types || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      call();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}
