import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Job, jobPath, type Rejects } from "../api/client";
import { count } from "../format";
import { Notice } from "../parts/notice";
import { place, record, rejected } from "../rejects";

const shown = 200;
const most = 10_000;

/** JobRejects lists the rows that the job skipped or kept because they were at fault. */
export function JobRejects({ job }: { job: Job }) {
  const [limit, setLimit] = useState(shown);
  const query = useQuery({
    queryKey: ["rejects", job.name, limit],
    queryFn: () => get<Rejects>(jobPath(job.name, `/rejects?limit=${limit}`)),
    placeholderData: keepPreviousData,
    refetchInterval: 3000,
  });
  if (!query.data) return query.isPending ? <p className="answer">Reading…</p> : <Notice error={query.error} />;
  const { counts, rows, next } = query.data;
  const total = counts.reduce((sum, c) => sum + c.rows, 0);
  if (total === 0) {
    return (
      <div className="panel">
        <div className="empty">
          <p>No row was at fault so far. Such a row is {job.on_row_error === "keep" ? "kept here" : "skipped and counted"}, and the job goes on.</p>
        </div>
      </div>
    );
  }
  return (
    <div className="panel">
      <header>
        <h2>{rejected(total, count)}</h2>
        <span>
          {counts.length > 1 ? counts.map((c) => `${count(c.rows)} of ${c.table}`).join(" · ") : `of ${counts[0]?.table ?? ""}`}
          {rows.length < total && next === undefined ? ` · the first ${count(rows.length)} are kept` : ""}
        </span>
      </header>
      <div className="scroll">
        <table className="rejects" aria-label="Rejected rows">
          <thead>
            <tr>
              <th>Where</th>
              <th className="num">Offset</th>
              <th>Column</th>
              <th>Reason</th>
              <th>Record</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((r, i) => (
              <tr key={i}>
                <td title={r.table}>{place(r) || r.table}</td>
                <td className="num">{r.offset === undefined ? "" : count(r.offset)}</td>
                <td>{r.column}</td>
                <td className="wrap">{r.reason}</td>
                <td className="mono wrap">{record(r)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {next !== undefined && limit < most && (
        <button className="link" onClick={() => setLimit(Math.min(limit * 2, most))}>
          Show more rows
        </button>
      )}
    </div>
  );
}
