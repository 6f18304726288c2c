// What surrounds every view: the way to the other views, and where and how old the shown state is.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { AccessMode } from "#gen/access_pb";
import { api } from "../api/clients";
import { connection, position } from "../api/live";
import { useRead, waitingReads } from "../api/read";
import { treeNames, treesAreKnown } from "../api/units";
import { span } from "../format";
import { route } from "../router";
import { Account } from "./account";
import { Breadcrumbs } from "./breadcrumbs";
import { Icon } from "./icon";
import { Brand, drawer, Navigation, useOpenEntries, type Entry } from "./navigation";
import { Search } from "./search";
import { SignIn } from "./sign_in";

/** Shell is the frame of the page. */
export function Shell({ entries: all, children }: { entries: Entry[]; children: ComponentChildren }) {
  const entries = useOpenEntries(all);
  const title = all.find((e) => e.view === route.value.view)?.title ?? "Quorate";
  return (
    <>
      <a class="skip" href="#content" data-load>
        Skip to content
      </a>
      <Navigation entries={entries} />
      <header class="top">
        <button class="menu bare" popovertarget={drawer} aria-label="Views">
          <Icon name="menu" />
        </button>
        <Brand />
        <Search entries={entries} />
        <Account />
      </header>
      <main id="content" tabIndex={-1}>
        <Breadcrumbs />
        {useIsClosed() ? <Closed title={title} /> : children}
      </main>
      <footer>
        <ConnectionBanner />
        <Source />
      </footer>
    </>
  );
}

/** useIsClosed is true if the cluster shows nothing to callers who are not signed in, and the user is not. */
function useIsClosed(): boolean {
  const who = useRead("who am I", { configuration: true }, (read, signal) => api.identity.whoAmI({ read }, { signal }));
  const { data } = who;
  return !!data && !data.user && data.mode === AccessMode.GUARDED && treesAreKnown() && !treeNames().length;
}

/** Closed stands for every view of a cluster that is closed to the user. */
function Closed({ title }: { title: string }) {
  return (
    <>
      <h1>{title}</h1>
      <SignIn why="Trees of this cluster are shown to those who sign in." />
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
  if (!at) return <span class="quiet live live-old">Connecting…</span>;
  const age = Date.now() - at.heard;
  // The server tells at least every five seconds that it is there.
  const current = connection.value === "live" && !waitingReads.value && age < 6500;
  const mark = current ? "" : connection.value === "lost" ? " live-lost" : " live-old";
  return (
    <span class={`quiet live${mark}`} data-index={String(at.index)}>
      {current ? "Up to date" : `${span(age)} old`} · node <bdi>{at.servedBy}</bdi> · index {String(at.index)} · revision{" "}
      {String(at.revision)}
    </span>
  );
}
