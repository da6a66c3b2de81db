import { describe, expect, it } from "vitest";
import { compareValues, LiveResult, sortRows } from "./live";

describe("LiveResult", () => {
  it("follows inserts, updates and deletes", () => {
    const live = new LiveResult();
    live.apply({ op: "+I", row: { b: "buy", n: 1 } });
    live.apply({ op: "+I", row: { b: "pv", n: 1 } });
    live.apply({ op: "-U", row: { b: "buy", n: 1 } });
    live.apply({ op: "+U", row: { b: "buy", n: 2 } });
    live.apply({ op: "-D", row: { b: "pv", n: 1 } });
    expect(live.rows()).toEqual([{ b: "buy", n: 2 }]);
    expect(live.changes).toBe(5);
  });
  it("counts equal rows", () => {
    const live = new LiveResult();
    live.apply({ op: "+I", row: { n: 1 } });
    live.apply({ op: "+I", row: { n: 1 } });
    expect(live.rows()).toHaveLength(2);
    live.apply({ op: "-D", row: { n: 1 } });
    expect(live.rows()).toHaveLength(1);
  });
  it("begins anew", () => {
    const live = new LiveResult();
    live.apply({ op: "+I", row: { n: 1 } });
    live.reset();
    expect(live.rows()).toEqual([]);
  });
});

describe("order", () => {
  it("puts NULL last and numbers by value", () => {
    expect([10, null, 9].sort(compareValues)).toEqual([9, 10, null]);
    expect(compareValues("a", "b")).toBeLessThan(0);
  });
  it("sorts by a column in both directions", () => {
    const rows = [{ n: 1 }, { n: 3 }, { n: 2 }];
    expect(sortRows(rows, "n", true).map((r) => r.n)).toEqual([3, 2, 1]);
    expect(sortRows(rows, undefined, true)).toBe(rows);
  });
});
