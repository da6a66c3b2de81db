import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useContext, useState } from "react";
import { useLocation, useSearchParams } from "react-router";
import { call, type Checkpoint, type CheckpointList, get, type Job, jobPath, type TriggeredCheckpoint } from "../api/client";
import { basePath, began, failedInARow, filterOf, recently, standing } from "../checkpoints";
import { bytes, count } from "../format";
import { CopyCurl } from "../parts/dialog";
import { Notice } from "../parts/notice";
import { Rows, useNarrow } from "../parts/rows";
import { Status } from "../parts/status";
import { Clock, When } from "../parts/time";
import { Detail } from "./checkpoint-detail";
import { Figures } from "./checkpoint-figures";
import { Filters } from "./checkpoint-filters";
import { historyPath, useHistory } from "./checkpoint-history";

/** JobCheckpoints answers: is the job right, and how far back would a failure throw it? */
export function JobCheckpoints({ job }: { job: Job }) {
  const [params, setParams] = useSearchParams();
  const filter = filterOf(params);
  const history = useHistory(job, filter);
  const rows = history.data?.rows ?? [];
  const open = Number(params.get("checkpoint") ?? 0);
  const set = useCallback(
    (changes: Record<string, string>) =>
      setParams(
        (p) => {
          for (const [key, value] of Object.entries(changes)) {
            if (value) p.set(key, value);
            else p.delete(key);
          }
          return p;
        },
        { replace: true },
      ),
    [setParams],
  );
  const toggle = (id: number) => set({ checkpoint: id === open ? "" : String(id), operator: "" });
  return (
    <div className="stack checkpoints">
      <Answer job={job} />
      <Figures job={job} filter={filter} rows={rows} onOpen={toggle} />
      {open > 0 && history.data && !rows.some((c) => c.id === open) && (
        <div className="panel">
          <header>
            <h2>{filter ? `${open}, which the filters leave out` : `Checkpoint ${open}`}</h2>
            <button className="link" onClick={() => toggle(open)}>
              Close
            </button>
          </header>
          <div className="body">
            <Detail job={job} id={open} />
          </div>
        </div>
      )}
      <div className="panel">
        <header className="wraps">
          <h2>History</h2>
          <Filters params={params} set={set} />
        </header>
        <Notice error={history.error} />
        {history.data && rows.length === 0 && !history.error && <Empty job={job} filtered={filter !== ""} />}
        {rows.length > 0 && <List key={filter} job={job} rows={rows} open={open} toggle={toggle} more={history.more} all={history.data?.next === undefined} />}
      </div>
    </div>
  );
}

/** Answer is the page's first line, with what may be done about it. */
function Answer({ job }: { job: Job }) {
  const { now } = useContext(Clock);
  const location = useLocation();
  const said = (location.state as { said?: string } | null)?.said;
  const path = basePath(job);
  const last = job.last_checkpoint;
  const known = last && job.base === `checkpoint:${last.id}` ? last.triggered_at : undefined;
  const base = useQuery({ queryKey: ["base", job.id, job.base], queryFn: () => get<{ triggered_at: string }>(path!), enabled: path !== undefined && known === undefined, refetchInterval: false, staleTime: Infinity });
  const recent = useQuery({ queryKey: ["recent", job.id], queryFn: () => get<CheckpointList>(historyPath(job, "status=completed,failed&type=checkpoint", { limit: recently })), refetchInterval: 2000 });
  const answer = standing(job, path === undefined ? undefined : (known ?? base.data?.triggered_at), failedInARow(recent.data?.checkpoints ?? [], last?.id), now);
  return (
    <div className="standing">
      <p className={answer.tone === "amber" ? "answer amber" : "answer"}>
        {answer.before}
        <b>{answer.number}</b>
        {answer.after}
      </p>
      <Take job={job} said={said} />
    </div>
  );
}

/** Take is the button that takes a checkpoint now, and what came of it. */
function Take({ job, said }: { job: Job; said?: string }) {
  const client = useQueryClient();
  const path = jobPath(job.name, "/checkpoints");
  const request = useMutation({
    mutationFn: () => call<TriggeredCheckpoint>("POST", path),
    onSuccess: () => client.invalidateQueries({ queryKey: ["history", job.id] }),
  });
  const words = request.data ? began(request.data) : said;
  return (
    <>
      <div className="take">
        <button className="act primary" disabled={job.status !== "RUNNING" || request.isPending} onClick={() => request.mutate()}>
          {request.isPending ? "Waiting for its turn…" : "Take checkpoint"}
        </button>
        <CopyCurl method="POST" path={path} />
        <span role="status" className="said">
          {request.isError ? "" : words}
        </span>
      </div>
      <Notice error={request.error} />
    </>
  );
}

