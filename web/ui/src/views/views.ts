// The views, in the order of the navigation.
import type { ComponentType } from "preact";
import { AllocationPage } from "./allocation";
import { Audit } from "./audit";
import { Cluster } from "./cluster";
import { Items } from "./items";
import { Leases } from "./leases";
import { NodePage } from "./node";
import { History } from "./history";
import { LimitRequests } from "./limit_requests";
import { Overview } from "./overview";
import { PlanPage } from "./plan_page";
import { Queue } from "./queue";
import { Tree } from "./tree";
import { WhatIf } from "./what_if";

/** View is a view and its address. */
export interface View {
  /** The part of the address after /ui/. */
  view: string;
  title: string;
  page: ComponentType;
  /** Reached by links from other views only. */
  hidden?: boolean;
  /** The right on the cluster without which the view has nothing to show. */
  needs?: string;
}

/** The views. */
export const views: View[] = [
  { view: "overview", title: "Overview", page: Overview },
  { view: "tree", title: "Trees", page: Tree },
  { view: "queue", title: "Queue", page: Queue },
  { view: "items", title: "Items", page: Items },
  { view: "leases", title: "Leases", page: Leases },
  { view: "what-if", title: "What if", page: WhatIf },
  { view: "plan", title: "Plan", page: PlanPage },
  { view: "history", title: "History", page: History },
  { view: "requests", title: "Limit requests", page: LimitRequests },
  { view: "audit", title: "Audit", page: Audit, needs: "audit.read" },
  { view: "cluster", title: "Cluster", page: Cluster, needs: "cluster.read" },
  { view: "node", title: "Node", page: NodePage, hidden: true },
  { view: "allocation", title: "Allocation", page: AllocationPage, hidden: true },
];
