// One resource of a node: a bar, what is used and what is free in words, and what else is to be known.
import type { NodeUsage, ResourceUsage } from "#gen/tree_pb";
import { shareOf } from "../components/bar";
import { nodeName } from "../format";
import { beyondShare, fillOf, levelsAbove, marksOf, roomAbove, roomText, usedText } from "./words";

interface UsageCellProps {
  tree: string;
  node: string;
  usage: ResourceUsage;
  /** Nodes that are known, among which those above say why less is free than the limit leaves. */
  nodes?: NodeUsage[];
}

/** UsageCell is three lines: numbers, bar, marks. The state is told by a word and a pattern beside the colour. */
export function UsageCell({ tree, node, usage, nodes = [] }: UsageCellProps) {
  const state = fillOf(usage);
  const used = usage.subtree > 0n || state !== "unlimited";
  const room = usage.over > 0n ? "usage-over" : usage.headroom === 0n ? "usage-none" : "quiet";
  return (
    <span class="usage-cell" data-usage={`${nodeName(tree, node)}: ${usage.resource}`}>
      <span class={used ? "usage-numbers" : "usage-numbers quiet"}>
        <span class="usage-used">{usedText(usage)}</span>
        <span class={room}>{roomText(usage)}</span>
      </span>
      <FilledBar usage={usage} />
      <span class="usage-marks">
        {[roomAbove(usage, levelsAbove(tree, node, usage.resource, nodes)), ...marksOf(usage)].filter(Boolean).join(", ")}
      </span>
    </span>
  );
}

/** FilledBar is the bar alone. What is held beyond a share is hatched. */
export function FilledBar({ usage }: { usage: ResourceUsage }) {
  const beyond = beyondShare(usage);
  const own = Number(usage.subtree - beyond) / Number(usage.subtree);
  const width = beyond > 0n ? own : (shareOf(usage) ?? 0);
  return (
    <span class={`bar bar-${fillOf(usage)}`} aria-hidden="true">
      <span class="bar-used" style={{ width: `${width * 100}%` }} />
    </span>
  );
}
