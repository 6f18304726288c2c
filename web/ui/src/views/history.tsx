// The history of the configuration: who changed what, when and why.
import type { Revision } from "#gen/revision_pb";
import { useState } from "preact/hooks";
import { api, offersChanges } from "../api/clients";
import { usePages } from "../api/pages";
import { ChangeDialog } from "../components/change";
import { filter } from "../components/filters";
import { Changes } from "../components/plan";
import { Answer, Empty } from "../components/states";
import { Instant } from "../components/time";
import { address, setQuery } from "../router";
import { Comparison } from "./history_compare";

/** How many changes of a revision are shown at first. */
const shownChanges = 10;

/** History lists revisions, or compares two. */
export function History() {
  const from = filter("from");
  return (
    <>
      <h1>History</h1>
      <CompareForm />
      {/^[1-9][0-9]*$/.test(from) ? <Comparison from={BigInt(from)} to={filter("to")} /> : <Revisions />}
    </>
  );
}

function CompareForm() {
  const [from, setFrom] = useState(filter("from"));
  const [to, setTo] = useState(filter("to"));
  const submit = (event: Event) => {
    event.preventDefault();
    setQuery({ from, to });
  };
  return (
    <form class="filters" onSubmit={submit} aria-label="Compare revisions">
      <label>
        From revision
        <input inputMode="numeric" pattern="[1-9][0-9]*" required value={from} onInput={(e) => setFrom(e.currentTarget.value)} />
      </label>
      <label>
        To revision
        <input inputMode="numeric" pattern="[1-9][0-9]*" placeholder="present" value={to} onInput={(e) => setTo(e.currentTarget.value)} />
      </label>
      <button>Compare</button>
      {filter("from") && <a href={address("history")}>All revisions</a>}
    </form>
  );
}

function Revisions() {
  const pages = usePages<Revision>("revisions", { configuration: true }, async (read, pageToken, signal) => {
    const page = await api.configuration.listRevisions({ pageSize: 20, pageToken, read }, { signal });
    return { rows: page.revisions, next: page.nextPageToken, read: page.read, filtered: page.filtered };
  });
  return (
    <Answer read={pages}>
      {(page) => (
        <>
          {page.rows.length === 0 && <Empty>Nothing was configured yet.</Empty>}
          <ol class="plain-list revisions">
            {page.rows.map((r, i) => (
              <RevisionItem key={String(r.revision)} revision={r} newest={i === 0} filtered={page.filtered} />
            ))}
          </ol>
          {pages.more && <button onClick={pages.more}>Show more</button>}
          {page.filtered && <p class="quiet">Only changes that you may see are listed.</p>}
        </>
      )}
    </Answer>
  );
}

function RevisionItem({ revision: r, newest, filtered }: { revision: Revision; newest: boolean; filtered?: boolean }) {
  const [all, setAll] = useState(false);
  const more = r.changes.length - shownChanges;
  const unkept = r.changeCount - r.changes.length;
  return (
    <li class="card">
      <h2>Revision {String(r.revision)}</h2>
      <p>
        <Instant at={r.appliedAt} /> by <bdi>{r.actor || "an unnamed caller"}</bdi>
        {r.reason && (
          <>
            : <bdi>{r.reason}</bdi>
          </>
        )}
        {r.request && ` (request ${r.request.id} of ${r.request.asker})`}
      </p>
      <Changes changes={all ? r.changes : r.changes.slice(0, shownChanges)} />
      {!all && more > 0 && <button onClick={() => setAll(true)}>Show {more} more changes</button>}
      {unkept > 0 && <p class="quiet">{unkept} more changes are not listed.</p>}
      <div class="actions">
        {!filtered && r.revision > 1n && (
          <a href={address("history", { from: String(r.revision - 1n), to: String(r.revision) })}>As text</a>
        )}
        {!filtered && !newest && <a href={address("history", { from: String(r.revision) })}>Compare with the present</a>}
        {!newest && <RollBack revision={r.revision} />}
      </div>
    </li>
  );
}

function RollBack({ revision }: { revision: bigint }) {
  const [open, setOpen] = useState(false);
  if (!offersChanges) return null;
  return (
    <>
      <button onClick={() => setOpen(true)}>Roll back to this…</button>
      {open && (
        <ChangeDialog
          title={`Roll back to revision ${revision}`}
          call={async (options) => (await api.configuration.rollBack({ revision, ...options })).result}
          close={() => setOpen(false)}
        />
      )}
    </>
  );
}
