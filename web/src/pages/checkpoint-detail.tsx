import { useQuery } from "@tanstack/react-query";
import { useContext, useState } from "react";
import { type CheckpointDetail, get, type Job, jobPath } from "../api/client";
import { counts, remedy } from "../checkpoints";
import { bytes, count, exact, millis } from "../format";
import { CopyCurl, Dialog } from "../parts/dialog";
import { Notice } from "../parts/notice";
import { Clock } from "../parts/time";
import { Waiting } from "./checkpoint-waiting";
import { Waterfall } from "./checkpoint-waterfall";
import { Restore } from "./job-acts";

/** Detail says where a checkpoint spent its time, or what ended it, or whom it waits for. */
export function Detail({ job, id }: { job: Job; id: number }) {
  const path = jobPath(job.name, `/checkpoints/${id}`);
  const query = useQuery({
    queryKey: ["checkpoint", job.id, id],
    queryFn: () => get<CheckpointDetail>(path),
    refetchInterval: ({ state }) => (state.data && state.data.status !== "pending" && !state.data.commits_open ? 10_000 : 1000),
  });
  const d = query.data;
  if (!d) return query.isPending ? <p>Reading…</p> : <Notice error={query.error} />;
  return (
    <div className="detail">
      {d.critical_path && <p className="path">{d.critical_path}</p>}
      {d.failure && <Ended job={job} d={d} />}
      {d.status === "pending" && <Waiting d={d} />}
      {d.operators.length > 0 ? <Waterfall d={d} /> : <Without d={d} />}
      <Facts d={d} />
      <Acts job={job} d={d} path={path} />
    </div>
  );
}

/** Ended is what ended a checkpoint: what, where, why, and what to do. */
function Ended({ job, d }: { job: Job; d: CheckpointDetail }) {
  const f = d.failure!;
  const name = d.operators.find((o) => o.id === f.operator)?.name;
  const where = [name && f.subtask !== undefined ? `${name} subtask ${f.subtask}` : name, f.worker ?? ""].filter(Boolean).join(", ");
  return (
    <div className={d.status === "failed" ? "notice red" : "notice"}>
      <p>
        <b>{f.reason}</b>: {f.message}
      </p>
      {where && <p className="hint">Where: {where}.</p>}
      <p className="hint">
        {remedy(f.reason, job)}
        {counts(d) ? ` It counts towards tolerable_failures (${job.checkpoint.tolerable_failures ?? 0}).` : d.status === "aborted" ? " It does not count as a failure." : ""}
      </p>
    </div>
  );
}

function Without({ d }: { d: CheckpointDetail }) {
  if (d.status === "pending") return null;
  if (d.thinned) return <p className="hint">The detail of each subtask was given up: it is kept for 7 days, or as long as the server&apos;s --history-detail says. The figures stay.</p>;
  return <p className="hint">No task had acknowledged it.</p>;
}

/** Facts are what else is known of it, as a line that wraps. */
function Facts({ d }: { d: CheckpointDetail }) {
  const { utc } = useContext(Clock);
  const why = d.type === "savepoint" ? "asked for by name" : d.periodic ? "by the interval" : d.final ? "the last one of a bounded job" : "on request";
  const facts: [string, string][] = [
    ["Attempt", count(d.attempt)],
    ["Begun", `${exact(d.triggered_at, utc)}, ${why}`],
  ];
  if (d.completed_at) facts.push([d.status === "completed" ? "Completed" : "Ended", `${exact(d.completed_at, utc)}, after ${millis(d.duration_ms)}`]);
  if (d.committed_at) facts.push(["Output visible", `${millis(d.commit_ms)} after that`]);
  else if (d.output_given_up) facts.push(["Output", "what was not visible was given up with abandon_output"]);
  else if (d.commits_open) facts.push(["Output", "is being made visible by its sinks"]);
  if (d.status === "completed") {
    facts.push(["Size", `${bytes(d.state_bytes)}, of it new ${bytes(d.new_bytes)}`]);
    facts.push(["Restorable", d.discarded ? "no: retention has given it up" : "yes"]);
  }
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
      {d.manifest && (
        <div>
          <dt>Manifest</dt>
          <dd className="mono">{d.manifest}</dd>
        </div>
      )}
    </dl>
  );
}

/** Acts are what may be done with it. */
function Acts({ job, d, path }: { job: Job; d: CheckpointDetail; path: string }) {
  const [asked, setAsked] = useState<"cancel" | "restore">();
  const close = () => setAsked(undefined);
  const what = d.type === "savepoint" ? `savepoint ${d.savepoint}` : `checkpoint ${d.id}`;
  return (
    <div className="acts">
      {d.status === "pending" && (
        <button className="act danger" onClick={() => setAsked("cancel")}>
          Cancel {d.type}
        </button>
      )}
      {d.status === "completed" && !d.discarded && (
        <button className="act" onClick={() => setAsked("restore")}>
          Restore from here…
        </button>
      )}
      <CopyCurl method="GET" path={path} />
      {asked === "cancel" && (
        <Dialog act={{ title: `Cancel ${what}`, verb: `Cancel ${d.type}`, danger: true, method: "DELETE", path }} onClose={close}>
          <p>{d.type === "savepoint" ? `There will be no savepoint ${d.savepoint}.` : "What its tasks have written so far is thrown away, and its output becomes visible with the next one."} The job runs on, and it does not count as a failure.</p>
        </Dialog>
      )}
      {asked === "restore" && <Restore job={job} from={d.type === "savepoint" ? `savepoint:${d.savepoint}` : `checkpoint:${d.id}`} onClose={close} />}
    </div>
  );
}
