// How rejected rows are shown.

/** A row that a job skipped or kept because it was at fault. */
export interface Reject {
  table: string;
  path?: string;
  line?: number;
  offset?: number;
  column?: string;
  reason: string;
  raw?: string;
  raw_base64?: string;
}

/** place says where a rejected row lies: its file and line, or its number in a source without files. */
export function place(r: Reject): string {
  if (r.path !== undefined && r.line !== undefined) return `${r.path}:${r.line}`;
  if (r.path !== undefined) return r.path;
  return r.offset === undefined ? "" : `row ${r.offset}`;
}

const longest = 2000;

/** record is a rejected row's text as one can read it: cut where it is long, what moves the line made visible. */
export function record(r: Reject): string {
  const text = r.raw ?? (r.raw_base64 === undefined ? "" : `base64: ${r.raw_base64}`);
  const shown = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return shown.replace(/[\u0000-\u001f\u007f]/g, (c) => String.fromCharCode(c === "\u007f" ? 0x2421 : 0x2400 + c.charCodeAt(0)));
}

/** rejected words a number of rejected rows. */
export function rejected(n: number, count: (n: number) => string): string {
  return `${count(n)} ${n === 1 ? "row" : "rows"} rejected`;
}
