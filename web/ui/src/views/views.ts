// The views, in the order of the navigation.
import type { ComponentType } from "preact";
import type { Entry } from "../components/navigation";
import { AllocationPage } from "./allocation";
import { Audit } from "./audit";
import { Cluster } from "./cluster";
import { Items } from "./items";
import { Leases } from "./leases";
import { Mine } from "./mine";
import { NodePage } from "./node";
import { History } from "./history";
import { LimitRequests } from "./limit_requests";
import { Overview } from "./overview";
import { PlanPage } from "./plan_page";
import { Queue } from "./queue";
import { Tree } from "./tree";
import { WhatIf } from "./what_if";

/** View is a view and its address: /ui/ and its name. */
export interface View {
  view: string;
  title: string;
  page: ComponentType;
  /** Its place in the navigation; absent for what only links of other views reach. */
  entry?: Omit<Entry, "view" | "title">;
}

/** The views. */
export const views: View[] = [
  { view: "overview", title: "Overview", page: Overview, entry: { group: "Look", icon: "overview", about: "figures, and what needs attention" } },
  { view: "mine", title: "My work", page: Mine, entry: { group: "Look", icon: "account", about: "my nodes, leases and requests", needsUser: true } },
  { view: "tree", title: "Trees", page: Tree, entry: { group: "Look", icon: "tree", about: "nodes, limits and use" } },
  { view: "queue", title: "Queue", page: Queue, entry: { group: "Look", icon: "queue", about: "who waits, and for whom" } },
  { view: "leases", title: "Leases", page: Leases, entry: { group: "Look", icon: "leases", about: "what ends soon" } },
  { view: "items", title: "Items", page: Items, entry: { group: "Look", icon: "items", about: "named things and their states" } },
  { view: "what-if", title: "What if", page: WhatIf, entry: { group: "Ask", icon: "whatIf", about: "would a request be granted" } },
  {
    view: "requests",
    title: "Limit requests",
    page: LimitRequests,
    entry: { group: "Ask", icon: "requests", about: "ask for another limit" },
  },
  { view: "plan", title: "Plan", page: PlanPage, entry: { group: "Change", icon: "plan", about: "change the configuration", needsTree: "config.read" } },
  {
    view: "history",
    title: "History",
    page: History,
    entry: { group: "Change", icon: "history", about: "revisions, and roll back" },
  },
  { view: "cluster", title: "Cluster", page: Cluster, entry: { group: "Operate", icon: "cluster", about: "members and health", needs: "cluster.read" } },
  { view: "audit", title: "Audit", page: Audit, entry: { group: "Operate", icon: "audit", about: "who changed what", needs: "audit.read" } },
  { view: "node", title: "Node", page: NodePage },
  { view: "allocation", title: "Allocation", page: AllocationPage },
];

/** The entries of the navigation. */
export const entries: Entry[] = views.flatMap(({ view, title, entry }) => (entry ? [{ view, title, ...entry }] : []));
