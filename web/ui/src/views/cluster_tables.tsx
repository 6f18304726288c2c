// The members and the comparison of their states, as tables.
import type { GetStatusResponse } from "#gen/cluster_pb";
import { Finding, type GetDigestsResponse } from "#gen/upkeep_pb";
import { Table } from "../components/table";
import { now } from "../components/time";
import { LeaderButton } from "./cluster_actions";
import {
  backupDue,
  behindText,
  certificateDue,
  clockText,
  findings,
  healthOf,
  roleText,
  type Due,
  type MemberRow,
} from "./cluster_members";

interface MemberTableProps {
  status: GetStatusResponse;
  rows: MemberRow[];
  again: () => void;
}

/** MemberTable has a row for each node. */
export function MemberTable({ status, rows, again }: MemberTableProps) {
  const columns = [
    { title: "Member", cell: (r: MemberRow) => <MemberName row={r} servedBy={status.servedBy} /> },
    { title: "Role", cell: (r: MemberRow) => <RoleCell row={r} again={again} /> },
    { title: "Health", cell: (r: MemberRow) => <HealthCell row={r} /> },
    { title: "Applied", number: true, cell: (r: MemberRow) => (r.member?.reachable ? String(r.member.appliedIndex) : "–") },
    { title: "Behind", number: true, cell: (r: MemberRow) => behindText(status, r) },
    { title: "Clock", number: true, cell: clockText },
    { title: "Version", cell: (r: MemberRow) => <VersionCell row={r} /> },
    { title: "Certificate", cell: (r: MemberRow) => <DueCell due={certificateDue(r, now.value)} /> },
    { title: "Backups", cell: (r: MemberRow) => <DueCell due={backupDue(r, now.value)} /> },
  ];
  return (
    <section class="cluster-members">
      <h2>Members</h2>
      <Table caption="Members of the cluster" columns={columns} rows={rows} keyOf={(r) => r.id} />
    </section>
  );
}

function MemberName({ row, servedBy }: { row: MemberRow; servedBy: string }) {
  const address = row.member?.httpAddress || row.health?.httpAddress;
  return (
    <>
      <strong>
        <bdi>{row.id}</bdi>
      </strong>
      {row.id === servedBy && <span class="quiet"> (serves this page)</span>}
      <div class="quiet nowrap">
        <bdi>{address || "address unknown"}</bdi>
      </div>
    </>
  );
}

function RoleCell({ row, again }: { row: MemberRow; again: () => void }) {
  return (
    <>
      {roleText(row)} <LeaderButton row={row} again={again} />
    </>
  );
}

const marks = { good: "✓", bad: "✗", unknown: "?" };

function HealthCell({ row }: { row: MemberRow }) {
  const health = healthOf(row);
  return (
    <span class={`word-${health.kind}`}>
      <span aria-hidden="true">{marks[health.kind]} </span>
      <bdi>{health.word}</bdi>
    </span>
  );
}

function VersionCell({ row }: { row: MemberRow }) {
  const m = row.member?.version ? row.member : row.health;
  return (
    <>
      <bdi>{m?.version || "unknown"}</bdi>
      <div class="quiet nowrap">
        level {m?.featureLevel ?? "?"}
        {row.member?.logStore && `, ${row.member.logStore} log`}
      </div>
    </>
  );
}

function DueCell({ due }: { due: Due }) {
  return due.late ? (
    <strong class="word-bad">
      <span aria-hidden="true">✗ </span>
      {due.text}
    </strong>
  ) : (
    <span>{due.text}</span>
  );
}

/** DigestTable has the last comparison of the states of the members. */
export function DigestTable({ digests }: { digests: GetDigestsResponse }) {
  const columns = [
    { title: "Member", cell: (d: (typeof digests.members)[number]) => <bdi>{d.id}</bdi> },
    { title: "State", cell: (d: (typeof digests.members)[number]) => <FindingCell finding={d.finding} /> },
    {
      title: "At index",
      number: true,
      cell: (d: (typeof digests.members)[number]) => (d.index ? String(d.index) : "none yet"),
    },
    { title: "Digest", cell: (d: (typeof digests.members)[number]) => <code>{d.digest || "–"}</code> },
  ];
  return (
    <section>
      <h2>States compared</h2>
      <Table caption="Digests of the members" columns={columns} rows={digests.members} keyOf={(d) => d.id} />
    </section>
  );
}

function FindingCell({ finding }: { finding: Finding }) {
  const kind = finding === Finding.AGREES ? "good" : finding === Finding.PENDING ? "unknown" : "bad";
  return (
    <span class={`word-${kind}`}>
      <span aria-hidden="true">{marks[kind]} </span>
      {findings[finding]}
    </span>
  );
}
