// What surrounds every view: the way to the other views, and where and how old the shown state is.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { connection, position } from "../api/live";
import { waitingReads } from "../api/read";
import { useRight } from "../api/rights";
import { span } from "../format";
import { address, route } from "../router";
import { Account } from "./account";
import { Search } from "./search";

/** Entry is a view in the navigation. */
export interface Entry {
  view: string;
  title: string;
  /** The right on the cluster without which the entry is not shown. */
  needs?: string;
}

/** Shell is the frame of the page. */
export function Shell({ entries, children }: { entries: Entry[]; children: ComponentChildren }) {
  return (
    <>
      <a class="skip" href="#content" data-load>
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href={address("overview")}>
          Quorate
        </a>
        <nav aria-label="Views">
          {entries.map((e) =>
            e.needs ? <GuardedLink key={e.view} entry={e} needs={e.needs} /> : <ViewLink key={e.view} entry={e} />,
          )}
        </nav>
        <Search />
        <Account />
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <footer>
        <ConnectionBanner />
        <Source />
      </footer>
    </>
  );
}

function ViewLink({ entry }: { entry: Entry }) {
  return (
    <a href={address(entry.view)} aria-current={route.value.view === entry.view ? "page" : undefined}>
      {entry.title}
    </a>
  );
}

/** GuardedLink leads to a view only if the user has the right that it needs. */
function GuardedLink({ entry, needs }: { entry: Entry; needs: string }) {
  return useRight(needs, [{ tree: "", node: "" }])?.allowed ? <ViewLink entry={entry} /> : null;
}

/** ConnectionBanner tells when what is shown no longer follows the cluster. It grows upwards, so that nothing jumps. */
function ConnectionBanner() {
  const lost = connection.value === "lost";
  const leaderless = !lost && position.value && !position.value.hasLeader;
  return (
    <div class="banner" role="status">
      {lost && "The server does not answer. What is shown is the last that it said; the page reconnects by itself."}
      {leaderless && "The cluster has no leader now: what is shown may be old, and nothing can be changed."}
    </div>
  );
}

/** Source says which node answered, at which index, and how long ago it last told. */
function Source() {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const at = position.value;
  if (!at) return <span class="quiet">connecting…</span>;
  const age = Date.now() - at.heard;
  // The server tells at least every five seconds that it is there.
  const current = connection.value === "live" && !waitingReads.value && age < 6500;
  return (
    <span class="quiet" data-index={String(at.index)}>
      From node <bdi>{at.servedBy}</bdi>, index {String(at.index)}, revision {String(at.revision)}
      {current ? ", up to date" : `, ${span(age)} old`}
    </span>
  );
}
