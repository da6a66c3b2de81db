// What the pages about checkpoints compute: filters, the history as it is read page by
// page, where a failure would lead back to, and the time axis of one checkpoint.
import type { components } from "./api/schema";
import type { Checkpoint, CheckpointDetail, CheckpointList, CheckpointSubtask, CheckpointTask, Job } from "./api/client";
import { span } from "./format";

/** filters are the parameters that choose from a history, by the same names in the page's URL and the API's. */
export const filters = ["status", "type", "reason", "since", "until", "attempt", "min_duration"] as const;

export const statuses = ["completed", "failed", "aborted", "pending"];
export const types = ["checkpoint", "savepoint"];
/** reasons are all that the API knows: the compiler says where one is missing. */
export const reasons = Object.keys({
  timeout: true,
  declined: true,
  manifest: true,
  metastore: true,
  trigger: true,
  attempt_ended: true,
  canceled: true,
  superseded: true,
  metastore_behind: true,
} satisfies Record<components["schemas"]["CheckpointFailure"]["reason"], true>);

/** filterOf takes the filters out of a page's parameters, as a query string; empty: none is set. */
export function filterOf(page: URLSearchParams): string {
  const out = new URLSearchParams();
  for (const name of filters) {
    const value = page.get(name);
    if (value) out.set(name, value);
  }
  return out.toString();
}

/** toField writes a time as a field for date and time holds it. */
export function toField(iso: string, utc: boolean): string {
  const t = Date.parse(iso);
  if (Number.isNaN(t)) return "";
  const shift = utc ? 0 : new Date(t).getTimezoneOffset() * 60_000;
  return new Date(t - shift).toISOString().slice(0, 19);
}

/** fromField reads such a field; empty where it holds no time. */
export function fromField(text: string, utc: boolean): string {
  const t = Date.parse(utc ? `${text}Z` : text);
  return Number.isNaN(t) ? "" : new Date(t).toISOString().replace(".000Z", "Z");
}

/** A History is what was read of a list, newest first, without gaps. */
export interface History {
  rows: Checkpoint[];
  next?: string; // cursor of what is older; absent: that is all
}

/**
 * refresh takes in the newest page, read again: it says all about the rows from its last
 * one up, so that what left a filter leaves the list. Undefined: there are rows between the
 * page and what was known, which nobody has read.
 */
export function refresh(known: History | undefined, page: CheckpointList): History | undefined {
  const last = page.checkpoints.at(-1);
  if (!known || known.rows.length === 0 || page.next === undefined || !last) return { rows: page.checkpoints, next: page.next };
  if (known.rows[0]!.id < last.id) return undefined;
  const older = known.rows.filter((c) => c.id < last.id);
  return { rows: [...page.checkpoints, ...older], next: older.length > 0 ? known.next : page.next };
}

/** append adds the page that follows; one that was asked for twice is added once. */
export function append(known: History, page: CheckpointList): History {
  const last = known.rows.at(-1)?.id ?? Infinity;
  return { rows: [...known.rows, ...page.checkpoints.filter((c) => c.id < last)], next: page.next };
}

/** recently is how many checkpoints are looked at for failures in a row. */
export const recently = 20;

/** failedInARow counts the failures since the last one that completed, as far as a list or its id says; aborted ones do not count. */
export function failedInARow(newestFirst: Checkpoint[], completed = 0): number {
  let n = 0;
  for (const c of newestFirst) {
    if (c.status === "completed" || c.id < completed) break;
    if (c.status === "failed") n++;
  }
  return n;
}

/** A Standing is the answer of the page: words, one number, words. */
export interface Standing {
  before: string;
  number: string;
  after: string;
  tone: "calm" | "amber";
}

/** basePath is where the API tells about a job's base; undefined: it starts from nothing. */
export function basePath(job: Pick<Job, "name" | "base">): string | undefined {
  const [kind, rest = ""] = [job.base.slice(0, job.base.indexOf(":")), job.base.slice(job.base.indexOf(":") + 1)];
  if (kind === "savepoint") return `/v1/savepoints/${encodeURIComponent(rest)}`;
  if (kind !== "checkpoint") return undefined;
  const [id, owner] = rest.split("/").reverse();
  return `/v1/jobs/${encodeURIComponent(owner ?? job.name)}/checkpoints/${id}`;
}

