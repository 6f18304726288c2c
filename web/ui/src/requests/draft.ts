// A request that is being written. Its address names the parts in the order and the words of the flags of
// "quorate allocate": at, amount, item, or.
import { flagWord } from "./shell";

/** DraftRow is one resource that a claim asks for, as text. */
export interface DraftRow {
  resource: string;
  /** An amount or a range such as 4..16/4; of items a number, or names with commas between. */
  value: string;
  /** True for an itemized resource. */
  items: boolean;
  /** The state of the items; empty for free ones. */
  state: string;
}

/** DraftClaim is what is asked for at one node. */
export interface DraftClaim {
  tree: string;
  node: string;
  rows: DraftRow[];
}

/** Draft is a request as text. */
export interface Draft {
  /** At least one, each with at least one claim. */
  alternatives: DraftClaim[][];
  user: string;
  /** Names with commas between. */
  groups: string;
  application: string;
  priority: string;
  /** How long it waits in the queue, such as 1h; empty for not at all. */
  wait: string;
  /** The TTL of its lease, such as 30m; empty for the setting of the tree. */
  ttl: string;
}

/** emptyRow asks for nothing yet. */
export function emptyRow(): DraftRow {
  return { resource: "", value: "", items: false, state: "" };
}

/** emptyClaim is at no node yet. */
export function emptyClaim(): DraftClaim {
  return { tree: "", node: "", rows: [emptyRow()] };
}

const texts = ["user", "groups", "application", "priority", "wait", "ttl"] as const;

/** readDraft reads a draft from an address. What it does not understand is left out. */
export function readDraft(query: URLSearchParams): Draft {
  const alternatives: DraftClaim[][] = [[]];
  for (const [name, value] of query) {
    const claims = alternatives.at(-1)!;
    if (name === "or" && claims.length) alternatives.push([]);
    if (name === "at") claims.push({ ...readPlace(value), rows: [] });
    if (name === "amount") claims.at(-1)?.rows.push(readAmount(value));
    if (name === "item") claims.at(-1)?.rows.push(readItems(value));
  }
  const text = (name: string) => query.get(name) ?? "";
  return {
    alternatives: alternatives.filter((claims, i) => i === 0 || claims.length).map(complete),
    ...(Object.fromEntries(texts.map((name) => [name, text(name)])) as Record<(typeof texts)[number], string>),
  };
}

/** complete adds what the form needs to have fields. */
function complete(claims: DraftClaim[]): DraftClaim[] {
  if (!claims.length) return [emptyClaim()];
  return claims.map((c) => (c.rows.length ? c : { ...c, rows: [emptyRow()] }));
}

function readPlace(text: string): Pick<DraftClaim, "tree" | "node"> {
  const [tree = "", node = ""] = cut(text, ":");
  return { tree, node };
}

function readAmount(text: string): DraftRow {
  const [resource = "", value = ""] = cut(text, "=");
  return { resource, value, items: false, state: "" };
}

/** readItems reads RESOURCE[@STATE][=COUNT|:NAME,...]. */
function readItems(text: string): DraftRow {
  const end = text.search(/[=:]/);
  const [resource = "", state = ""] = cut(end < 0 ? text : text.slice(0, end), "@");
  return { resource, state, items: true, value: end < 0 ? "1" : text.slice(end + 1) };
}

function cut(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + mark.length)];
}

/** isCount is true for a number of items, and false for names. */
export function isCount(value: string): boolean {
  return /^[0-9]*$/.test(value);
}

/** rowFlag is the name and the value of the flag that asks for a row. */
function rowFlag(row: DraftRow): [string, string] {
  if (!row.items) return ["amount", `${row.resource}=${row.value}`];
  const what = row.resource + (row.state ? `@${row.state}` : "");
  return ["item", what + (isCount(row.value) ? "=" : ":") + (row.value || "1")];
}

/** flagsOf are the flags of a draft, in their order. Parts that are not begun are left out. */
function flagsOf(draft: Draft): [string, string][] {
  const flags: [string, string][] = [];
  draft.alternatives.forEach((claims, i) => {
    if (i > 0) flags.push(["or", ""]);
    for (const claim of claims.filter((c) => c.tree)) {
      flags.push(["at", claim.node ? `${claim.tree}:${claim.node}` : claim.tree]);
      for (const row of claim.rows.filter((r) => r.resource)) flags.push(rowFlag(row));
    }
  });
  return flags;
}

/** writeDraft is the address of a draft, without the view. */
export function writeDraft(draft: Draft): string {
  const query = new URLSearchParams(flagsOf(draft).map(([name, value]) => [name, value || "1"]));
  for (const name of texts) if (draft[name]) query.set(name, draft[name]);
  return query.toString();
}

/** groupNames are the names of the groups of a draft. */
export function groupNames(draft: Draft): string[] {
  return draft.groups
    .split(",")
    .map((g) => g.trim())
    .filter((g) => g);
}

/** explainCommand is the command that explains a draft. */
export function explainCommand(draft: Draft): string {
  return commandOf("explain", draft, []);
}

/** allocateCommand is the command that makes the request; the id is chosen by the command if it is empty. */
export function allocateCommand(draft: Draft, id = ""): string {
  const flags: [string, string][] = [];
  if (id) flags.push(["id", id]);
  if (draft.wait) flags.push(["wait", draft.wait]);
  if (draft.ttl) flags.push(["ttl", draft.ttl]);
  return commandOf("allocate", draft, flags);
}

function commandOf(name: string, draft: Draft, first: [string, string][]): string {
  const flags = [...first];
  if (draft.user) flags.push(["user", draft.user]);
  for (const group of groupNames(draft)) flags.push(["group", group]);
  if (draft.application) flags.push(["application", draft.application]);
  if (draft.priority && draft.priority !== "0") flags.push(["priority", draft.priority]);
  const words = [...flags, ...flagsOf(draft)].map(([flag, value]) => flagText(flag, value));
  return ["quorate", name, ...words].join(" ");
}

/** A value that looks like a flag is joined to its own with an equals sign. */
function flagText(flag: string, value: string): string {
  if (flag === "or") return "--or";
  return value.startsWith("-") ? `--${flag}=${flagWord(value)}` : `--${flag} ${flagWord(value)}`;
}
