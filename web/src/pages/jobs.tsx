import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import { get, type Job } from "../api/client";
import { bytes, countIfKnown, millis, rate } from "../format";
import { useRates } from "../rates";
import { Notice } from "../parts/notice";
import { Status } from "../parts/status";
import { When } from "../parts/time";

const example = `curl -s ${location.origin}/v1/jobs -H 'content-type: application/json' \\
  -d '{"name":"behaviors","sql":"SELECT behavior, COUNT(*) AS n FROM user_behavior GROUP BY behavior"}'`;

type Key = "name" | "status" | "rows_in" | "attempt";

/** JobsPage answers: is everything running? */
export function JobsPage() {
  const [params, setParams] = useSearchParams();
  const [sort, setSort] = useState<{ key: Key; down: boolean } | undefined>();
  const navigate = useNavigate();
  const jobs = useQuery({ queryKey: ["jobs"], queryFn: () => get<{ jobs: Job[] }>("/v1/jobs?limit=500") });
  const search = params.get("q") ?? "";
  const all = jobs.data?.jobs ?? [];
  const rates = useRates(jobs.data?.jobs, jobs.dataUpdatedAt);
  const shown = all.filter((j) => `${j.name} ${j.status}`.toLowerCase().includes(search.toLowerCase()));
  if (sort) {
    const sign = sort.down ? -1 : 1;
    shown.sort((a, b) => {
      const x = a[sort.key] ?? -1;
      const y = b[sort.key] ?? -1;
      return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
  }
  const header = (key: Key, label: string, numeric = false) => (
    <th className={numeric ? "num wide" : undefined} aria-sort={sort?.key === key ? (sort.down ? "descending" : "ascending") : undefined}>
      <button onClick={() => setSort({ key, down: sort?.key === key ? !sort.down : numeric })}>
        {label}
        {sort?.key === key ? (sort.down ? " ↓" : " ↑") : ""}
      </button>
    </th>
  );
  return (
    <>
      <div className="head">
        <h1>Jobs</h1>
        <span className="grow" />
        <input
          type="search"
          placeholder="Search"
          aria-label="Search jobs"
          value={search}
          onChange={(e) => setParams(e.target.value ? { q: e.target.value } : {}, { replace: true })}
        />
        <Link className="act" to="/sql">
          New job
        </Link>
      </div>
      <p className="answer">{summary(all, jobs.isPending)}</p>
      <Notice error={jobs.error} />
      {jobs.data && all.length === 0 && (
        <div className="panel empty">
          <p>No job yet. This line starts one on the demo table:</p>
          <pre>{example}</pre>
        </div>
      )}
      {all.length > 0 && (
        <div className="panel scroll">
          <table className="jobs">
            <thead>
              <tr>
                {header("name", "Name")}
                {header("status", "Status")}
                <th className="num">Rows/s</th>
                {header("rows_in", "Rows in", true)}
                <th className="wide">Last checkpoint</th>
                {header("attempt", "Attempt", true)}
                <th className="num wide">Parallelism</th>
                <th className="wide">Started</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((j) => (
                <tr key={j.id} className="press" onClick={() => void navigate(`/jobs/${j.name}`)}>
                  <td className="name">
                    <Link to={`/jobs/${j.name}`} title={j.name}>
                      {j.name}
                    </Link>
                  </td>
                  <td>
                    <Status value={j.status} />
                  </td>
                  <td className="num">
                    {j.status === "RUNNING" && <Spark values={rates.get(j.id) ?? []} />}
                    {j.status === "RUNNING" ? rate(j.rows_in_per_second ?? NaN) : "–"}
                  </td>
                  <td className="num wide">{countIfKnown(j.rows_in)}</td>
                  <td className="wide">
                    {j.last_checkpoint ? (
                      <>
                        <When at={j.last_checkpoint.completed_at} /> · {millis(j.last_checkpoint.duration_ms)} · {bytes(j.last_checkpoint.state_bytes)}
                      </>
                    ) : (
                      "–"
                    )}
                  </td>
                  <td className="num wide">{j.attempt}</td>
                  <td className="num wide">{j.parallelism}</td>
                  <td className="wide">
                    <When at={j.started_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function summary(jobs: Job[], pending: boolean) {
  if (pending) return "Reading…";
  const n = (status: string) => jobs.filter((j) => j.status === status).length;
  const troubled = [["FAILED", "failed"], ["RESTARTING", "restarting"]].filter(([status = ""]) => n(status) > 0).map(([status = "", word]) => `${n(status)} ${word}`);
  return (
    <>
      <b>{n("RUNNING")}</b> of {jobs.length} {jobs.length === 1 ? "job is" : "jobs are"} running
      {troubled.length > 0 ? `; ${troubled.join(", ")}.` : "."}
    </>
  );
}

/** Spark draws the last rates as a line. */
function Spark({ values }: { values: number[] }) {
  if (values.length < 2) return null;
  const most = Math.max(1, ...values);
  const points = values.map((v, i) => `${(60 * i) / (values.length - 1)},${15 - (14 * v) / most}`).join(" ");
  return (
    <svg className="spark" width="60" height="16" aria-hidden="true">
      <polyline points={points} fill="none" stroke="var(--muted)" strokeWidth="1.2" />
    </svg>
  );
}
