// The limits that a request passes or that stop it, as a table.
import type { ExplainResponse } from "#gen/allocation_pb";
import { TenantsSee } from "#gen/common_pb";
import { LevelVerdict, type LevelCheck } from "#gen/decision_pb";
import { amountText } from "../api/units";
import { limitName } from "../requests/violation";
import { NodeLink } from "./names";
import { Table } from "./table";

const verdicts: Record<LevelVerdict, string> = {
  [LevelVerdict.UNSPECIFIED]: "",
  [LevelVerdict.FITS]: "fits",
  [LevelVerdict.EXCEEDED]: "too little",
  [LevelVerdict.BORROWS]: "borrows",
  [LevelVerdict.MAKES_ROOM]: "others give way",
  [LevelVerdict.UNCHECKED]: "not checked",
};

const hides = (l: LevelCheck) => l.seen !== undefined;
const text = (l: LevelCheck, n: bigint) => amountText(l.tree, l.resource, n);

/** Levels shows every level of an explanation, in its order. */
export function Levels({ answer }: { answer: ExplainResponse }) {
  if (!answer.levels.length) return null;
  const keys = new Map(answer.levels.map((l, i) => [l, String(i)]));
  return (
    <>
      <h2>Each limit that it passes</h2>
      <Table
        caption="Limits that the request passes"
        rows={answer.levels}
        keyOf={(l) => keys.get(l)!}
        columns={columns}
      />
      {answer.levelsCut && <p class="quiet">It passes more limits than are listed.</p>}
    </>
  );
}

const columns = [
  { title: "Level", cell: levelOf },
  { title: "Limit of", cell: (l: LevelCheck) => <bdi>{limitName(l)}</bdi> },
  { title: "Limit", cell: limitOf, number: true },
  { title: "Used", cell: (l: LevelCheck) => (hides(l) ? "hidden" : text(l, l.used)), number: true },
  { title: "Asked", cell: (l: LevelCheck) => text(l, l.requested), number: true },
  { title: "Left", cell: (l: LevelCheck) => (l.limit === undefined ? "" : text(l, l.left)), number: true },
  { title: "Verdict", cell: verdictOf },
];

function levelOf(l: LevelCheck) {
  return (
    <>
      {l.alternative > 0 && `${l.alternative}. `}
      {l.seen === TenantsSee.NOTHING ? "a level above" : <NodeLink tree={l.tree} node={l.node} />}
    </>
  );
}

function limitOf(l: LevelCheck): string {
  if (hides(l)) return "hidden";
  if (l.limit === undefined) return "no limit";
  return (l.advisory ? "advisory " : "") + text(l, l.limit);
}

function verdictOf(l: LevelCheck) {
  const word = verdicts[l.verdict];
  return l.verdict === LevelVerdict.EXCEEDED ? <strong>{word}</strong> : word;
}
