import { useQuery } from "@tanstack/react-query";
import { lazy } from "react";
import { Link, useNavigate, useParams, useSearchParams } from "react-router";
import { get, type Job, jobPath } from "../api/client";
import { bytes, count, countIfKnown, millis, rate } from "../format";
import { rejected } from "../rejects";
import { Later } from "../parts/later";
import { Notice } from "../parts/notice";
import { hasEnded, Status } from "../parts/status";
import { When } from "../parts/time";
import { JobActs } from "./job-acts";
import { Behind } from "./job-behind";
import { JobEvents } from "./job-events";
import { JobGraph } from "./job-graph";
import { JobRejects } from "./job-rejects";
import { JobResult } from "./job-result";

const JobCheckpoints = lazy(() => import("./job-checkpoints").then((m) => ({ default: m.JobCheckpoints })));

const tabs = [
  ["overview", "Overview"],
  ["checkpoints", "Checkpoints"],
  ["rejects", "Rejected rows"],
  ["events", "Events"],
  ["sql", "SQL & settings"],
] as const;

/** JobPage answers: is it running, is it right, how do I get back to when it was? */
export function JobPage() {
  const { job: name = "" } = useParams();
  const [params] = useSearchParams();
  const navigate = useNavigate();
  const tab = params.get("tab") ?? "overview";
  const query = useQuery({ queryKey: ["job", name], queryFn: () => get<Job>(jobPath(name)) });
  const job = query.data;
  if (!job) return query.isPending ? <p className="answer">Reading…</p> : <Notice error={query.error} />;
  return (
    <>
      <div className="head">
        <h1>{job.name}</h1>
        <Status value={job.status} />
        <span className="grow" />
        <JobActs job={job} onDeleted={() => void navigate("/")} />
      </div>
      <Answer job={job} />
      {job.status === "FAILED" && ["metastore_behind", "restore"].includes(job.failure?.reason ?? "") ? (
        <Behind job={job} />
      ) : job.failure && (
        <div className={job.status === "FAILED" ? "notice red" : "notice amber"}>
          <b>{job.failure.reason}</b>: {job.failure.message}
        </div>
      )}
      <div className="tabs" role="tablist">
        {tabs.filter(([id]) => id !== "rejects" || job.on_row_error !== "fail").map(([id, title]) => (
          <Link key={id} to={`?tab=${id}`} role="tab" aria-selected={tab === id} className={tab === id ? "active" : ""}>
            {title}
          </Link>
        ))}
      </div>
      {tab === "overview" && (
        <div className="stack">
          <JobGraph job={job} />
          <JobResult key={job.id} job={job} />
        </div>
      )}
      {tab === "checkpoints" && (
        <Later>
          <JobCheckpoints job={job} />
        </Later>
      )}
      {tab === "rejects" && <JobRejects job={job} />}
      {tab === "events" && <JobEvents job={job} />}
      {tab === "sql" && <Settings job={job} />}
    </>
  );
}

function Answer({ job }: { job: Job }) {
  const cp = job.last_checkpoint;
  return (
    <p className="answer">
      {job.status === "RUNNING" ? (
        <>
          Running at <b>{rate(job.rows_in_per_second ?? NaN)}</b> rows/s, {countIfKnown(job.rows_in)} rows in{" · "}
        </>
      ) : job.rows_in !== undefined && (
        <>
          <b>{count(job.rows_in)}</b> rows in when last seen{" · "}
        </>
      )}
      {job.rows_rejected !== undefined && job.rows_rejected > 0 && (
        <>
          <Link to="?tab=rejects">
            <b>{rejected(job.rows_rejected, count)}</b>
          </Link>
          {" · "}
        </>
      )}
      attempt {job.attempt}
      {job.restored_from && job.restored_from !== "nothing" ? ` from ${job.restored_from}` : ""}
      {" · "}
      {cp ? (
        <>
          last checkpoint {cp.id}, <When at={cp.completed_at} />, {millis(cp.duration_ms)}, {bytes(cp.state_bytes)}
        </>
      ) : (
        `no checkpoint${hasEnded(job.status) ? "" : " yet"}`
      )}
    </p>
  );
}

function Settings({ job }: { job: Job }) {
  const rows: [string, string][] = [
    ["Id", job.id],
    ["Parallelism", `${job.parallelism} of at most ${job.max_parallelism}`],
    ["Created", job.created_at],
    ["on_row_error", job.on_row_error],
    ["latency_target", job.latency_target],
    ...Object.entries(job.checkpoint ?? {}).map(([k, v]): [string, string] => [`checkpoint.${k}`, String(v)]),
    ...Object.entries(job.restart ?? {}).map(([k, v]): [string, string] => [`restart.${k}`, String(v)]),
  ];
  return (
    <div className="stack">
      <div className="panel">
        <header>
          <h2>SQL</h2>
          <button className="link" onClick={() => void navigator.clipboard.writeText(job.sql)}>
            Copy
          </button>
        </header>
        <div className="body">
          <pre>{job.sql}</pre>
        </div>
      </div>
      <div className="panel scroll">
        <table>
          <tbody>
            {rows.map(([name, value]) => (
              <tr key={name}>
                <td>{name}</td>
                <td className="mono wrap">{value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
