// Names of things, each a link to its view. Names are hostile text: they are isolated in their direction and never
// become markup.
import { defaultNamespace, type Named } from "../requests/name";
import { address } from "../router";

/** NodeLink leads to a node. */
export function NodeLink({ tree, node, short }: { tree: string; node: string; short?: boolean }) {
  const last = node ? node.slice(node.lastIndexOf("/") + 1) : tree;
  return (
    <a href={address("node", { tree, node })}>
      <bdi>{short ? last : node ? `${tree}:${node}` : tree}</bdi>
    </a>
  );
}

/** The address of an allocation; without a namespace it is in that of the caller. */
export const allocationAddress = ({ namespace, id }: Named) =>
  address("allocation", namespace ? { id, namespace } : { id });

/**
 * AllocationLink leads to an allocation or a waiting request. It shows the namespace unless that is the default, or that
 * of what stands beside it.
 */
export function AllocationLink({ of, beside = defaultNamespace }: { of: Named; beside?: string }) {
  if (!of.id) return "another allocation";
  const link = (
    <a href={allocationAddress(of)}>
      <bdi>{of.id}</bdi>
    </a>
  );
  if (!of.namespace || of.namespace === beside) return link;
  return (
    <>
      {link} of <bdi>{of.namespace}</bdi>
    </>
  );
}

/** Cause is the allocation that caused an event, or who did; nothing if neither is known. */
export function Cause({ of: e }: { of: { by?: Named; actor: string; namespace: string } }) {
  return e.by ? <AllocationLink of={e.by} beside={e.namespace} /> : <bdi>{e.actor}</bdi>;
}

/** NameList writes names with commas between. */
export function NameList({ names }: { names: string[] }) {
  return names.map((name, i) => (
    <>
      {i > 0 && ", "}
      <bdi key={name}>{name}</bdi>
    </>
  ));
}
