// The levels of a tree that are open: each is read when it is opened, and again while it is seen and something at its
// node changed.
import { signal } from "@preact/signals";
import type { GetUsageResponse, NodeUsage } from "#gen/tree_pb";
import { api } from "../api/clients";
import type { Failure } from "../api/failure";
import { listen } from "../api/live";
import { fresh, Reader } from "../api/read";

/** Level is the nodes directly below one. */
export interface Level {
  /** The node itself; absent if the user sees nothing of it, and before the first answer. */
  top?: NodeUsage;
  /** Absent before the first answer. */
  nodes?: NodeUsage[];
  /** More nodes follow. */
  more: boolean;
  /** Only nodes that the user may see. */
  filtered: boolean;
  failure?: Failure;
}

/** How many nodes are fetched at once. */
const pageSize = 1000;

/** OpenLevel keeps one level up to date. */
class OpenLevel {
  private readonly reader: Reader<Level>;
  private readonly ignore: () => void;
  private pages = 1;
  private seen = true;
  private outdated = false;

  constructor(
    private readonly tree: string,
    private readonly path: string,
    show: (level: Level) => void,
  ) {
    const empty = { more: false, filtered: false };
    this.reader = new Reader<Level>(
      path,
      (s) => this.read(s),
      ({ data, failure }) => show({ ...(data ?? empty), failure }),
    );
    const interest = { tree, node: path, usage: true, queue: true, configuration: true };
    this.ignore = listen(interest, () => this.changed());
    this.reader.request();
  }

  stop(): void {
    this.ignore();
    this.reader.stop();
  }

  more(): void {
    this.pages++;
    this.reader.request();
  }

  see(seen: boolean): void {
    this.seen = seen;
    if (seen && this.outdated) this.changed();
  }

  private changed(): void {
    this.outdated = !this.seen;
    if (this.seen) this.reader.request();
  }

  private async read(signal: AbortSignal): Promise<Level> {
    const nodes: NodeUsage[] = [];
    let page: GetUsageResponse | undefined;
    for (let i = 0; i < this.pages && (!page || page.nextPageToken); i++) {
      const ask = { tree: this.tree, node: this.path, subtree: true, maxDepth: 1, countWaiting: true };
      page = await api.trees.getUsage({ ...ask, pageSize, pageToken: page?.nextPageToken ?? "", read: fresh() }, { signal });
      nodes.push(...page.nodes);
    }
    const top = nodes[0]?.node === this.path ? nodes.shift() : undefined;
    return { top, nodes, more: !!page?.nextPageToken, filtered: !!page?.filtered };
  }
}

/** Levels are the open levels of one tree. */
export class Levels {
  /** What is known of them, by the path of their node. */
  readonly known = signal<ReadonlyMap<string, Level>>(new Map());
  private readonly open = new Map<string, OpenLevel>();

  constructor(readonly tree: string) {}

  /** setOpen opens levels, and closes all others. */
  setOpen(paths: Iterable<string>): void {
    const wanted = new Set(paths);
    for (const [path, level] of this.open) {
      if (wanted.has(path)) continue;
      level.stop();
      this.open.delete(path);
    }
    this.known.value = new Map([...this.known.value].filter(([path]) => wanted.has(path)));
    for (const path of wanted) {
      if (!this.open.has(path)) this.open.set(path, new OpenLevel(this.tree, path, (l) => this.show(path, l)));
    }
  }

  /** setSeen says of which levels a row is on the screen: only these are read again. */
  setSeen(paths: ReadonlySet<string>): void {
    for (const [path, level] of this.open) level.see(paths.has(path));
  }

  /** more fetches one page more of a level. */
  more(path: string): void {
    this.open.get(path)?.more();
  }

  private show(path: string, level: Level): void {
    if (this.open.has(path)) this.known.value = new Map(this.known.value).set(path, level);
  }
}