/** standing says whether a job is right, and how far back a failure would throw it. */
export function standing(job: Job, baseAt: string | undefined, failed: number, now: number): Standing {
  const base = job.base.replace(":", " ");
  const none = job.base === "nothing";
  const from = Date.parse(baseAt ?? job.created_at);
  const ended = job.ended_at ? Date.parse(job.ended_at) : now;
  const say = (before: string, ms: number, after: string, tone: Standing["tone"] = "calm"): Standing => ({ before, number: span(Math.max(0, ms)), after, tone });
  if (job.status === "FAILED" && job.failure?.reason === "metastore_behind") return { before: "Storage knows more of it than the metastore: from where it goes on is for you to choose, above.", number: "", after: "", tone: "amber" };
  if (job.status === "FAILED" && job.failure?.reason === "restore") return { before: `It could not start from ${base}: what else storage has is above.`, number: "", after: "", tone: "amber" };
  if (!none && baseAt === undefined) return { before: `It would go on from ${base}`, number: "", after: ".", tone: "calm" };
  switch (job.status) {
    case "FINISHED":
      return say("It has finished, and its result is whole: taken ", now - (none ? ended : from), ` ago${none ? "" : ` in ${base}`}.`);
    case "STOPPED":
    case "CANCELED":
    case "FAILED": {
      const how = { STOPPED: "It has stopped", CANCELED: "It was canceled", FAILED: "It has failed" }[job.status];
      if (none) return say(`${how} without a checkpoint: started again, it reads anew what took it `, ended - from, ".", "amber");
      return say(`${how}. Started again, it goes on from ${base}, `, ended - from, " before its end; nothing is lost or counted twice.");
    }
  }
  const trouble = failed === 0 ? "" : failed >= recently ? `None of the last ${failed} checkpoints completed. ` : failed === 1 ? "The last checkpoint failed. " : `The last ${failed} checkpoints failed. `;
  const tone = failed > 0 ? "amber" : "calm";
  if (none) return say(`${trouble}No checkpoint has completed yet: a failure now would throw it back to its beginning, `, now - from, " ago.", tone);
  const repeats = job.checkpoint.mode === "at_least_once" ? "nothing would be lost, and some of it may be counted twice." : "nothing would be lost or counted twice.";
  return say(`${trouble || "It is right. "}A failure now would throw it back `, now - from, ` to ${base}; ${repeats}`, tone);
}

/** A Segment is a stretch of a lane, in ms since the checkpoint was triggered. */
export interface Segment {
  name: "delay" | "align" | "cut" | "upload" | "commit";
  from: number;
  to: number;
}

/** lane lays a subtask's part out in time; a sink's commit follows the decision, decidedMS after the trigger. */
export function lane(s: CheckpointSubtask, decidedMS: number): Segment[] {
  const out: Segment[] = [];
  let at = 0;
  for (const [name, ms] of [["delay", s.start_delay_ms], ["align", s.alignment_ms], ["cut", s.cut_ms], ["upload", s.upload_ms]] as const) {
    if (ms > 0) out.push({ name, from: at, to: at + ms });
    at += Math.max(0, ms);
  }
  const decided = Math.max(at, decidedMS);
  if (s.commit_ms > 0) out.push({ name: "commit", from: decided, to: decided + s.commit_ms });
  return out;
}

/** acked is when a subtask's part was durable, in ms since the trigger. */
export function acked(s: CheckpointSubtask): number {
  return s.start_delay_ms + s.alignment_ms + s.cut_ms + s.upload_ms;
}

/** slowest is the subtask that was durable last. */
export function slowest(subtasks: CheckpointSubtask[]): CheckpointSubtask | undefined {
  return subtasks.reduce<CheckpointSubtask | undefined>((a, b) => (a && acked(a) >= acked(b) ? a : b), undefined);
}

