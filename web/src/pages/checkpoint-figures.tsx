import { useQuery } from "@tanstack/react-query";
import { useContext } from "react";
import { type Checkpoint, type CheckpointSummary, get, type Job, jobPath } from "../api/client";
import { bytes, count, millis } from "../format";
import { Clock } from "../parts/time";

const most = 120; // bars

/** Figures sum up the whole history, or what a filter lets through. */
export function Figures({ job, filter, rows, onOpen }: { job: Job; filter: string; rows: Checkpoint[]; onOpen: (id: number) => void }) {
  const query = useQuery({
    queryKey: ["summary", job.id, filter],
    queryFn: () => get<CheckpointSummary>(jobPath(job.name, `/checkpoints/summary${filter ? `?${filter}` : ""}`)),
    refetchInterval: 3000,
    placeholderData: (previous) => previous,
  });
  const sum = query.data;
  const some = sum !== undefined && sum.counts.completed > 0;
  const newest = rows.find((c) => c.status === "completed");
  const ended = sum ? sum.counts.completed + sum.counts.failed : 0;
  const share = sum && ended > 0 ? `${((100 * sum.counts.completed) / ended).toFixed(1)} % of ${count(ended)}` : "";
  const figure = (label: string, value: string, more: string, red = false) => (
    <div key={label}>
      <div className="label">{label}</div>
      <div className={red ? "value red" : "value"}>{value}</div>
      <div className="label more">{more}</div>
    </div>
  );
  return (
    <div className="panel">
      <div className="figures" style={{ border: 0 }}>
        {figure("Completed", sum ? count(sum.counts.completed) : "–", share)}
        {figure("Failed", sum ? count(sum.counts.failed) : "–", sum ? others(sum) : "", (sum?.counts.failed ?? 0) > 0)}
        {figure("Duration, p50 / p99", some ? `${millis(sum.duration_ms.p50)} / ${millis(sum.duration_ms.p99)}` : "–", some ? `longest ${millis(sum.duration_ms.max)}` : "")}
        {figure("State size", newest ? bytes(newest.state_bytes) : some ? bytes(sum.state_bytes.max) : "–", some ? `largest ${bytes(sum.state_bytes.max)}` : "")}
      </div>
      {rows.length > 0 && <Bars rows={rows} onOpen={onOpen} />}
      <p className="footnote">{filter ? "Of what the filters let through." : "Of the whole history."}</p>
    </div>
  );
}

function others(sum: CheckpointSummary): string {
  const { aborted, pending } = sum.counts;
  return [aborted > 0 ? `${count(aborted)} given up` : "", pending > 0 ? `${count(pending)} pending` : ""].filter(Boolean).join(", ");
}

/** Bars are the durations of the last checkpoints, the newest at the right. */
function Bars({ rows, onOpen }: { rows: Checkpoint[]; onOpen: (id: number) => void }) {
  const { now } = useContext(Clock);
  const took = (c: Checkpoint) => (c.status === "pending" ? Math.max(0, now - Date.parse(c.triggered_at)) : c.duration_ms);
  const bars = rows.slice(0, most).reverse();
  const longest = Math.max(0.001, ...bars.map(took));
  return (
    <div className="history">
      <span className="label">{millis(longest)}</span>
      <div className="bars" role="group" aria-label={`Durations of the last ${bars.length} checkpoints`}>
        {bars.map((c) => (
          <button
            key={c.id}
            tabIndex={-1}
            aria-label={`Checkpoint ${c.id}`}
            title={`${c.type} ${c.id}: ${c.failure?.reason ?? c.status}, ${millis(took(c))}`}
            onClick={() => onOpen(c.id)}
          >
            <i className={c.status} style={{ height: `${Math.max(4, (100 * took(c)) / longest)}%` }} />
          </button>
        ))}
      </div>
    </div>
  );
}
