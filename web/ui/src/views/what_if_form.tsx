// The form of a request.
import { Unit } from "#gen/tree_pb";
import type { ComponentChildren } from "preact";
import { resourcesOf, unitOf } from "../api/units";
import { TextField } from "../components/field";
import { NodePicker, TreePicker } from "../components/pickers";
import { emptyClaim, emptyRow, type Draft, type DraftClaim, type DraftRow } from "../requests/draft";
import type { Faults } from "../requests/draft_request";
import { unitName } from "../requests/quantity";

interface FormProps {
  draft: Draft;
  change: (draft: Draft) => void;
  faults: Faults;
}

/** The most alternatives of a request, and claims of an alternative. */
const mostAlternatives = 8;
const mostClaims = 32;

/** DraftForm edits a draft. */
export function DraftForm({ draft, change, faults }: FormProps) {
  const set = (claims: DraftClaim[][]) => change({ ...draft, alternatives: claims });
  const all = draft.alternatives;
  return (
    <form class="draft" onSubmit={(e) => e.preventDefault()}>
      {all.map((claims, i) => (
        <Alternative
          key={i}
          number={all.length > 1 ? i + 1 : 0}
          claims={claims}
          faults={faults}
          at={i}
          change={(c) => set(replaced(all, i, c))}
          remove={all.length > 1 ? () => set(without(all, i)) : undefined}
        />
      ))}
      {all.length < mostAlternatives && (
        <button type="button" class="link" onClick={() => set([...all, [emptyClaim()]])}>
          Or else: add an alternative
        </button>
      )}
      <Who draft={draft} change={change} faults={faults} />
    </form>
  );
}

interface AlternativeProps {
  /** From 1; 0 if there is only one. */
  number: number;
  at: number;
  claims: DraftClaim[];
  change: (claims: DraftClaim[]) => void;
  remove?: () => void;
  faults: Faults;
}

function Alternative({ number, at, claims, change, remove, faults }: AlternativeProps) {
  return (
    <Group legend={number ? `Alternative ${number}` : "Asks for"} remove={remove}>
      {claims.map((claim, i) => (
        <ClaimFields
          key={i}
          name={`${at} ${i}`}
          claim={claim}
          faults={faults}
          change={(c) => change(replaced(claims, i, c))}
          remove={claims.length > 1 ? () => change(without(claims, i)) : undefined}
        />
      ))}
      {claims.length < mostClaims && (
        <button type="button" class="link" onClick={() => change([...claims, emptyClaim()])}>
          Add another node
        </button>
      )}
    </Group>
  );
}

/** Group is a group of fields that can be removed. */
function Group({ legend, remove, children }: { legend: string; remove?: () => void; children: ComponentChildren }) {
  return (
    <fieldset>
      <legend>{legend}</legend>
      {children}
      {remove && (
        <button type="button" class="link" onClick={remove}>
          Remove {legend.toLowerCase()}
        </button>
      )}
    </fieldset>
  );
}

interface ClaimProps {
  name: string;
  claim: DraftClaim;
  change: (claim: DraftClaim) => void;
  remove?: () => void;
  faults: Faults;
}

function ClaimFields({ name, claim, change, remove, faults }: ClaimProps) {
  const setRow = (i: number, row: DraftRow) => change({ ...claim, rows: replaced(claim.rows, i, row) });
  const fault = claim.tree && faults.get(`claim ${name}`);
  return (
    <div class="claim-fields">
      <div class="filters">
        <TreePicker value={claim.tree} change={(tree) => change({ ...emptyClaim(), tree })} />
        <NodePicker tree={claim.tree} value={claim.node} change={(node) => change({ ...claim, node })} />
      </div>
      {claim.rows.map((row, i) => (
        <RowFields
          key={i}
          tree={claim.tree}
          row={row}
          fault={faults.get(`row ${name} ${i}`)}
          change={(r) => setRow(i, r)}
          remove={claim.rows.length > 1 ? () => change({ ...claim, rows: without(claim.rows, i) }) : undefined}
        />
      ))}
      {fault && <p class="fault">{fault}</p>}
      <button type="button" class="link" onClick={() => change({ ...claim, rows: [...claim.rows, emptyRow()] })}>
        And another resource
      </button>
      {remove && (
        <button type="button" class="link" onClick={remove}>
          Remove this node
        </button>
      )}
    </div>
  );
}

interface RowProps {
  tree: string;
  row: DraftRow;
  fault?: string;
  change: (row: DraftRow) => void;
  remove?: () => void;
}

const hints: Partial<Record<Unit, string>> = {
  [Unit.BYTES]: "16Gi, 250G",
  [Unit.MILLI]: "2, 500m",
  [Unit.ITEMS]: "1, or names: a,b",
};

function RowFields({ tree, row, fault, change, remove }: RowProps) {
  const unit = unitOf(tree, row.resource);
  const choose = (resource: string) => {
    const items = unitOf(tree, resource) === Unit.ITEMS;
    change({ ...emptyRow(), resource, items, value: items ? "1" : row.items ? "" : row.value });
  };
  return (
    <div class="filters">
      <label>
        Resource
        <select value={row.resource} disabled={!tree} onChange={(e) => choose(e.currentTarget.value)}>
          <option value="">Choose</option>
          {resourcesOf(tree).map((r) => (
            <option key={r} value={r}>
              {r} ({unitName(unitOf(tree, r))})
            </option>
          ))}
        </select>
      </label>
      <TextField
        label={row.items ? "Number or names" : "Amount"}
        value={row.value}
        change={(value) => change({ ...row, value })}
        fault={row.resource ? fault : undefined}
        placeholder={hints[unit] ?? "25, or 4..16/4"}
      />
      {row.items && (
        <TextField label="In state" value={row.state} change={(state) => change({ ...row, state })} placeholder="free" />
      )}
      {remove && (
        <button type="button" aria-label={`Remove ${row.resource || "this resource"}`} onClick={remove}>
          ✕
        </button>
      )}
    </div>
  );
}

function Who({ draft, change, faults }: FormProps) {
  const field = (label: string, name: Exclude<keyof Draft, "alternatives">, placeholder: string) => (
    <TextField
      label={label}
      value={draft[name]}
      fault={faults.get(name)}
      placeholder={placeholder}
      change={(value) => change({ ...draft, [name]: value })}
    />
  );
  return (
    <fieldset>
      <legend>For whom, and how</legend>
      <div class="filters">
        {field("User", "user", "none")}
        {field("Groups", "groups", "such as a,b")}
        {field("Application", "application", "none")}
        {field("Priority", "priority", "0")}
        {field("Waits at most", "wait", "such as 1h")}
        {field("Lease", "ttl", "such as 30m")}
      </div>
    </fieldset>
  );
}

function replaced<T>(list: T[], at: number, item: T): T[] {
  return list.map((old, i) => (i === at ? item : old));
}

function without<T>(list: T[], at: number): T[] {
  return list.filter((_, i) => i !== at);
}
