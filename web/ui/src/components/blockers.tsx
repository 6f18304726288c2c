// Who is in the way at one limit: the requests that come first, and the allocations that hold what is missing.
import type { Blocker, HolderGroup, LevelHolders } from "#gen/decision_pb";
import type { ComponentChildren } from "preact";
import { amountText } from "../api/units";
import { AllocationLink, NodeLink } from "./names";
import { Ago, Remaining } from "./time";

/** Ahead lists the requests that wait for the same and come first; nothing if there are none. */
export function Ahead({ level: l }: { level: LevelHolders }) {
  if (!l.blockers.length && l.otherBlockers === 0n) return null;
  return (
    <Who title="Before it in the queue:">
      {l.blockers.map((b) => (
        <BlockerLine key={b.id} blocker={b} level={l}>
          , waits for <Ago ledgerMs={b.beganLedgerMs} />
        </BlockerLine>
      ))}
      <More count={l.otherBlockers} />
    </Who>
  );
}

/** HeldBy lists the largest allocations that hold what is missing; nothing if there are none. */
export function HeldBy({ level: l }: { level: LevelHolders }) {
  if (!l.groups.length && !l.allocations.length && l.others === 0n) return null;
  return (
    <>
      {hasSums(l) && (
        <Who title="Held in all:">
          {l.groups.map((g) => (
            <GroupLine key={`${g.node} ${g.user} ${g.owner}`} group={g} level={l} />
          ))}
          {l.others > 0n && (
            <li>
              <Amount level={l} amount={l.others} />
              <span class="quiet">others</span>
            </li>
          )}
        </Who>
      )}
      {l.allocations.length > 0 && (
        <Who title="Held by:">
          {l.allocations.map((b) => (
            <BlockerLine key={b.id} blocker={b} level={l}>
              , for <Ago ledgerMs={b.beganLedgerMs} />
              {b.expiresLedgerMs > 0n && (
                <>
                  , ends in <Remaining ledgerMs={b.expiresLedgerMs} />
                </>
              )}
            </BlockerLine>
          ))}
          <More count={l.otherAllocations} />
        </Who>
      )}
    </>
  );
}

/** hasSums is false if the sums by user and node would only repeat the list of allocations. */
function hasSums(l: LevelHolders): boolean {
  return l.others > 0n || l.otherAllocations > 0n || l.groups.length !== l.allocations.length;
}

function Who({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="who">
      <span class="quiet">{title}</span>
      <ul>{children}</ul>
    </div>
  );
}

interface BlockerProps {
  blocker: Blocker;
  level: LevelHolders;
  /** Since when, and until when. */
  children: ComponentChildren;
}

function BlockerLine({ blocker: b, level, children }: BlockerProps) {
  return (
    <li>
      {b.amount > 0n && <Amount level={level} amount={b.amount} />}
      <AllocationLink of={b} /> at <NodeLink tree={level.tree} node={b.node} />
      <Named word="user" name={b.user} />
      <Named word="application" name={b.application} />
      <Named word="owner" name={b.owner !== b.user ? b.owner : ""} />
      {b.position > 0n && `, position ${b.position}`}
      {children}
      {b.alternative > 0 && ` (alternative ${b.alternative})`}
    </li>
  );
}

function GroupLine({ group: g, level }: { group: HolderGroup; level: LevelHolders }) {
  return (
    <li>
      <Amount level={level} amount={g.amount} />
      at <NodeLink tree={level.tree} node={g.node} />
      <Named word="user" name={g.user} />
      <Named word="owner" name={g.owner !== g.user ? g.owner : ""} />
      {g.claims > 1 && <span class="quiet"> ({g.claims} claims)</span>}
    </li>
  );
}

function Amount({ level, amount }: { level: LevelHolders; amount: bigint }) {
  return (
    <>
      <span class="amount">{amountText(level.tree, level.resource, amount)}</span>{" "}
    </>
  );
}

function Named({ word, name }: { word: string; name: string }) {
  return name ? (
    <>
      , {word} <bdi>{name}</bdi>
    </>
  ) : null;
}

function More({ count }: { count: bigint }) {
  return count > 0n ? <li class="quiet">and {String(count)} more</li> : null;
}
