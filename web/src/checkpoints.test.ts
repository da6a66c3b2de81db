import { describe, expect, it } from "vitest";
import type { Checkpoint, CheckpointDetail, CheckpointSubtask, Job } from "./api/client";
import { append, axis, basePath, began, chainName, failedInARow, filterOf, fromField, lane, lastOf, reasons, refresh, remedy, slowest, standing, ticks, toField } from "./checkpoints";

const row = (id: number, status: Checkpoint["status"] = "completed"): Checkpoint => ({
  id, status, attempt: 1, type: "checkpoint", periodic: true, final: false, discarded: false, commits_open: false,
  triggered_at: "2026-03-01T12:00:00Z", duration_ms: 1, commit_ms: 0, state_bytes: 1, new_bytes: 1, thinned: false,
});
const ids = (rows: Checkpoint[] | undefined) => rows?.map((c) => c.id);
const page = (from: number, to: number, next = true) => {
  const checkpoints = [];
  for (let i = from; i >= to; i--) checkpoints.push(row(i));
  return { checkpoints, next: next ? String(to) : undefined };
};

describe("filters", () => {
  it("are those of the page that the API knows, and no empty ones", () => {
    const p = new URLSearchParams("tab=checkpoints&status=failed&type=&checkpoint=7&min_duration=1.5s&since=2026-03-01T12:00:00Z");
    expect(filterOf(p)).toBe("status=failed&since=2026-03-01T12%3A00%3A00Z&min_duration=1.5s");
    expect(filterOf(new URLSearchParams("tab=checkpoints"))).toBe("");
  });
  it("turn times into fields and back, in either zone", () => {
    for (const utc of [true, false]) expect(fromField(toField("2026-03-01T12:00:07Z", utc), utc)).toBe("2026-03-01T12:00:07Z");
    expect(toField("2026-03-01T12:00:07Z", true)).toBe("2026-03-01T12:00:07");
    expect(toField("yesterday", true)).toBe("");
    expect(fromField("", true)).toBe("");
  });
});

describe("a history", () => {
  it("begins with a page", () => expect(refresh(undefined, page(9, 5))).toEqual({ rows: page(9, 5).checkpoints, next: "5" }));
  it("takes in newer rows and keeps older ones with their cursor", () => {
    const known = append(refresh(undefined, page(9, 5))!, page(4, 1, false));
    const now = refresh(known, page(11, 7));
    expect(ids(now?.rows)).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    expect(now?.next).toBeUndefined();
  });
  it("lets go of what left the filter", () => {
    const known = refresh(undefined, page(9, 5));
    expect(ids(refresh(known, { checkpoints: [row(9), row(7)], next: "7" })?.rows)).toEqual([9, 7, 6, 5]);
    expect(ids(refresh(known, { checkpoints: [row(9), row(7)] })?.rows)).toEqual([9, 7]);
    expect(ids(refresh(known, { checkpoints: [] })?.rows)).toEqual([]);
  });
  it("says when rows between were never read", () => {
    expect(refresh(refresh(undefined, page(9, 5)), page(20, 16))).toBeUndefined();
    expect(refresh({ rows: [] }, page(20, 16))?.rows).toHaveLength(5);
  });
  it("adds a page once", () => {
    const known = append(refresh(undefined, page(9, 5))!, page(4, 2));
    expect(ids(append(known, page(4, 2)).rows)).toEqual([9, 8, 7, 6, 5, 4, 3, 2]);
    expect(known.next).toBe("2");
  });
  it("counts failures in a row, aborted ones aside", () => {
    expect(failedInARow([row(5, "failed"), row(4, "aborted"), row(3, "failed"), row(2), row(1, "failed")])).toBe(2);
    expect(failedInARow([row(5, "failed"), row(4, "failed")], 6)).toBe(0);
    expect(failedInARow([])).toBe(0);
  });
});

