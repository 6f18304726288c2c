// Users, groups and applications at a node.
import { HolderKind } from "#gen/decision_pb";
import type { ListPrincipalsResponse, PrincipalNode } from "#gen/tree_pb";
import { api } from "../api/clients";
import { usePages } from "../api/pages";
import { amountText } from "../api/units";
import { PagedTable, type Column } from "../components/table";
import { boundOf } from "./limit_text";
import { Members } from "./members";

/** One user or group at the node. */
interface AtNode {
  name: string;
  at: PrincipalNode;
  users: string[];
}

const pageSize = 100;

/** How many pages of a tree are searched at once for those of one node. */
const searched = 10;

function usePrincipals(tree: string, node: string, kind: HolderKind) {
  const key = `principals ${kind} ${tree} ${node}`;
  return usePages<AtNode>(key, { tree, node, usage: true, configuration: true }, async (read, token, signal) => {
    const rows: AtNode[] = [];
    let page: ListPrincipalsResponse | undefined;
    for (let i = 0; i < searched && rows.length < pageSize && (!page || page.nextPageToken); i++) {
      const pageToken = page?.nextPageToken ?? token;
      page = await api.trees.listPrincipals({ tree, kind, pageSize, pageToken, read }, { signal });
      for (const p of page.principals) {
        const at = p.nodes.find((n) => n.node === node);
        if (at) rows.push({ name: p.name, at, users: p.users });
      }
    }
    return { rows, next: page?.nextPageToken ?? "", read: page?.read };
  });
}

/** useColumns has what is used of each limit. */
function columnsFor(tree: string, title: string): Column<AtNode>[] {
  return [
    { title, cell: (p) => <bdi>{p.name === "*" ? "all others together" : p.name}</bdi> },
    { title: "Uses", cell: (p) => <Amounts tree={tree} at={p.at} /> },
    { title: "Applications", cell: (p) => applicationsText(p.at) },
  ];
}

function applicationsText(at: PrincipalNode): string {
  const bound = boundOf(at.maxApplications);
  const most = bound === undefined ? "" : ` of ${bound}`;
  return at.applications.length || most ? `${at.applications.length}${most}` : "";
}

function Amounts({ tree, at }: { tree: string; at: PrincipalNode }) {
  const names = [...new Set([...Object.keys(at.used), ...Object.keys(at.limits)])].sort();
  return (
    <>
      {names.map((name) => {
        const used = at.used[name] ?? 0n;
        const limit = boundOf(at.limits[name]);
        const full = limit !== undefined && used >= limit;
        return (
          <bdi key={name} class={full ? "amount usage-none" : "amount"}>
            {name}={amountText(tree, name, used)}
            {limit !== undefined && ` of ${amountText(tree, name, limit)}`}
            {full && (used > limit ? " over" : " full")}
          </bdi>
        );
      })}
      {at.wildcard && <span class="quiet"> limit of all users</span>}
    </>
  );
}

/** Users lists the users who hold something here or are named in a limit. */
export function Users({ tree, node }: { tree: string; node: string }) {
  const pages = usePrincipals(tree, node, HolderKind.USER);
  return (
    <PagedTable
      caption="Users"
      columns={columnsFor(tree, "User")}
      pages={pages}
      keyOf={(p) => p.name}
      empty="No user holds anything here or is named in a limit."
    />
  );
}

/** Groups lists the groups that are counted here. */
export function Groups({ tree, node }: { tree: string; node: string }) {
  const pages = usePrincipals(tree, node, HolderKind.GROUP);
  const members: Column<AtNode> = {
    title: "Members",
    cell: (p) => <Members tree={tree} node={node} group={p.name} count={p.users.length} />,
  };
  return (
    <PagedTable
      caption="Groups"
      columns={[...columnsFor(tree, "Group"), members]}
      pages={pages}
      keyOf={(p) => p.name}
      empty="No group is counted here."
    />
  );
}

/** Applications lists the applications that run here, by user. */
export function Applications({ tree, node }: { tree: string; node: string }) {
  const pages = usePrincipals(tree, node, HolderKind.USER);
  const data = pages.data && {
    ...pages.data,
    rows: pages.data.rows.flatMap((p) => p.at.applications.map((name) => ({ name, user: p.name }))),
  };
  return (
    <PagedTable
      caption="Applications"
      columns={[
        { title: "Application", cell: (a) => <bdi>{a.name}</bdi> },
        { title: "User", cell: (a) => <bdi>{a.user}</bdi> },
      ]}
      pages={{ ...pages, data }}
      keyOf={(a) => `${a.user} ${a.name}`}
      empty="No application runs here."
    />
  );
}
