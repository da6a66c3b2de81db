import { useState } from "react";
import type { Job } from "../api/client";
import { count } from "../format";
import { Notice } from "../parts/notice";
import { hasEnded } from "../parts/status";
import { type Order, useResult } from "../result";

const shownRows = 200;

// Rows are put in order by the job's own tasks, which do nothing else meanwhile: 0.1 s for
// so many of them.
const mostOrdered = 1_000_000;

/** JobResult shows the first rows of the job's result table, live while the job runs. */
export function JobResult({ job }: { job: Job }) {
  const [order, setOrder] = useState<Order>();
  const [many, setMany] = useState(false);
  const { page, error, live, lost } = useResult(job, shownRows, many ? undefined : order);
  const tooMany = live && (page?.total ?? 0) > mostOrdered;
  if (tooMany !== many) setMany(tooMany);
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
  const { columns, rows, total } = page ?? { columns: [], rows: [], total: 0 };
  return (
    <div className="panel">
      <header>
        <h2>Result</h2>
        <span>
          {page ? `${count(total)} ${total === 1 ? "row" : "rows"}${total > rows.length ? `, ${rows.length} shown` : ""}` : ""}
          {lost ? " · waiting for the server" : live ? " · live" : ""}
        </span>
      </header>
      {error && !page && (
        <div className="body">
          <Notice error={error} />
        </div>
      )}
      {!page && !error && (
        <div className="empty">
          <p>Reading…</p>
        </div>
      )}
      {columns.length > 0 && (
        <div className="scroll" style={{ maxHeight: 480 }}>
          <table aria-label="Result">
            <thead>
              <tr>
                {columns.map((c) => (
                  <th key={c.name} className={numeric(c.type) ? "num" : undefined} title={many ? `${c.type}; more than ${count(mostOrdered)} rows are not put in order while the job runs: it would stand still meanwhile` : c.type}>
                    {many ? (
                      c.name
                    ) : (
                      <button onClick={() => setOrder({ column: c.name, down: order?.column === c.name ? !order.down : numeric(c.type) })}>
                        {c.name}
                        {order?.column === c.name ? (order.down ? " ↓" : " ↑") : ""}
                      </button>
                    )}
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
