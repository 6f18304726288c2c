// Names of things, each a link to its view. Names are hostile text: they are isolated in their direction and never
// become markup.
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

/** AllocationLink leads to an allocation or a waiting request. */
export function AllocationLink({ id }: { id: string }) {
  return (
    <a href={address("allocation", { id })}>
      <bdi>{id}</bdi>
    </a>
  );
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
