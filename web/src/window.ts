// Which rows of a long list are near the screen.

/** A View is a list of rows of one height, one of which may be open, and the stretch of it that is seen, in px from its top. */
export interface View {
  count: number;
  height: number;
  open: number; // row that is open; -1: none
  extra: number; // height of what it opens to
  top: number;
  bottom: number;
  beyond: number; // rows more on both sides
}

/** visible gives the rows to draw, to not included; an empty list has none. */
export function visible(v: View): { from: number; to: number } {
  const index = (y: number) => {
    const below = (v.open + 1) * v.height;
    if (v.open < 0 || y <= below) return y / v.height;
    return y <= below + v.extra ? v.open + 0.5 : (y - v.extra) / v.height;
  };
  const from = Math.floor(index(Math.max(0, v.top))) - v.beyond;
  const to = Math.ceil(index(Math.max(0, v.bottom))) + v.beyond;
  const last = Math.max(0, Math.min(v.count, to));
  return { from: Math.max(0, Math.min(from, last)), to: last };
}
