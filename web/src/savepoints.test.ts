import { describe, expect, it } from "vitest";
import { restoring } from "./savepoints";

describe("the way back to a savepoint", () => {
  it("is a restore of its job", () => {
    const way = restoring({ name: "s", job_name: "j" }, true);
    expect(way.request).toEqual({ path: "/v1/jobs/j/restore", body: { from: "savepoint:s" } });
    expect(way.command).toBe(`weir savepoint restore j s --server ${location.origin}`);
  });
  it("is a new job where its own is gone", () => expect(restoring({ name: "s", job_name: "j" }, false)).toEqual({ request: { path: "/v1/jobs", body: { name: "j", sql: "SELECT …", restore_from: "savepoint:s" } } }));
});
