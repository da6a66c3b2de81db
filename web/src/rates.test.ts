import { describe, expect, it } from "vitest";
import { next } from "./rates";

const reading = (rows_in: number | undefined, attempt = 1) => ({ id: "job", attempt, rows_in });

describe("rates", () => {
  it("takes a rate over a second and a half at least", () => {
    const first = next(undefined, reading(0), 0);
    expect(next(first, reading(500), 1000)).toBe(first);
    expect(next(first, reading(4000), 2000)?.rates).toEqual([2000]);
  });
  it("begins anew with an attempt, and when the count falls", () => {
    let seen = next(undefined, reading(5000), 0);
    seen = next(seen, reading(100, 2), 2000);
    expect(seen).toMatchObject({ rows: 100, rates: [] });
    seen = next(seen, reading(10, 2), 4000);
    expect(seen).toMatchObject({ rows: 10, rates: [] });
  });
  it("takes nothing from a reading without rows", () => {
    expect(next(undefined, reading(undefined), 0)).toBeUndefined();
    const seen = next(undefined, reading(7), 0);
    expect(next(seen, reading(undefined, 2), 2000)).toBe(seen);
  });
  it("keeps the last forty", () => {
    let seen = next(undefined, reading(0), 0);
    for (let i = 1; i <= 60; i++) seen = next(seen, reading(i * 2000), i * 2000);
    expect(seen?.rates).toHaveLength(40);
  });
});
