// How much of a limit is used, as a bar and as text. The bar has only what counts; what waits stands beside it.
import type { ResourceUsage } from "#gen/tree_pb";
import { limitText, short } from "../format";

/** shareOf is the part of a limit that is used, from 0 to 1; absent without a limit. It serves for drawing alone. */
export function shareOf(usage: ResourceUsage): number | undefined {
  const limit = (usage.effective ?? usage.limit)?.value;
  if (limit?.case !== "amount" && limit?.case !== "advisory") return undefined;
  if (limit.value === 0n) return usage.subtree > 0n ? 1 : 0;
  return Math.min(1, Number(usage.subtree) / Number(limit.value));
}

/** Fullness is how full a limit is. */
export type Fullness = "free" | "nearly" | "full" | "over" | "unlimited";

/** fullness is the state of a bar, told by its pattern and its text and not by colour alone. */
export function fullness(usage: ResourceUsage): Fullness {
  const share = shareOf(usage);
  if (usage.over > 0n) return "over";
  if (share === undefined) return "unlimited";
  if (usage.headroom === 0n || share >= 1) return "full";
  return share >= 0.9 ? "nearly" : "free";
}

const words = { free: "", nearly: "nearly full", full: "full", over: "over", unlimited: "no limit" };

/** UsageBar shows one resource of a node. */
export function UsageBar({ usage, bare }: { usage: ResourceUsage; bare?: boolean }) {
  const state = fullness(usage);
  const share = shareOf(usage) ?? 0;
  const limit = limitText(usage.effective ?? usage.limit, usage.unit);
  const text = `${short(usage.subtree, usage.unit)} of ${limit}`;
  const word = state === "over" ? `over by ${short(usage.over, usage.unit)}` : words[state];
  return (
    <span class={`usage usage-${state}`}>
      {!bare && <span class="usage-resource">{usage.resource}</span>}
      <span class="bar" aria-hidden="true">
        <span class="bar-used" style={{ width: `${share * 100}%` }} />
      </span>
      <span class="usage-text">
        {text}
        {word && <em class="usage-word"> {word}</em>}
      </span>
    </span>
  );
}
