import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { get, type Savepoint } from "../api/client";
import { bytes } from "../format";
import { Dialog } from "../parts/dialog";
import { Notice } from "../parts/notice";
import { Status } from "../parts/status";
import { When } from "../parts/time";

/** SavepointsPage answers: to which moments can I go back? */
export function SavepointsPage() {
  const query = useQuery({ queryKey: ["savepoints"], queryFn: () => get<{ savepoints: Savepoint[] }>("/v1/savepoints") });
  const [doomed, setDoomed] = useState<Savepoint>();
  const list = query.data?.savepoints ?? [];
  return (
    <>
      <div className="head">
        <h1>Savepoints</h1>
      </div>
      <p className="answer">
        {query.isPending ? (
          "Reading…"
        ) : (
          <>
            <b>{list.filter((s) => s.status === "completed").length}</b> moments to go back to.
          </>
        )}
      </p>
      <Notice error={query.error} />
      {query.data && list.length === 0 && (
        <div className="panel empty">
          <p>No savepoint yet. This line takes one of the job behaviors:</p>
          <pre>{`curl -s -X POST '${location.origin}/v1/jobs/behaviors/savepoints?wait=30s'`}</pre>
        </div>
      )}
      {list.length > 0 && (
        <div className="panel scroll">
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Job</th>
                <th>Status</th>
                <th>Taken</th>
                <th className="num">Checkpoint</th>
                <th className="num">Size</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {list.map((s) => (
                <tr key={s.name}>
                  <td className="mono">{s.name}</td>
                  <td>
                    <Link to={`/jobs/${s.job_name}`}>{s.job_name}</Link>
                  </td>
                  <td title={s.failure?.message}>
                    <Status value={s.status} />
                  </td>
                  <td>
                    <When at={s.triggered_at} />
                  </td>
                  <td className="num">{s.checkpoint}</td>
                  <td className="num">{bytes(s.state_bytes)}</td>
                  <td className="num">
                    <button className="link" onClick={() => setDoomed(s)}>
                      Delete
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {doomed && (
        <Dialog
          act={{ title: `Delete savepoint ${doomed.name}`, verb: "Delete savepoint", danger: true, method: "DELETE", path: `/v1/savepoints/${encodeURIComponent(doomed.name)}` }}
          onClose={() => setDoomed(undefined)}
        >
          <p>Nobody will be able to go back to it. Checkpoints and other savepoints stay.</p>
        </Dialog>
      )}
    </>
  );
}
