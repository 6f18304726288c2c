// A part of a view.
import type { ComponentChildren } from "preact";

/** Part is a part of a view with a heading. */
export function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {children}
    </section>
  );
}
