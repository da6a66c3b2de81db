import { curl, jobPath, type Savepoint } from "./api/client";

/**
 * restoring gives the lines for a shell that lead back to a savepoint: of its job, or,
 * where that is gone, of a new one whose query the user fills in.
 */
export function restoring(s: Pick<Savepoint, "name" | "job_name">, there: boolean): { request: string; command?: string } {
  const from = `savepoint:${s.name}`;
  if (!there) return { request: curl("POST", "/v1/jobs", { name: s.job_name, sql: "SELECT …", restore_from: from }) };
  return {
    request: curl("POST", jobPath(s.job_name, "/restore"), { from }),
    command: `weir savepoint restore ${s.job_name} ${s.name} --server ${location.origin}`,
  };
}
