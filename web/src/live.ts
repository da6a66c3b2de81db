// The live result of a job: a table that a stream of changes keeps current.

/** A change of the result, as the server's events carry it. */
export interface Change {
  op: "+I" | "-U" | "+U" | "-D";
  row: Row;
}

/** A row of a result: column name to JSON value. */
export type Row = Record<string, unknown>;

/**
 * A LiveResult holds the rows that the changes so far left. Rows have no key here, so
 * it counts equal rows: an old row (-U, -D) takes away one that is equal to it.
 */
export class LiveResult {
  private counts = new Map<string, { row: Row; n: number }>();
  changes = 0;

  /** apply takes in one change. */
  apply(change: Change): void {
    this.changes++;
    const key = JSON.stringify(change.row);
    const held = this.counts.get(key);
    if (change.op === "+I" || change.op === "+U") {
      if (held) held.n++;
      else this.counts.set(key, { row: change.row, n: 1 });
      return;
    }
    if (!held) return;
    held.n--;
    if (held.n === 0) this.counts.delete(key);
  }

  /** reset forgets everything: the stream begins anew. */
  reset(): void {
    this.counts.clear();
  }

  /** rows lists the rows, equal ones as often as they are there. */
  rows(): Row[] {
    const out: Row[] = [];
    for (const { row, n } of this.counts.values()) for (let i = 0; i < n; i++) out.push(row);
    return out;
  }
}

/** compareValues orders JSON values as SQL does: numbers by value, text by code point, null last. */
export function compareValues(a: unknown, b: unknown): number {
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
  if (b === null || b === undefined) return -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  const x = String(a);
  const y = String(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

/** sortRows returns the rows ordered by a column. */
export function sortRows(rows: Row[], column: string | undefined, descending: boolean): Row[] {
  if (column === undefined) return rows;
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => sign * compareValues(a[column], b[column]));
}