function Empty({ job, filtered }: { job: Job; filtered: boolean }) {
  if (filtered) return <p className="empty">No checkpoint is like that. Take a filter away to see more.</p>;
  return (
    <div className="empty">
      <p>{job.checkpoint.interval === "0s" ? "No checkpoint yet: this job takes them on request only. This line takes one now:" : `No checkpoint yet; one is taken every ${job.checkpoint.interval}. This line takes one now:`}</p>
      <pre>{`curl -s -X POST '${location.origin}${jobPath(job.name, "/checkpoints?wait=30s")}'`}</pre>
    </div>
  );
}

/**
 * List is the history as a table without end. While its reader points at it, has opened a
 * row or gone down, newer rows wait to be asked for, so that nothing moves under his hand.
 */
function List({ job, rows, open, toggle, more, all }: { job: Job; rows: Checkpoint[]; open: number; toggle: (id: number) => void; more: () => void; all: boolean }) {
  const [away, setAway] = useState(false);
  const [over, setOver] = useState(false);
  const [top, setTop] = useState<number>();
  const narrow = useNarrow();
  const still = away || over || open > 0;
  if (still && top === undefined) setTop(rows[0]!.id);
  if (!still && top !== undefined) setTop(undefined);
  const held = top === undefined ? rows : rows.filter((c) => c.id <= Math.max(top, open));
  const newer = rows.length - held.length;
  return (
    <>
      {newer > 0 && (
        <div className="newer">
          <button
            onClick={() => {
              setTop(rows[0]!.id);
              if (away) document.querySelector(".checkpoints .panel:last-child")?.scrollIntoView();
            }}
          >
            Show {count(newer)} newer
          </button>
        </div>
      )}
      <table className="virtual" aria-label="Checkpoints" onPointerEnter={() => setOver(true)} onPointerLeave={() => setOver(false)} aria-rowcount={all ? rows.length : -1}>
        <thead>
          <tr>
            <th className="num id">Id</th>
            <th className="type">Type</th>
            <th className="state">Status</th>
            <th className="time">Triggered</th>
            <th className="num took">Duration, ms</th>
            <th className="num size">Size</th>
            <th className="num size new">New</th>
            <th className="why">Reason</th>
          </tr>
        </thead>
        <Rows rows={held} keyOf={(c) => c.id} row={(c) => <Row key={c.id} c={c} open={c.id === open} toggle={toggle} />} columns={narrow ? 5 : 8} open={held.findIndex((c) => c.id === open)} detail={<Detail key={open} job={job} id={open} />} onEnd={more} onAway={setAway} />
      </table>
      {!all && <p className="footnote">Reading older ones…</p>}
    </>
  );
}

function Row({ c, open, toggle }: { c: Checkpoint; open: boolean; toggle: (id: number) => void }) {
  const { now } = useContext(Clock);
  const took = c.status === "pending" ? Math.max(0, now - Date.parse(c.triggered_at)) : c.duration_ms;
  return (
    <tr data-row className={open ? "press chosen" : "press"} onClick={() => toggle(c.id)}>
      <td className="num">
        <button className="link" aria-expanded={open} aria-label={`Checkpoint ${c.id}`}>
          {c.id}
        </button>
      </td>
      <td className="type" title={c.savepoint}>
        {c.type}
        {c.savepoint ? ` ${c.savepoint}` : c.periodic ? "" : c.final ? ", final" : ", on request"}
      </td>
      <td>
        <Status value={c.status} />
      </td>
      <td>
        <When at={c.triggered_at} />
      </td>
      <td className="num">{count(took)}</td>
      <td className="num">{c.state_bytes > 0 ? bytes(c.state_bytes) : "–"}</td>
      <td className="num new">{c.new_bytes > 0 ? bytes(c.new_bytes) : "–"}</td>
      <td className="why" title={c.failure?.message}>
        {c.failure ? `${c.failure.reason}: ${c.failure.message}` : c.commits_open ? "its output is being made visible" : ""}
      </td>
    </tr>
  );
}
