// The members and the comparison of their states, as tables.
import { Seat, type GetStatusResponse, type Member } from "#gen/admin/cluster_pb";
import { Finding } from "#gen/admin/upkeep_pb";
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
} from "./cluster_members";

interface MemberTableProps {
  status: GetStatusResponse;
  members: Member[];
  again: () => void;
}

/** MemberTable has a row for each node. */
export function MemberTable({ status, members, again }: MemberTableProps) {
  const columns = [
    { title: "Member", cell: (r: Member) => <MemberName row={r} servedBy={status.servedBy} /> },
    { title: "Role", cell: (r: Member) => <RoleCell row={r} again={again} /> },
    { title: "Health", cell: (r: Member) => <HealthCell row={r} /> },
    { title: "Applied", number: true, cell: (r: Member) => (r.reachable ? String(r.appliedIndex) : "–") },
    { title: "Behind", number: true, cell: (r: Member) => behindText(status.commitIndex, r) },
    { title: "Clock", number: true, cell: clockText },
    { title: "Version", cell: (r: Member) => <VersionCell row={r} /> },
    { title: "Certificate", cell: (r: Member) => <DueCell due={certificateDue(r, now.value)} /> },
    { title: "Backups", cell: (r: Member) => <DueCell due={backupDue(r, now.value)} /> },
  ];
  return (
    <section class="cluster-members">
      <h2>Members</h2>
      <Table caption="Members of the cluster" columns={columns} rows={members} keyOf={(r) => r.id} />
    </section>
  );
}

function MemberName({ row, servedBy }: { row: Member; servedBy: string }) {
  return (
    <>
      <strong>
        <bdi>{row.id}</bdi>
      </strong>
      {row.id === servedBy && <span class="quiet"> (serves this page)</span>}
      <div class="quiet nowrap">
        <bdi>{row.httpAddress || "address unknown"}</bdi>
      </div>
    </>
  );
}

function RoleCell({ row, again }: { row: Member; again: () => void }) {
  return (
    <>
      {roleText(row)} <LeaderButton row={row} again={again} />
    </>
  );
}

const marks = { good: "✓", bad: "✗", unknown: "?" };

function HealthCell({ row }: { row: Member }) {
  const health = healthOf(row);
  return (
    <span class={`word-${health.kind}`}>
      <span aria-hidden="true">{marks[health.kind]} </span>
      <bdi>{health.word}</bdi>
    </span>
  );
}

function VersionCell({ row }: { row: Member }) {
  return (
    <>
      <bdi>{row.version || "unknown"}</bdi>
      <div class="quiet nowrap">
        level {row.featureLevel || "?"}
        {row.logStore && `, ${row.logStore} log`}
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
export function DigestTable({ members }: { members: Member[] }) {
  const compared = members.filter((m) => m.seat !== Seat.WAITING && m.seat !== Seat.NONE);
  const columns = [
    { title: "Member", cell: (d: Member) => <bdi>{d.id}</bdi> },
    { title: "State", cell: (d: Member) => <FindingCell finding={d.finding} /> },
    {
      title: "At index",
      number: true,
      cell: (d: Member) => (d.checkpointIndex ? String(d.checkpointIndex) : "none yet"),
    },
    { title: "Digest", cell: (d: Member) => <code>{d.digest || "–"}</code> },
  ];
  return (
    <section>
      <h2>States compared</h2>
      <Table caption="Digests of the members" columns={columns} rows={compared} keyOf={(d) => d.id} />
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
