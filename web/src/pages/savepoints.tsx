import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useSearchParams } from "react-router";
import { curl, get, type Job, jobPath, type Savepoint } from "../api/client";
import { bytes, count } from "../format";
import { type Act, CopyCurl, Dialog } from "../parts/dialog";
import { Notice } from "../parts/notice";
import { Rows, useNarrow } from "../parts/rows";
import { Status } from "../parts/status";
import { When } from "../parts/time";
import { restoring } from "../savepoints";

/** SavepointsPage answers: to which moments can I go back? */
export function SavepointsPage() {
  const [params, setParams] = useSearchParams();
  const query = useQuery({ queryKey: ["savepoints"], queryFn: () => get<{ savepoints: Savepoint[] }>("/v1/savepoints") });
  const jobs = useQuery({ queryKey: ["jobs"], queryFn: () => get<{ jobs: Job[] }>("/v1/jobs?limit=500"), refetchInterval: 5000 });
  const [doomed, setDoomed] = useState<Savepoint>();
  const narrow = useNarrow();
  const list = query.data?.savepoints ?? [];
  const search = params.get("q") ?? "";
  const open = params.get("savepoint");
  const shown = list.filter((s) => `${s.name} ${s.job_name} ${s.status}`.toLowerCase().includes(search.toLowerCase()));
  const set = (key: string, value: string) =>
    setParams(
      (p) => {
        if (value) p.set(key, value);
        else p.delete(key);
        return p;
      },
      { replace: true },
    );
  const toggle = (name: string) => set("savepoint", name === open ? "" : name);
  const opened = shown.findIndex((s) => s.name === open);
  return (
    <>
      <div className="head">
        <h1>Savepoints</h1>
        <span className="grow" />
        <input type="search" placeholder="Search" aria-label="Search savepoints" value={search} onChange={(e) => set("q", e.target.value)} />
      </div>
      <p className="answer">{query.isPending ? "Reading…" : query.data && <Answer list={list} />}</p>
      <Notice error={query.error} />
      {query.data && list.length === 0 && (
        <div className="panel empty">
          <p>No savepoint yet. This line takes one of the job {jobs.data?.jobs[0]?.name ?? "behaviors"}:</p>
          <pre>{`curl -s -X POST '${location.origin}${jobPath(jobs.data?.jobs[0]?.name ?? "behaviors", "/savepoints?wait=30s")}'`}</pre>
        </div>
      )}
      {list.length > 0 && shown.length === 0 && <p className="panel empty">No savepoint is called like that.</p>}
      {shown.length > 0 && (
        <div className="panel">
          <table className="virtual savepoints" aria-label="Savepoints">
            <thead>
              <tr>
                <th className="name">Name</th>
                <th className="job">Job</th>
                <th className="state">Status</th>
                <th className="time">Taken</th>
                <th className="num size new">Checkpoint</th>
                <th className="num size">Size</th>
                <th className="num act" />
              </tr>
            </thead>
            <Rows
              rows={shown}
              keyOf={(s) => s.name}
              columns={narrow ? 4 : 7}
              open={opened}
              detail={opened >= 0 && <Back s={shown[opened]!} jobs={jobs.data?.jobs} narrow={narrow} onDelete={setDoomed} />}
              row={(s) => (
                <tr key={s.name} data-row className={s.name === open ? "press chosen" : "press"} onClick={() => toggle(s.name)}>
                  <td title={s.name}>
                    <button className="link mono" aria-expanded={s.name === open}>
                      {s.name}
                    </button>
                  </td>
                  <td className="job" title={s.job_name}>
                    {s.job_name}
                  </td>
                  <td title={s.failure?.message}>
                    <Status value={s.status} />
                  </td>
                  <td>
                    <When at={s.triggered_at} />
                  </td>
                  <td className="num new">{s.checkpoint}</td>
                  <td className="num">{s.state_bytes > 0 ? bytes(s.state_bytes) : "–"}</td>
                  <td className="num act">
                    {s.status !== "pending" && (
                      <button
                        className="link"
                        aria-label={`Delete ${s.name}`}
                        onClick={(e) => {
                          e.stopPropagation();
                          setDoomed(s);
                        }}
                      >
                        Delete
                      </button>
                    )}
                  </td>
                </tr>
              )}
            />
          </table>
        </div>
      )}
      {doomed && <Delete s={doomed} onClose={() => setDoomed(undefined)} />}
    </>
  );
}

