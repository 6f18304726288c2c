// What the leader and a member itself say of the member.
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Role, Seat, type Member } from "#gen/admin/cluster_pb";
import { Finding } from "#gen/admin/upkeep_pb";
import { span } from "../format";

const roles = {
  [Role.UNSPECIFIED]: "",
  [Role.UNKNOWN]: "",
  [Role.FOLLOWER]: "follower",
  [Role.CANDIDATE]: "candidate",
  [Role.LEADER]: "leader",
};

/** roleText is the role of a node in the log, and whether it votes. */
export function roleText(m: Member): string {
  if (m.seat === Seat.WAITING) return "waits to be added";
  if (m.seat === Seat.NONE) return "not a member";
  const role = roles[m.role] || "unknown role";
  return m.seat === Seat.VOTER ? role : `${role}, no vote`;
}

/** Health of a node: "good", "bad", or "unknown" while no leader tells. */
export type Health = { word: string; kind: "good" | "bad" | "unknown" };

/** healthOf is how the leader finds a node, or what its status says. */
export function healthOf({ healthy, problem, reachable }: Member): Health {
  if (healthy) return { word: problem ? `healthy, but ${problem}` : "healthy", kind: problem ? "bad" : "good" };
  if (problem) return { word: problem, kind: "bad" };
  return { word: reachable ? "not healthy" : "does not answer", kind: "bad" };
}

/** behindText is how many entries that are committed a member has not applied. */
export function behindText(committed: bigint, m: Member): string {
  if (!m.reachable) return "–";
  const behind = committed - m.appliedIndex;
  return String(behind > 0n ? behind : 0n);
}

/** clockText is how far the clock of a member is ahead of that of the leader. */
export function clockText(m: Member): string {
  if (m.clockOffsetMs === undefined) return "–";
  const ms = Number(m.clockOffsetMs);
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
export function certificateDue(member: Member, now: number): Due {
  const ends = [member.certificateEndsAt, member.authorityEndsAt].flatMap((t) => (t ? [timestampMs(t)] : []));
  if (!ends.length) return { text: member.reachable ? "none" : "–", late: false };
  const rest = Math.min(...ends) - now;
  const what = ends.length > 1 && ends[1]! < ends[0]! ? "authority " : "";
  return { text: rest > 0 ? `${what}ends in ${span(rest)}` : `${what}has ended`, late: rest < 14 * day };
}

/** backupDue says when a member last saved a backup, and whether the next one is late. */
export function backupDue(member: Member, now: number): Due {
  if (!member.backupIntervalMs) return { text: member.reachable ? "none" : "–", late: false };
  const every = Number(member.backupIntervalMs);
  if (!member.lastBackupAt) return { text: `every ${span(every)}, none yet`, late: false };
  const age = now - timestampMs(member.lastBackupAt);
  return { text: `every ${span(every)}, last ${span(age)} ago`, late: age > 2 * every + 60_000 };
}
