// What surrounds every view: the way to the other views, and where and how old the shown state is.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { connection, position } from "../api/live";
import { span } from "../format";
import { address, route } from "../router";
import { Account } from "./account";
import { Search } from "./search";

/** Entry is a view in the navigation. */
export interface Entry {
  view: string;
  title: string;
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
          {entries.map((e) => (
            <a href={address(e.view)} aria-current={route.value.view === e.view ? "page" : undefined}>
              {e.title}
            </a>
          ))}
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
  return (
    <span class="quiet" data-index={String(at.index)}>
      From node <bdi>{at.servedBy}</bdi>, index {String(at.index)}, revision {String(at.revision)}
      {age < 8000 ? ", up to date" : `, ${span(age)} old`}
    </span>
  );
}
