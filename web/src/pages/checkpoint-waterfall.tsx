import { useState } from "react";
import { useSearchParams } from "react-router";
import type { CheckpointDetail, CheckpointSubtask, CheckpointTask } from "../api/client";
import { acked, axis, chainName, lane, lastOf, sameTask, slowest, taskName, ticks } from "../checkpoints";
import { bytes, count, millis } from "../format";

type Operator = CheckpointDetail["operators"][number];

const few = 50; // subtasks shown unless all are asked for

const phases = [
  ["delay", "start delay"],
  ["align", "alignment"],
  ["cut", "cut"],
  ["upload", "upload"],
  ["commit", "commit"],
] as const;

/** Waterfall lays the parts of all subtasks out on one time axis, operator by operator. */
export function Waterfall({ d }: { d: CheckpointDetail }) {
  const [params, setParams] = useSearchParams();
  const end = axis(d);
  const marks = ticks(end);
  const last = lastOf(d);
  const chosen = params.get("operator") ?? last?.operator ?? d.failure?.operator;
  const toggle = (id: string) =>
    setParams(
      (p) => {
        p.set("operator", id === chosen ? "none" : id);
        return p;
      },
      { replace: true },
    );
  return (
    <div className="waterfall">
      <p className="key">
        {phases.map(([name, label]) => (
          <span key={name}>
            <i className={name} />
            {label}
          </span>
        ))}
        {last && <span>last: {taskName(last)}</span>}
      </p>
      <table aria-label="Waterfall">
        <thead>
          <tr>
            <th className="who">Operator, subtask</th>
            <th className="axis">
              <div>
                {marks.filter((t) => t <= 0.85 * end).map((t) => (
                  <span key={t} style={{ left: `${(100 * t) / end}%` }}>
                    {millis(t)}
                  </span>
                ))}
              </div>
            </th>
            {phases.map(([name, label]) => (
              <th key={name} className="num phase">
                {label[0]!.toUpperCase() + label.slice(1)}, ms
              </th>
            ))}
            <th className="num part">New</th>
            <th className="num part">Total</th>
          </tr>
        </thead>
        {d.operators.map((o) => (
          <Lanes key={o.id} d={d} o={o} last={last} end={end} marks={marks} open={chosen === o.id} toggle={() => toggle(o.id)} />
        ))}
      </table>
    </div>
  );
}

/** Lanes are an operator, as its slowest subtask, and below it its subtasks. */
function Lanes({ d, o, last, end, marks, open, toggle }: { d: CheckpointDetail; o: Operator; last?: CheckpointTask; end: number; marks: number[]; open: boolean; toggle: () => void }) {
  const [all, setAll] = useState(false);
  const worst = slowest(o.subtasks);
  const late = d.status === "completed" ? (o.last?.subtask ?? worst?.index) : undefined;
  const sum = (f: (s: CheckpointSubtask) => number) => o.subtasks.reduce((n, s) => n + f(s), 0);
  let list = o.subtasks;
  if (!all && list.length > few) list = [...list].sort((a, b) => acked(b) - acked(a)).slice(0, few);
  return (
    <tbody>
      <tr className="press operator" onClick={toggle}>
        <td className="who" title={o.name}>
          <div>
            <button className="link name" aria-expanded={open}>
              {open ? "▾" : "▸"} <b>{chainName(o.name)}</b>
            </button>
            <span className="muted">×{o.subtasks.length}</span>
            {last?.operator === o.id && <em>last</em>}
          </div>
        </td>
        <td className="axis">{worst && <Fall s={worst} d={d} end={end} marks={marks} />}</td>
        {worst && <Numbers s={worst} />}
        <td className="num part">{bytes(sum((s) => s.new_bytes))}</td>
        <td className="num part">{bytes(sum((s) => s.total_bytes))}</td>
      </tr>
      {open &&
        list.map((s) => (
          <tr key={s.index} className={sameTask(last, o.id, s.index) ? "subtask slowest" : "subtask"}>
            <td className="who" title={`${s.worker}${s.last_input ? `; the last barrier came from ${taskName(s.last_input)}` : ""}`}>
              <div>
                {s.index} <span className="muted name">{s.worker}</span>
                {s.index === late && o.subtasks.length > 1 && <em>slowest</em>}
              </div>
            </td>
            <td className="axis">
              <Fall s={s} d={d} end={end} marks={marks} />
              <div className="spoken">{spoken(s)}</div>
              {s.failure && (
                <div className="fault">
                  <b>{s.failure.reason}</b>: {s.failure.message}
                </div>
              )}
            </td>
            <Numbers s={s} />
            <td className="num part">{bytes(s.new_bytes)}</td>
            <td className="num part">{bytes(s.total_bytes)}</td>
          </tr>
        ))}
      {open && list.length < o.subtasks.length && (
        <tr>
          <td colSpan={9} className="wrap">
            The {few} slowest.{" "}
            <button className="link" onClick={() => setAll(true)}>
              Show all {count(o.subtasks.length)}
            </button>
          </td>
        </tr>
      )}
    </tbody>
  );
}

const digits = (ms: number) => (ms === 0 ? "–" : ms < 0.1 ? ms.toFixed(2) : ms < 10 ? ms.toFixed(1) : count(ms));

function spoken(s: CheckpointSubtask): string {
  const parts = [s.start_delay_ms, s.alignment_ms, s.cut_ms, s.upload_ms, s.commit_ms];
  return phases.flatMap(([, label], i) => (parts[i]! > 0 ? [`${label} ${millis(parts[i]!)}`] : [])).join(" · ");
}

function Numbers({ s }: { s: CheckpointSubtask }) {
  return [s.start_delay_ms, s.alignment_ms, s.cut_ms, s.upload_ms, s.commit_ms].map((ms, i) => (
    <td key={i} className="num phase">
      {digits(ms)}
    </td>
  ));
}

/** Fall is one lane; a thin line marks the decision. */
function Fall({ s, d, end, marks }: { s: CheckpointSubtask; d: CheckpointDetail; end: number; marks: number[] }) {
  const at = (ms: number) => `${(100 * ms) / end}%`;
  return (
    <div className="fall" title={spoken(s)}>
      {marks.slice(1).map((t) => (
        <u key={t} style={{ left: at(t) }} />
      ))}
      {lane(s, d.duration_ms).map((g) => (
        <i key={g.name} className={g.name} style={{ left: at(g.from), width: at(g.to - g.from) }} />
      ))}
      {d.status === "completed" && <s title={`decided after ${millis(d.duration_ms)}`} style={{ left: at(d.duration_ms) }} />}
    </div>
  );
}
