import { describe, expect, it } from "vitest";
import { count } from "./format";
import { place, record, rejected } from "./rejects";

describe("rejected rows", () => {
  const base = { table: "s", reason: "wrong" };
  it("are found by file and line, or by number", () => {
    expect(place({ ...base, path: "in/2.csv", line: 7, offset: 24 })).toBe("in/2.csv:7");
    expect(place({ ...base, path: "in/2.csv", offset: 24 })).toBe("in/2.csv");
    expect(place({ ...base, offset: 0 })).toBe("row 0");
    expect(place(base)).toBe("");
  });
  it("show their text as it is, control characters visible", () => {
    expect(record({ ...base, raw: "<b>a</b>,one" })).toBe("<b>a</b>,one");
    expect(record({ ...base, raw: "a\tb\nc\u007f" })).toBe("a␉b␊c␡");
    expect(record({ ...base, raw: "" })).toBe("");
    expect(record({ ...base, raw_base64: "/3s=" })).toBe("base64: /3s=");
    expect(record(base)).toBe("");
    expect(record({ ...base, raw: "x".repeat(5000) })).toBe(`${"x".repeat(2000)}…`);
  });
  it("are counted in words", () => {
    expect(rejected(1, count)).toBe("1 row rejected");
    expect(rejected(1234, count)).toBe("1,234 rows rejected");
  });
});
