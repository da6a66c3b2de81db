import { useQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { useSearchParams } from "react-router";
import { type Checkpoint, type CheckpointDetail, get, type Job, jobPath } from "../api/client";
import { bytes, count, millis, quantile } from "../format";
import { Notice } from "../parts/notice";
import { Status } from "../parts/status";
import { When } from "../parts/time";

const statuses = ["", "completed", "failed", "aborted", "pending"];

/** JobCheckpoints answers: is the job's state safe, and when was it last? */
export function JobCheckpoints({ job }: { job: Job }) {
  const [params, setParams] = useSearchParams();
  const status = params.get("status") ?? "";
  const open = params.get("checkpoint");
  const [limit, setLimit] = useState(50);
  const path = jobPath(job.name, `/checkpoints?limit=${limit}${status ? `&status=${status}` : ""}`);
  const query = useQuery({ queryKey: ["checkpoints", job.name, status, limit], queryFn: () => get<{ checkpoints: Checkpoint[]; next?: string }>(path) });
  const list = query.data?.checkpoints ?? [];
  const set = (key: string, value: string) =>
    setParams((p) => {
      if (value) p.set(key, value);
      else p.delete(key);
      return p;
    });
  return (
    <div className="stack">
      <Notice error={query.error} />
      <Figures list={list} />
      <div className="panel">
        <header>
          <h2>History</h2>
          <select aria-label="Status" value={status} onChange={(e) => set("status", e.target.value)}>
            {statuses.map((s) => (
              <option key={s} value={s}>
                {s || "all"}
              </option>
            ))}
          </select>
        </header>
        {query.data && list.length === 0 && (
          <div className="empty">
            <p>{status ? `No ${status} checkpoint.` : "No checkpoint yet. This line takes one now:"}</p>
            {!status && <pre>{`curl -s -X POST '${location.origin}${jobPath(job.name, "/checkpoints?wait=30s")}'`}</pre>}
          </div>
        )}
        {list.length > 0 && (
          <div className="scroll">
            <table>
              <thead>
                <tr>
                  <th className="num">Id</th>
                  <th>Type</th>
                  <th>Status</th>
                  <th>Triggered</th>
                  <th className="num">Duration, ms</th>
                  <th className="num">Size</th>
                  <th className="num">New</th>
                  <th>Failure</th>
                </tr>
              </thead>
              <tbody>
                {list.map((c) => (
                  <Fragment key={c.id}>
                    <tr className="press" aria-expanded={open === String(c.id)} onClick={() => set("checkpoint", open === String(c.id) ? "" : String(c.id))}>
                      <td className="num">
                        <button className="link">{c.id}</button>
                      </td>
                      <td>
                        {c.type}
                        {c.savepoint ? ` ${c.savepoint}` : ""}
                      </td>
                      <td>
                        <Status value={c.status} />
                      </td>
                      <td>
                        <When at={c.triggered_at} />
                      </td>
                      <td className="num">{c.completed_at ? count(c.duration_ms) : "–"}</td>
                      <td className="num">{bytes(c.state_bytes)}</td>
                      <td className="num">{bytes(c.new_bytes)}</td>
                      <td className="wrap" title={c.failure?.message}>
                        {c.failure ? `${c.failure.reason}: ${c.failure.message}` : ""}
                      </td>
                    </tr>
                    {open === String(c.id) && (
                      <tr>
                        <td colSpan={8} className="wrap">
                          <Detail job={job} id={c.id} />
                        </td>
                      </tr>
                    )}
                  </Fragment>
                ))}
              </tbody>
            </table>
          </div>
        )}
        {query.data?.next && (
          <div className="body">
            <button className="act" onClick={() => setLimit(limit + 200)}>
              Show more
            </button>
          </div>
        )}
      </div>
    </div>
  );
}

function Figures({ list }: { list: Checkpoint[] }) {
  const completed = list.filter((c) => c.status === "completed");
  const durations = completed.map((c) => c.duration_ms);
  const newest = completed[0];
  const bars = list.slice(0, 80).reverse();
  const longest = Math.max(1, ...bars.map((c) => c.duration_ms));
  const figure = (label: string, value: string) => (
    <div key={label}>
      <div className="label">{label}</div>
      <div className="value">{value}</div>
    </div>
  );
  return (
    <div className="panel">
      <div className="figures" style={{ border: 0 }}>
        {figure(`Completed of the last ${list.length}`, count(completed.length))}
        {figure("Failed", count(list.filter((c) => c.status === "failed").length))}
        {figure("Duration, p50 / p99", completed.length ? `${millis(quantile(durations, 0.5))} / ${millis(quantile(durations, 0.99))}` : "–")}
        {figure("State", newest ? bytes(newest.state_bytes) : "–")}
      </div>
      {bars.length > 0 && (
        <div className="bars" role="img" aria-label="Durations of the last checkpoints">
          {bars.map((c) => (
            <i key={c.id} className={c.status} title={`${c.id}: ${c.status}, ${millis(c.duration_ms)}`} style={{ height: `${Math.max(4, (100 * c.duration_ms) / longest)}%` }} />
          ))}
        </div>
      )}
    </div>
  );
}

/** Detail shows where a checkpoint spent its time, subtask by subtask, on one axis. */
function Detail({ job, id }: { job: Job; id: number }) {
  const query = useQuery({ queryKey: ["checkpoint", job.name, id], queryFn: () => get<CheckpointDetail>(jobPath(job.name, `/checkpoints/${id}`)) });
  if (!query.data) return query.isPending ? <p>Reading…</p> : <Notice error={query.error} />;
  const operators = query.data.operators ?? [];
  if (operators.length === 0) return <p>No task has acknowledged it{query.data.status === "pending" ? " yet" : ""}.</p>;
  const all = operators.flatMap((o) => o.subtasks);
  const span = (s: (typeof all)[number]) => s.start_delay_ms + s.alignment_ms + s.cut_ms + s.upload_ms;
  const longest = Math.max(0.001, ...all.map(span));
  const slowest = all.reduce((a, b) => (span(b) > span(a) ? b : a));
  return (
    <div className="scroll">
      <p className="key">
        <span>
          <i style={{ background: "var(--grey)", opacity: 0.5 }} />
          start delay
        </span>
        <span>
          <i style={{ background: "var(--amber)" }} />
          alignment
        </span>
        <span>
          <i style={{ background: "var(--red)" }} />
          cut
        </span>
        <span>
          <i style={{ background: "var(--blue)" }} />
          upload
        </span>
      </p>
      <table>
        <thead>
          <tr>
            <th>Operator</th>
            <th className="num">Subtask</th>
            <th>Worker</th>
            <th>Where the time went, to {millis(longest)}</th>
            <th className="num">Start delay, ms</th>
            <th className="num">Alignment, ms</th>
            <th className="num">Cut, ms</th>
            <th className="num">Upload, ms</th>
            <th className="num">New</th>
            <th className="num">Total</th>
          </tr>
        </thead>
        <tbody>
          {operators.flatMap((o) =>
            o.subtasks.map((s) => {
              const parts: [string, number][] = [
                ["delay", s.start_delay_ms],
                ["align", s.alignment_ms],
                ["cut", s.cut_ms],
                ["upload", s.upload_ms],
              ];
              let at = 0;
              return (
                <tr key={`${o.id}-${s.index}`}>
                  <td className="short" title={o.name}>
                    {o.name}
                  </td>
                  <td className="num">{s.index}</td>
                  <td>{s.worker}</td>
                  <td>
                    <div className={s === slowest && all.length > 1 ? "fall slowest" : "fall"} title={s === slowest ? "the slowest" : undefined}>
                      {parts.map(([name, ms]) => {
                        const left = at;
                        at += ms;
                        return <i key={name} className={name} style={{ left: `${(100 * left) / longest}%`, width: `${(100 * ms) / longest}%` }} />;
                      })}
                    </div>
                  </td>
                  <td className="num">{s.start_delay_ms.toFixed(1)}</td>
                  <td className="num">{s.alignment_ms.toFixed(1)}</td>
                  <td className="num">{s.cut_ms.toFixed(2)}</td>
                  <td className="num">
                    {s.upload_ms.toFixed(1)}
                  </td>
                  <td className="num">{bytes(s.new_bytes)}</td>
                  <td className="num">{bytes(s.total_bytes)}</td>
                </tr>
              );
            }),
          )}
        </tbody>
      </table>
    </div>
  );
}
