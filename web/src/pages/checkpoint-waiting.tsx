import type { CheckpointDetail } from "../api/client";
import { chainName, taskName } from "../checkpoints";
import { count, millis } from "../format";

const most = 100;

const stages: Record<string, string> = {
  waiting: "has seen no barrier",
  aligning: "holds, for the other barriers",
  cutting: "is cutting its state",
  uploading: "is uploading its state",
};

/** Waiting shows who is missing of a pending checkpoint, and since when. */
export function Waiting({ d }: { d: CheckpointDetail }) {
  const all = [...(d.waiting_for ?? [])].sort((a, b) => b.since_ms - a.since_ms);
  const list = all.slice(0, most);
  return (
    <>
      {all.length === 0 && !d.waiting_unknown && <p>Every task has acknowledged it; the decision is being recorded.</p>}
      {d.waiting_unknown && <p className="hint">Not all is known: {d.waiting_unknown}</p>}
      {list.length > 0 && (
        <>
          <p className="path">
            It waits for <b>{count(all.length)}</b> {all.length === 1 ? "subtask" : "subtasks"}, the longest for {millis(all[0]!.since_ms)}: {taskName(all[0]!)} {stages[all[0]!.stage]}
            {all[0]!.missing?.length ? `; it misses the one of ${taskName(all[0]!.missing[0]!)}` : ""}
            {all[0]!.back_pressured > 0.5 ? `; it is back-pressured ${Math.round(100 * all[0]!.back_pressured)} %` : ""}
            {all[0]!.doing ? ` (${all[0]!.doing})` : ""}.
          </p>
          <div className="scroll">
            <table aria-label="Waiting for">
              <thead>
                <tr>
                  <th>Operator</th>
                  <th className="num">Subtask</th>
                  <th>Worker</th>
                  <th>Stage</th>
                  <th className="num">Since</th>
                  <th className="num">Back-pressured, %</th>
                  <th className="num">Busy, %</th>
                  <th>Misses the barrier of</th>
                </tr>
              </thead>
              <tbody>
                {list.map((w) => (
                  <tr key={`${w.operator}/${w.subtask}`}>
                    <td className="short" title={w.name}>
                      {chainName(w.name)}
                    </td>
                    <td className="num">{w.subtask}</td>
                    <td>{w.worker ?? "–"}</td>
                    <td>{stages[w.stage]}</td>
                    <td className="num">{millis(w.since_ms)}</td>
                    <td className={w.back_pressured > 0.5 ? "num red" : "num"}>{Math.round(100 * w.back_pressured)}</td>
                    <td className="num">{Math.round(100 * w.busy)}</td>
                    <td title={w.missing?.map(taskName).join(", ")}>{w.missing?.map(taskName).join(", ") || "–"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {all.length > most && <p className="footnote">The {most} that have waited longest, of {count(all.length)}.</p>}
        </>
      )}
    </>
  );
}