/** lastOf is the task that a checkpoint waited for longest; undefined where nobody knows, and where it still waits or gave up waiting for others. */
export function lastOf(d: CheckpointDetail): CheckpointTask | undefined {
  if (d.status !== "completed") return undefined;
  if (d.last) return d.last;
  let out: CheckpointTask | undefined;
  let at = -1;
  for (const o of d.operators) {
    const s = slowest(o.subtasks);
    if (s && acked(s) > at) {
      at = acked(s);
      out = { operator: o.id, name: o.name, subtask: s.index };
    }
  }
  return out;
}

/** axis is the end of the time axis that a checkpoint and all its lanes have room on. */
export function axis(d: CheckpointDetail): number {
  const ends = d.operators.flatMap((o) => o.subtasks.map((s) => lane(s, d.duration_ms).at(-1)?.to ?? 0));
  return Math.max(0.001, d.duration_ms, ...ends);
}

/** ticks are round times between 0 and the end of an axis, four or so. */
export function ticks(end: number): number[] {
  const raw = end / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= raw) ?? 10);
  const out: number[] = [];
  for (let i = 0; i * step <= end * 1.0001; i++) out.push(i * step);
  return out;
}

/** taskName names a subtask of a chain by its last operator, which is what a reader knows it by. */
export function taskName(t: CheckpointTask): string {
  return `${chainName(t.name)} subtask ${t.subtask}`;
}

/** chainName is short for the operators that run in one task. */
export function chainName(name: string): string {
  const all = name.split(" ▸ ");
  return all.length < 3 ? name : `${all[0]} ▸ … ▸ ${all.at(-1)}`;
}

/** sameTask reports whether two names are one task's. */
export function sameTask(a: CheckpointTask | undefined, operator: string, subtask: number): boolean {
  return a?.operator === operator && a.subtask === subtask;
}

/** remedy says what a person does about a checkpoint that failed or was given up. */
export function remedy(reason: string, job: Pick<Job, "checkpoint" | "name">): string {
  switch (reason) {
    case "timeout":
      return `What to do: back-pressured, look in Overview downstream of that task for the one that is busy, and give the job more parallelism; storing, see how fast storage is. Or raise checkpoint.timeout (${job.checkpoint.timeout ?? "10m"}).`;
    case "declined":
      return "What to do: what the message names; mostly storage refuses writes, or a disk is full. weir storage check looks at it. The next checkpoint tries again.";
    case "manifest":
      return "What to do: see whether the server reaches storage and may write there. The next checkpoint tries again.";
    case "metastore":
      return "What to do: see whether the metastore works; the message has its answer. Nothing was decided, so nothing is lost.";
    case "trigger":
      return "What to do: see in Workers whether the named worker runs, and that it reaches NATS. The next checkpoint tries again.";
    case "attempt_ended":
      return "Nothing to do here: the attempt ended while it was under way. Events says why.";
    case "canceled":
      return "Nothing to do: somebody asked for it.";
    case "superseded":
      return "Nothing to do: a newer checkpoint completed first and covers all of it. Where it happens all the time, lower checkpoint.max_concurrent.";
    case "metastore_behind":
      return "What to do: restore the metastore to its newest state, or adopt the newest checkpoint, above. Nothing was deleted.";
  }
  return "";
}

/** counts reports whether a failure counts towards tolerable_failures. */
export function counts(c: Pick<Checkpoint, "status" | "type">): boolean {
  return c.status === "failed" && c.type === "checkpoint";
}

/** began says how a request for a checkpoint was taken up. */
export function began(c: { id: number; type: string; savepoint?: string; request?: string }): string {
  const what = c.type === "savepoint" ? `Savepoint ${c.savepoint}` : `Checkpoint ${c.id}`;
  switch (c.request) {
    case "queued":
      return `${what} waited for its turn and has started.`;
    case "joined":
      return `${what} has started; it is shared with a request that was waiting before.`;
  }
  return `${what} has started.`;
}
