import { describe, expect, it } from "vitest";
import { ago, bytes, count, exact, millis, rate, span } from "./format";

describe("format", () => {
  it("separates thousands", () => expect(count(1234567)).toBe("1,234,567"));
  it("writes sizes in binary units", () => {
    expect(bytes(0)).toBe("0 B");
    expect(bytes(1023)).toBe("1023 B");
    expect(bytes(1536)).toBe("1.5 KiB");
    expect(bytes(5 * 1024 ** 3)).toBe("5.0 GiB");
  });
  it("writes rates short", () => {
    expect(rate(999)).toBe("999");
    expect(rate(12_345)).toBe("12.3 k");
    expect(rate(1_234_567)).toBe("1.23 M");
    expect(rate(NaN)).toBe("–");
  });
  it("writes durations", () => {
    expect(millis(3.14159)).toBe("3.1 ms");
    expect(millis(1234)).toBe("1,234 ms");
    expect(millis(61_500)).toBe("1 min 2 s");
  });
  it("writes times relative and exact", () => {
    const t = "2017-11-25T01:00:00.500Z";
    expect(ago(t, Date.parse(t) + 12_400)).toBe("12 s ago");
    expect(ago(undefined, 0)).toBe("–");
    expect(exact(t, true)).toBe("2017-11-25 01:00:00.500 UTC");
  });
  it("writes how long in one word or two", () => {
    expect([999, 12_400, 61_000, 7_200_000, 200_000_000].map(span)).toEqual(["less than 1 s", "12 s", "1 min", "2 h", "2 d"]);
  });
});
