// What is known of each member, from the serving node, the leader and the comparison of states.
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  Role,
  Seat,
  type GetStatusResponse,
  type ListMembersResponse,
  type Member,
  type MemberHealth,
} from "#gen/cluster_pb";
import { Finding, type GetDigestsResponse, type MemberDigest } from "#gen/upkeep_pb";
import { span } from "../format";

/** MemberRow is one node of the cluster. */
export interface MemberRow {
  id: string;
  member?: Member;
  health?: MemberHealth;
  digest?: MemberDigest;
}

/** joinMembers has a row for each node that one of the answers names, by id. */
export function joinMembers(
  status?: GetStatusResponse,
  health?: ListMembersResponse,
  digests?: GetDigestsResponse,
): MemberRow[] {
  const rows = new Map<string, MemberRow>();
  const row = (id: string) => rows.get(id) ?? rows.set(id, { id }).get(id)!;
  for (const m of status?.members ?? []) row(m.id).member = m;
  for (const h of health?.members ?? []) row(h.id).health = h;
  for (const d of digests?.members ?? []) row(d.id).digest = d;
  return [...rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

const roles = {
  [Role.UNSPECIFIED]: "",
  [Role.UNKNOWN]: "",
  [Role.FOLLOWER]: "follower",
  [Role.CANDIDATE]: "candidate",
  [Role.LEADER]: "leader",
};

/** roleText is the role of a node in the log, and whether it votes. */
export function roleText({ member, health }: MemberRow): string {
  if (health?.seat === Seat.WAITING) return "waits to be added";
  if (health?.seat === Seat.NONE) return "not a member";
  const role = roles[member?.role ?? Role.UNSPECIFIED] || roles[health?.role ?? Role.UNSPECIFIED] || "unknown role";
  const votes = member?.voter ?? health?.seat === Seat.VOTER;
  return votes ? role : `${role}, no vote`;
}

/** Health of a node: "good", "bad", or "unknown" while no leader tells. */
export type Health = { word: string; kind: "good" | "bad" | "unknown" };

/** healthOf is how the leader finds a node, or what its status says. */
export function healthOf({ member, health }: MemberRow): Health {
  const problem = health?.problem || member?.problem;
  if (health?.healthy) return { word: problem ? `healthy, but ${problem}` : "healthy", kind: problem ? "bad" : "good" };
  if (member && !member.reachable) return { word: problem || "does not answer", kind: "bad" };
  if (problem) return { word: problem, kind: "bad" };
  return health ? { word: "not healthy", kind: "bad" } : { word: "unknown", kind: "unknown" };
}

/** behindText is how many entries of the log a member has not applied, as the serving node knows it. */
export function behindText(status: GetStatusResponse | undefined, { member, health }: MemberRow): string {
  if (!member?.reachable) return health?.role ? `${health.trailingLogs}` : "–";
  const behind = (status?.commitIndex ?? 0n) - member.appliedIndex;
  return String(behind > 0n ? behind : 0n);
}

/** clockText is how far the clock of a member is ahead of that of the leader. */
export function clockText({ health }: MemberRow): string {
  if (health?.clockOffsetMs === undefined) return "–";
  const ms = Number(health.clockOffsetMs);
  const size = Math.abs(ms);
  if (size < 1) return "0ms";
  return (ms < 0 ? "−" : "+") + (size < 1000 ? `${Math.round(size)}ms` : span(size));
}

export const findings: Record<Finding, string> = {
  [Finding.UNSPECIFIED]: "",
  [Finding.PENDING]: "not compared",
  [Finding.AGREES]: "agrees",
  [Finding.DIFFERS]: "differs: in quarantine",
  [Finding.DISPUTED]: "disputed: no majority agrees",
};

const day = 86_400_000;

/** Due is when something is to be renewed or repeated. */
export interface Due {
  text: string;
  late: boolean;
}

/** certificateDue says when the certificate of a member or its authority ends, whichever is first. */
export function certificateDue({ member }: MemberRow, now: number): Due {
  const ends = [member?.certificateEndsAt, member?.authorityEndsAt].flatMap((t) => (t ? [timestampMs(t)] : []));
  if (!ends.length) return { text: member?.reachable ? "none" : "–", late: false };
  const rest = Math.min(...ends) - now;
  const what = ends.length > 1 && ends[1]! < ends[0]! ? "authority " : "";
  return { text: rest > 0 ? `${what}ends in ${span(rest)}` : `${what}has ended`, late: rest < 14 * day };
}

/** backupDue says when a member last saved a backup, and whether the next one is late. */
export function backupDue({ member }: MemberRow, now: number): Due {
  if (!member?.backupIntervalMs) return { text: member?.reachable ? "none" : "–", late: false };
  const every = Number(member.backupIntervalMs);
  if (!member.lastBackupAt) return { text: `every ${span(every)}, none yet`, late: false };
  const age = now - timestampMs(member.lastBackupAt);
  return { text: `every ${span(every)}, last ${span(age)} ago`, late: age > 2 * every + 60_000 };
}
