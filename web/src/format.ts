// How numbers, sizes and times are written, in one place.

const thousands = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** count writes a whole number with thousands separated: 12345 → "12,345". */
export function count(n: number): string {
  return thousands.format(n);
}

/** countIfKnown writes "–" for a number that is not known. */
export function countIfKnown(n: number | undefined): string {
  return n === undefined ? "–" : count(n);
}

/** bytes writes a size in binary units: 1536 → "1.5 KiB". */
export function bytes(n: number): string {
  let value = n;
  let unit = "B";
  for (const next of ["KiB", "MiB", "GiB", "TiB"]) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return unit === "B" ? `${n} B` : `${value.toFixed(1)} ${unit}`;
}

/** rate writes rows per second in three digits or so: 1234567 → "1.23 M". */
export function rate(perSecond: number): string {
  if (!Number.isFinite(perSecond) || perSecond < 0) return "–";
  if (perSecond >= 1e6) return `${(perSecond / 1e6).toFixed(2)} M`;
  if (perSecond >= 1e4) return `${(perSecond / 1e3).toFixed(1)} k`;
  return thousands.format(perSecond);
}

/** millis writes a duration given in milliseconds: 61500 → "1 min 2 s". */
export function millis(ms: number): string {
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 10_000) return `${thousands.format(ms)} ms`;
  const s = Math.round(ms / 1000);
  return s < 60 ? `${s} s` : `${Math.floor(s / 60)} min ${s % 60} s`;
}

/** ago says how long before now a time was: "12 s ago". */
export function ago(iso: string | undefined | null, now: number): string {
  if (!iso) return "–";
  const s = Math.floor((now - Date.parse(iso)) / 1000);
  if (s < 1) return "now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

/** span writes how long something is in one word or two: "less than 1 s", "4 min", "3 h". */
export function span(ms: number): string {
  const s = Math.floor(ms / 1000);
  if (s < 1) return "less than 1 s";
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

/** exact writes a time to the millisecond, in UTC or in the reader's zone. */
export function exact(iso: string | undefined | null, utc: boolean): string {
  if (!iso) return "";
  const t = new Date(iso);
  if (utc) return t.toISOString().replace("T", " ").replace("Z", " UTC");
  const local = new Date(t.getTime() - t.getTimezoneOffset() * 60_000);
  return local.toISOString().replace("T", " ").replace("Z", "");
}
