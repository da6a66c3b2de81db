import { jobPath, type Savepoint } from "./api/client";

/**
 * restoring gives the request that leads back to a savepoint, and the command: of its job,
 * or, where that is gone, of a new one whose query the user fills in.
 */
export function restoring(s: Pick<Savepoint, "name" | "job_name">, there: boolean): { request: { path: string; body: unknown }; command?: string } {
  const from = `savepoint:${s.name}`;
  if (!there) return { request: { path: "/v1/jobs", body: { name: s.job_name, sql: "SELECT …", restore_from: from } } };
  return {
    request: { path: jobPath(s.job_name, "/restore"), body: { from } },
    command: `weir savepoint restore ${s.job_name} ${s.name} --server ${location.origin}`,
  };
}