function Answer({ list }: { list: Savepoint[] }) {
  const whole = list.filter((s) => s.status === "completed");
  const pending = list.filter((s) => s.status === "pending").length;
  const size = whole.reduce((n, s) => n + s.state_bytes, 0);
  return (
    <>
      <b>{count(whole.length)}</b> {whole.length === 1 ? "moment" : "moments"} to go back to
      {whole.length > 0 && (
        <>
          , {bytes(size)} in all; the newest of {whole[0]!.job_name}, <When at={whole[0]!.triggered_at} />
        </>
      )}
      {pending > 0 ? `; ${count(pending)} under way.` : "."}
    </>
  );
}

/** Back is how to go back to a savepoint, or why one cannot. */
function Back({ s, jobs, narrow, onDelete }: { s: Savepoint; jobs?: Job[]; narrow: boolean; onDelete: (s: Savepoint) => void }) {
  const job = jobs?.find((j) => j.id === s.job);
  const history = `/jobs/${s.job_name}?tab=checkpoints&checkpoint=${s.checkpoint}`;
  const { request, command } = restoring(s, job !== undefined || jobs === undefined);
  return (
    <div className="detail">
      {narrow && (
        <p>
          <span className="mono">{s.name}</span> of {s.job_name}
        </p>
      )}
      {s.failure && (
        <div className={s.status === "failed" ? "notice red" : "notice"}>
          <b>{s.failure.reason}</b>: {s.failure.message}
        </div>
      )}
      {s.status === "pending" && (
        <p>
          It is being taken. <Link to={history}>Who is missing, and Cancel</Link>
        </p>
      )}
      {s.status === "completed" && (
        <>
          <p>{command ? "This takes the job back to it; the running attempt is ended without a savepoint:" : `The job ${s.job_name} is gone. A new one may start from this savepoint:`}</p>
          {command && <pre>{command}</pre>}
          <pre>{curl("POST", request.path, request.body)}</pre>
        </>
      )}
      <div className="acts">
        {command && s.status === "completed" && <Copy text={command} />}
        {s.status === "completed" && <CopyCurl method="POST" {...request} />}
        {job && (
          <Link className="act" to={history}>
            Its checkpoint
          </Link>
        )}
        {narrow && s.status !== "pending" && (
          <button className="act danger" onClick={() => onDelete(s)}>
            Delete
          </button>
        )}
        {s.manifest && <span className="mono muted key-text">{s.manifest}</span>}
      </div>
    </div>
  );
}

function Copy({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <button className="act" onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}>
      {copied ? "Copied" : "Copy restore command"}
    </button>
  );
}

function Delete({ s, onClose }: { s: Savepoint; onClose: () => void }) {
  const act: Act = { title: `Delete savepoint ${s.name}`, verb: "Delete savepoint", danger: true, method: "DELETE", path: `/v1/savepoints/${encodeURIComponent(s.name)}` };
  return (
    <Dialog act={act} onClose={onClose}>
      {s.status === "completed" ? (
        <p>
          What is lost: the moment of <b>{s.job_name}</b> taken <When at={s.triggered_at} />, {bytes(s.state_bytes)} of state. Nobody will be able to go back to it. Checkpoints and other savepoints stay.
        </p>
      ) : (
        <p>Nothing is lost: it did not complete. Only its entry goes.</p>
      )}
    </Dialog>
  );
}
