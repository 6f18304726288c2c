// Which rows of a long list are drawn: those on the screen and a few beside them.
import { useEffect, useRef, useState } from "preact/hooks";

/** The height of a row in pixels, unless a list has others; the style sheets have the same. */
export const rowHeight = 52;

/** The height of the header of the list. */
const headHeight = 34;

/** How many rows beyond the screen are drawn, so that scrolling shows no gap. */
const beyond = 8;

/** Window is the part of a list that is drawn. */
export interface Window {
  first: number;
  /** The one behind the last. */
  end: number;
  /** How many rows fit on the screen. */
  page: number;
}

/** windowOf is the part of a list at a place of its scroll box. */
export function windowOf(count: number, top: number, height: number, row = rowHeight): Window {
  const page = Math.max(1, Math.floor((height - headHeight) / row));
  const first = Math.max(0, Math.min(Math.floor(top / row), count - page) - beyond);
  return { first, end: Math.min(count, first + page + 2 * beyond + 1), page };
}

/** scrollFor is the place of the scroll box at which a row is on the screen, as near as possible to the present one. */
export function scrollFor(row: number, top: number, height: number): number {
  const above = row * rowHeight;
  const below = above + rowHeight - (height - headHeight);
  return Math.max(0, Math.max(below, Math.min(top, above)));
}

/** useWindow follows the scroll box of a list. */
export function useWindow(count: number, row = rowHeight) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  const show = (at: number) => {
    const element = box.current;
    if (element) element.scrollTop = scrollFor(at, element.scrollTop, element.clientHeight);
  };
  return { box, show, ...windowOf(count, view.top, view.height, row) };
}
