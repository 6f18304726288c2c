// Tables of records.
import type { ComponentChildren } from "preact";
import type { Pages } from "../api/pages";
import { Answer, Empty } from "./states";

/** Column is one column of a table. */
export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** Aligned as a number. */
  number?: boolean;
}

interface TableProps<T> {
  /** Says what the rows are, for those who hear the page. */
  caption: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
}

/** Table shows rows. On a narrow screen each is a list; the roles keep what the style sheet would take from a table. */
export function Table<T>({ caption, columns, rows, keyOf }: TableProps<T>) {
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table class="list stack" role="table">
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.title} scope="col" class={c.number ? "number" : undefined}>
                {c.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map((c) => (
                <td key={c.title} role="cell" class={c.number ? "number" : undefined} data-title={c.title}>
                  {c.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface PagedTableProps<T> extends Omit<TableProps<T>, "rows"> {
  pages: Pages<T>;
  /** What it means that there is no row. */
  empty: ComponentChildren;
}

/** PagedTable shows the pages of a list that were read, and offers the next. */
export function PagedTable<T>({ pages, empty, ...table }: PagedTableProps<T>) {
  return (
    <Answer read={pages}>
      {(page) => (
        <>
          {page.rows.length ? <Table {...table} rows={page.rows} /> : <Empty>{empty}</Empty>}
          {pages.more && <button onClick={pages.more}>Show more</button>}
          {page.filtered && <p class="quiet">Only what you may see is listed.</p>}
        </>
      )}
    </Answer>
  );
}
