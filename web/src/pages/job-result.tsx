import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { type Column, get, type Job, jobPath } from "../api/client";
import { count } from "../format";
import { type Change, LiveResult, type Row, sortRows } from "../live";
import { Notice } from "../parts/notice";
import { hasEnded } from "../parts/status";

const shownRows = 200;
const paintEvery = 150; // ms

interface Page {
  columns: Column[];
  rows: Row[];
  next?: string;
}

/** JobResult shows the job's result table, live while the job runs. */
export function JobResult({ job }: { job: Job }) {
  const page = useQuery({
    queryKey: ["result", job.name, job.attempt],
    queryFn: () => get<Page>(jobPath(job.name, `/results?limit=${shownRows}`)),
    refetchInterval: job.status === "RUNNING" ? 5000 : 3000,
    enabled: job.has_result,
  });
  const { rows: live, lost } = useLive(job);
  const [sort, setSort] = useState<{ column: string; down: boolean }>();
  if (!job.has_result) {
    return (
      <div className="panel">
        <header>
          <h2>Result</h2>
        </header>
        <div className="empty">
          <p>This job writes to a table; it keeps no result of its own.</p>
        </div>
      </div>
    );
  }
  const columns = page.data?.columns ?? [];
  const all = live ?? page.data?.rows ?? [];
  const rows = sortRows(all, sort?.column, sort?.down ?? false).slice(0, shownRows);
  return (
    <div className="panel">
      <header>
        <h2>Result</h2>
        <span>
          {count(all.length)} {all.length === 1 ? "row" : "rows"}
          {all.length > rows.length ? `, ${rows.length} shown` : ""}
          {live ? (lost ? " · waiting for the server" : " · live") : ""}
        </span>
      </header>
      {page.error && columns.length === 0 && (
        <div className="body">
          <Notice error={page.error} />
        </div>
      )}
      {columns.length > 0 && (
        <div className="scroll" style={{ maxHeight: 480 }}>
          <table aria-label="Result">
            <thead>
              <tr>
                {columns.map((c) => (
                  <th key={c.name} className={numeric(c.type) ? "num" : undefined} title={c.type}>
                    <button onClick={() => setSort({ column: c.name, down: sort?.column === c.name ? !sort.down : numeric(c.type) })}>
                      {c.name}
                      {sort?.column === c.name ? (sort.down ? " ↓" : " ↑") : ""}
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row, i) => (
                <tr key={i}>
                  {columns.map((c) => (
                    <Cell key={c.name} value={row[c.name]} type={c.type} />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          {rows.length === 0 && <div className="empty">{hasEnded(job.status) ? "No row." : "No row yet."}</div>}
        </div>
      )}
    </div>
  );
}

function numeric(type: string): boolean {
  return !type.startsWith("STRING") && !type.startsWith("BOOLEAN") && !type.startsWith("TIMESTAMP");
}

function Cell({ value, type }: { value: unknown; type: string }) {
  if (value === null || value === undefined) return <td className={numeric(type) ? "num null" : "null"}>NULL</td>;
  if (numeric(type)) return <td className="num">{typeof value === "number" && Number.isSafeInteger(value) ? count(value) : String(value)}</td>;
  return <td title={String(value)}>{String(value)}</td>;
}

/** useLive follows the job's changes; rows are undefined while it does not run. */
function useLive(job: Job): { rows: Row[] | undefined; lost: boolean } {
  const [rows, setRows] = useState<Row[]>();
  const [lost, setLost] = useState(false);
  const result = useRef(new LiveResult());
  const following = job.has_result && !hasEnded(job.status);
  useEffect(() => {
    if (!following) {
      setRows(undefined);
      return;
    }
    const table = result.current;
    table.reset();
    let dirty = false;
    const stream = new EventSource(jobPath(job.name, "/results?numbers=string"));
    stream.addEventListener("reset", () => {
      table.reset();
      dirty = true;
    });
    stream.addEventListener("change", (e) => {
      table.apply(JSON.parse((e as MessageEvent<string>).data) as Change);
      dirty = true;
    });
    stream.onopen = () => setLost(false);
    stream.onerror = () => setLost(true);
    const paint = setInterval(() => {
      if (dirty) setRows(table.rows());
      dirty = false;
    }, paintEvery);
    return () => {
      stream.close();
      clearInterval(paint);
    };
  }, [job.name, following]);
  return { rows, lost };
}
