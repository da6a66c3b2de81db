import type { components } from "./schema";

type Schemas = components["schemas"];
export type Job = Schemas["Job"];
export type AdoptableCheckpoint = Schemas["AdoptableCheckpoint"];
export type Checkpoint = Schemas["Checkpoint"];
export type CheckpointDetail = Schemas["CheckpointDetail"];
export type CheckpointList = Schemas["CheckpointList"];
export type CheckpointSubtask = Schemas["CheckpointSubtask"];
export type CheckpointSummary = Schemas["CheckpointSummary"];
export type CheckpointTask = Schemas["CheckpointTask"];
export type TriggeredCheckpoint = Schemas["TriggeredCheckpoint"];
export type Savepoint = Schemas["Savepoint"];
export type Table = Schemas["Table"];
export type Worker = Schemas["Worker"];
export type Event = Schemas["Event"];
export type JobPlan = Schemas["JobPlan"];
export type Rejects = Schemas["Rejects"];
export type Results = Omit<Schemas["Results"], "rows"> & { rows: Record<string, unknown>[] };

/** A fault of a request: one per error of a script. */
export interface Fault {
  line?: number;
  column?: number;
  field?: string;
  message: string;
  hint?: string;
}

/** Refusal is what the server answers to a request it does not carry out. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly faults: Fault[] = [],
  ) {
    super(message);
  }
}

/** call makes one request of the API and returns the decoded answer. */
export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  let res: Response;
  try {
    res = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refusal(0, "The server does not answer. It may be restarting; this page tries again by itself.");
  }
  const text = await res.text();
  let json: unknown;
  try {
    json = text === "" ? undefined : JSON.parse(text);
  } catch {
    throw new Refusal(res.status, `The server answered ${res.status} with something that is not JSON.`);
  }
  if (!res.ok) {
    const problem = (json ?? {}) as { title?: string; detail?: string; errors?: Fault[] };
    throw new Refusal(res.status, problem.detail || problem.title || `The server answered ${res.status}.`, problem.errors ?? []);
  }
  return json as T;
}

/** get reads one answer. */
export function get<T>(path: string): Promise<T> {
  return call<T>("GET", path);
}

/** jobPath gives the API's path of a job and what follows it. */
export function jobPath(job: string, rest = ""): string {
  return `/v1/jobs/${encodeURIComponent(job)}${rest}`;
}

/** curl writes a request as a command line for a shell. */
export function curl(method: string, path: string, body?: unknown): string {
  const quote = (s: string) => `'${s.replaceAll("'", `'\\''`)}'`;
  const parts = ["curl -s"];
  if (method !== "GET") parts.push(`-X ${method}`);
  parts.push(quote(location.origin + path));
  if (body !== undefined) parts.push("-H 'content-type: application/json'", `-d ${quote(JSON.stringify(body))}`);
  return parts.join(" ");
}
