import { describe, expect, it } from "vitest";
import { next } from "./rates";

const reading = (rows_in_per_second: number | undefined) => ({ id: "job", rows_in_per_second });

describe("rates", () => {
  it("takes one every second and a half at most", () => {
    const first = next(undefined, reading(5), 0);
    expect(next(first, reading(6), 1000)).toBe(first);
    expect(next(first, reading(7), 2000)?.rates).toEqual([5, 7]);
  });
  it("takes nothing from a reading without one", () => {
    expect(next(undefined, reading(undefined), 0)).toBeUndefined();
    const seen = next(undefined, reading(7), 0);
    expect(next(seen, reading(undefined), 2000)).toBe(seen);
  });
  it("keeps the last forty", () => {
    let seen = next(undefined, reading(0), 0);
    for (let i = 1; i <= 60; i++) seen = next(seen, reading(i), i * 2000);
    expect(seen?.rates).toHaveLength(40);
    expect(seen?.rates.at(-1)).toBe(60);
  });
});