describe("where a failure leads back to", () => {
  const at = "2026-03-01T12:00:00Z";
  const now = Date.parse(at) + 3200;
  const job = { name: "j", status: "RUNNING", base: "checkpoint:7", created_at: at, checkpoint: { mode: "exactly_once" } } as Job;
  const text = (j: Partial<Job>, baseAt: string | undefined, failed = 0, then = now) => {
    const s = standing({ ...job, ...j }, baseAt, failed, then);
    return `${s.tone}: ${s.before}<${s.number}>${s.after}`;
  };
  it("is said of a running job", () => {
    expect(text({}, at)).toBe("calm: It is right. A failure now would throw it back <3 s> to checkpoint 7; nothing would be lost or counted twice.");
    expect(text({}, at, 3, now + 240_000)).toBe("amber: The last 3 checkpoints failed. A failure now would throw it back <4 min> to checkpoint 7; nothing would be lost or counted twice.");
    expect(text({}, at, 20)).toContain("None of the last 20 checkpoints completed.");
    expect(text({ base: "nothing" }, undefined, 1)).toBe("amber: The last checkpoint failed. No checkpoint has completed yet: a failure now would throw it back to its beginning, <3 s> ago.");
    expect(text({ checkpoint: { mode: "at_least_once" } } as Partial<Job>, at)).toContain("some of it may be counted twice");
  });
  it("is said of one that has ended", () => {
    const ended_at = new Date(now + 60_000).toISOString();
    expect(text({ status: "STOPPED", base: "savepoint:s", ended_at }, at)).toBe("calm: It has stopped. Started again, it goes on from savepoint s, <1 min> before its end; nothing is lost or counted twice.");
    expect(text({ status: "FAILED", base: "nothing", ended_at }, undefined)).toBe("amber: It has failed without a checkpoint: started again, it reads anew what took it <1 min>.");
    expect(text({ status: "FAILED", failure: { reason: "metastore_behind", message: "" }, ended_at }, at)).toMatch(/^amber: Storage knows more/);
    expect(text({ status: "FINISHED", ended_at }, at)).toBe("calm: It has finished, and its result is whole: taken <3 s> ago in checkpoint 7.");
  });
  it("finds the base's place", () => {
    const path = (base: string) => basePath({ name: "j", base });
    expect(["checkpoint:7", "checkpoint:other/7", "savepoint:s", "nothing"].map(path)).toEqual(["/v1/jobs/j/checkpoints/7", "/v1/jobs/other/checkpoints/7", "/v1/savepoints/s", undefined]);
  });
});

describe("a waterfall", () => {
  const part = (over: Partial<CheckpointSubtask>): CheckpointSubtask => ({ index: 0, worker: "w", start_delay_ms: 2, alignment_ms: 3, cut_ms: 0, upload_ms: 5, commit_ms: 0, new_bytes: 0, total_bytes: 0, ...over });
  it("lays one part after the other, and the commit after the decision", () => {
    expect(lane(part({ commit_ms: 4 }), 20)).toEqual([
      { name: "delay", from: 0, to: 2 },
      { name: "align", from: 2, to: 5 },
      { name: "upload", from: 5, to: 10 },
      { name: "commit", from: 20, to: 24 },
    ]);
  });
  it("has an axis on which all have room", () => {
    const d = { duration_ms: 20, operators: [{ subtasks: [part({}), part({ commit_ms: 4 })] }] } as unknown as CheckpointDetail;
    expect(axis(d)).toBe(24);
    expect(axis({ ...d, operators: [] })).toBe(20);
  });
  it("marks round times", () => {
    expect(ticks(24)).toEqual([0, 10, 20]);
    expect(ticks(60_000)).toEqual([0, 20_000, 40_000, 60_000]);
    expect(ticks(0.001).length).toBeLessThan(8);
  });
  it("knows the slowest", () => {
    expect(slowest([part({}), part({ index: 1, upload_ms: 50 }), part({ index: 2 })])?.index).toBe(1);
    expect(slowest([])).toBeUndefined();
    const detail = (status: CheckpointDetail["status"]) => ({ status, operators: [{ id: "a", name: "a", subtasks: [part({})] }] }) as unknown as CheckpointDetail;
    expect(lastOf(detail("completed"))).toEqual({ operator: "a", name: "a", subtask: 0 });
    expect(lastOf(detail("failed"))).toBeUndefined(); // it gave up waiting for one that is not there
  });
  it("shortens chains of many operators", () => expect([chainName("a ▸ b"), chainName("a ▸ b ▸ c ▸ d")]).toEqual(["a ▸ b", "a ▸ … ▸ d"]));
});

describe("words", () => {
  it("say what to do about every reason", () => {
    for (const reason of reasons) expect(remedy(reason, { name: "j", checkpoint: { timeout: "60s" } }), reason).toMatch(/to do/);
  });
  it("say how a request was taken up", () => {
    const c = { id: 7, type: "checkpoint" };
    expect([began({ ...c, request: "started" }), began({ ...c, request: "queued" }), began({ ...c, request: "joined" }), began({ ...c, type: "savepoint", savepoint: "s" })]).toEqual([
      "Checkpoint 7 has started.",
      "Checkpoint 7 waited for its turn and has started.",
      "Checkpoint 7 has started; it is shared with a request that was waiting before.",
      "Savepoint s has started.",
    ]);
  });
});
