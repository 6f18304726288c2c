// Audit records: who changed what.
import { AuditSource, type AuditChange, type AuditRecord } from "#gen/admin/audit_pb";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useMemo, useState } from "preact/hooks";
import { api } from "../api/clients";
import { usePages } from "../api/pages";
import { Dialog } from "../components/dialog";
import { filter, useTypedFilter } from "../components/filters";
import { NodeLink } from "../components/names";
import { TreePicker } from "../components/pickers";
import { PagedTable, type Column } from "../components/table";
import { Instant } from "../components/time";
import { counted } from "../format";
import { setQuery } from "../router";

const ages: [string, string, number][] = [
  ["", "the last day", 86_400_000],
  ["week", "the last week", 7 * 86_400_000],
  ["all", "all that is kept", 0],
];

/** Audit lists records, newest first. */
export function Audit() {
  const [user, typeUser] = useTypedFilter("user");
  const [action, typeAction] = useTypedFilter("action");
  return (
    <>
      <h1>Audit</h1>
      <form class="filters" role="search" aria-label="Audit records" onSubmit={(e) => e.preventDefault()}>
        <label>
          Time
          <select value={filter("age")} onChange={(e) => setQuery({ age: e.currentTarget.value })}>
            {ages.map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label>
          Records of
          <select value={filter("source")} onChange={(e) => setQuery({ source: e.currentTarget.value })}>
            <option value="">changes</option>
            <option value="server">calls of this server</option>
          </select>
        </label>
        <TreePicker value={filter("tree")} change={(tree) => setQuery({ tree })} all="All trees" />
        <label>
          User
          <input value={user} placeholder="account/anna" onInput={(e) => typeUser(e.currentTarget.value)} />
        </label>
        <label>
          Action
          <input value={action} placeholder="SetLimits" onInput={(e) => typeAction(e.currentTarget.value)} />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={!!filter("refused")}
            onChange={(e) => setQuery({ refused: e.currentTarget.checked ? "yes" : undefined })}
          />
          Refused only
        </label>
      </form>
      <Records />
    </>
  );
}

function Records() {
  const [names, values] = [["age", "source", "tree", "user", "action", "refused"], {} as Record<string, string>];
  for (const name of names) values[name] = filter(name);
  const { source, tree, user, action, refused, age } = values;
  const span = ages.find(([name]) => name === age)?.[2] ?? 0;
  // All pages of a list have the same beginning, or the server refuses their tokens.
  const beginsAt = useMemo(() => (span ? timestampFromMs(Date.now() - span) : undefined), [span]);
  const pages = usePages<AuditRecord>(`audit ${JSON.stringify(values)}`, { configuration: true }, async (read, pageToken, signal) => {
    const page = await api.audit.listRecords(
      {
        pageToken,
        source: source ? AuditSource.SERVER : AuditSource.LEDGER,
        tree,
        beginsAt,
        user,
        action,
        refused: !!refused,
        newestFirst: true,
        read,
      },
      { signal },
    );
    return { rows: page.records, next: page.nextPageToken, read: page.read };
  });
  return (
    <PagedTable
      caption="Audit records, newest first"
      columns={columns}
      pages={pages}
      keyOf={(r) => `${r.number} ${r.index} ${r.call} ${r.recordedAt?.seconds}.${r.recordedAt?.nanos}`}
      empty="There is no such record."
    />
  );
}

const columns: Column<AuditRecord>[] = [
  { title: "Time", cell: (r) => <Instant at={r.recordedAt} /> },
  { title: "User", cell: (r) => <bdi>{r.actor?.user || r.actor?.kind || "unknown"}</bdi> },
  { title: "Action", cell: (r) => <bdi>{r.action || r.kind}</bdi> },
  { title: "Outcome", cell: (r) => r.outcome },
  { title: "Reason", cell: (r) => <bdi>{r.reason || r.detail}</bdi> },
  { title: "Changes", cell: (r) => <Details record={r} /> },
];

function Details({ record: r }: { record: AuditRecord }) {
  const [open, setOpen] = useState(false);
  const title = r.number ? `Record ${r.number}` : `Record of ${r.server}`;
  return (
    <>
      <button class="link nowrap" onClick={() => setOpen(true)}>
        {r.changeCount ? `${counted(r.changeCount, "change")}…` : "Details…"}
        <span class="hidden"> of {title}</span>
      </button>
      {open && (
        <Dialog title={title} close={() => setOpen(false)}>
          <Facts record={r} />
          <ul class="plain-list">
            {r.changes.map((c) => (
              <ChangeLine key={`${c.tree} ${c.node} ${c.field}`} change={c} />
            ))}
          </ul>
          {r.changeCount > BigInt(r.changes.length) && (
            <p class="quiet">{String(r.changeCount - BigInt(r.changes.length))} more changes are not listed.</p>
          )}
        </Dialog>
      )}
    </>
  );
}

function Facts({ record: r }: { record: AuditRecord }) {
  const facts: [string, string][] = [
    ["Kind", r.kind],
    ["Log index", r.index ? String(r.index) : ""],
    ["Revision", r.revision ? String(r.revision) : ""],
    ["Credential", r.actor?.credential ?? ""],
    ["Through", r.actor?.via ?? ""],
    ["Address", r.address],
    ["Request id", r.requestId],
    ["Call", r.call],
    ["Detail", r.detail],
    ["Further calls like it", r.count ? String(r.count) : ""],
    ["Hash", r.hash],
  ];
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <bdi>{value}</bdi>
            </dd>
          </div>
        ))}
    </dl>
  );
}

function ChangeLine({ change: c }: { change: AuditChange }) {
  const text = (value: string) => value || "none";
  return (
    <li>
      {c.tree ? <NodeLink tree={c.tree} node={c.node} /> : "the cluster"} <bdi>{c.field}</bdi>:{" "}
      <bdi>{text(c.before)}</bdi> → <bdi>{text(c.after)}</bdi>
    </li>
  );
}
