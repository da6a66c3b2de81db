import { type ReactNode, useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from "react";
import { visible } from "../window";

const beyond = 12; // rows drawn above and below what is seen

/**
 * Rows is the body of a table of any length: only what is near the screen is drawn, the
 * rest is empty space of the same height. One row may be open: what it opens to follows
 * it and may be of any height.
 */
export function Rows<T>({ rows, keyOf, row, columns, open, detail, onEnd, onAway }: { rows: T[]; keyOf: (item: T) => string | number; row: (item: T) => ReactNode; columns: number; open?: number; detail?: ReactNode; onEnd?: () => void; onAway?: (away: boolean) => void }) {
  const body = useRef<HTMLTableSectionElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(33);
  const [extra, setExtra] = useState(0);
  const [seen, setSeen] = useState({ from: 0, to: 40 });
  const opened = open !== undefined && open >= 0 && open < rows.length;
  const at = opened ? open : -1;

  useEffect(() => {
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const next = visible({ count: rows.length, height, open: at, extra, top: -top, bottom: innerHeight - top, beyond });
      setSeen((s) => (s.from === next.from && s.to === next.to ? s : next));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [rows.length, height, at, extra]);

  useLayoutEffect(() => {
    const first = body.current?.querySelector<HTMLElement>("tr[data-row]");
    const h = first?.getBoundingClientRect().height ?? 0;
    if (h > 0 && Math.abs(h - height) > 0.2) setHeight(h);
  }, [height, seen, rows.length]);

  const shown = opened && at >= seen.from && at < seen.to;
  useEffect(() => {
    const element = inner.current;
    if (!shown || !element) return;
    const watch = new ResizeObserver(() => setExtra(element.closest("tr")?.getBoundingClientRect().height ?? 0));
    watch.observe(element);
    return () => watch.disconnect();
  }, [shown, at]);

  // What is opened from elsewhere, by a bar or an address, is brought to the screen.
  const item = opened ? rows[at] : undefined;
  const key = item && keyOf(item);
  const place = useRef(0);
  place.current = at * height;
  useEffect(() => {
    if (key === undefined) return;
    const y = (body.current?.getBoundingClientRect().top ?? 0) + place.current;
    if (y < 0 || y > innerHeight - 160) scrollBy(0, y - 120);
  }, [key]);

  const ending = seen.to >= rows.length - beyond;
  useEffect(() => {
    if (ending) onEnd?.();
  }, [ending, rows.length, onEnd]);
  const away = seen.from > 0;
  useEffect(() => onAway?.(away), [away, onAway]);

  const above = seen.from * height + (opened && at < seen.from ? extra : 0);
  const below = Math.max(0, rows.length - seen.to) * height + (opened && at >= seen.to ? extra : 0);
  const drawn: ReactNode[] = [];
  for (let i = seen.from; i < Math.min(seen.to, rows.length); i++) {
    drawn.push(row(rows[i]!));
    if (i === at) {
      drawn.push(
        <tr key="opened" className="opened">
          <td colSpan={columns}>
            <div ref={inner}>{detail}</div>
          </td>
        </tr>,
      );
    }
  }
  return (
    <tbody ref={body}>
      {above > 0 && <Space height={above} columns={columns} />}
      {drawn}
      {below > 0 && <Space height={below} columns={columns} />}
    </tbody>
  );
}

function Space({ height, columns }: { height: number; columns: number }) {
  return (
    <tr aria-hidden="true" className="space">
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}

const small = "(max-width: 720px)";

/** useNarrow reports whether the screen is a small one, on which tables have fewer columns. */
export function useNarrow(): boolean {
  return useSyncExternalStore(
    (changed) => {
      const query = matchMedia(small);
      query.addEventListener("change", changed);
      return () => query.removeEventListener("change", changed);
    },
    () => matchMedia(small).matches,
  );
}
