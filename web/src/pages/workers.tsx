import { useQuery } from "@tanstack/react-query";
import { get, type Worker } from "../api/client";
import { Notice } from "../parts/notice";

/** WorkersPage answers: is there room, and who runs what? */
export function WorkersPage() {
  const query = useQuery({ queryKey: ["workers"], queryFn: () => get<{ workers: Worker[] }>("/v1/workers") });
  const list = query.data?.workers ?? [];
  const sum = (f: (w: Worker) => number) => list.reduce((n, w) => n + f(w), 0);
  return (
    <>
      <div className="head">
        <h1>Workers</h1>
      </div>
      <p className="answer">
        {query.isPending ? (
          "Reading…"
        ) : (
          <>
            <b>{sum((w) => w.free_slots)}</b> of {sum((w) => w.slots)} slots free on {list.length} {list.length === 1 ? "worker" : "workers"}.
          </>
        )}
      </p>
      <Notice error={query.error} />
      {query.data && list.length === 0 && (
        <div className="panel empty">
          <p>No worker is here, so no job can run. This line starts one:</p>
          <pre>weir worker --nats nats://HOST:4222 --storage file:///PATH --slots 4</pre>
        </div>
      )}
      {list.length > 0 && (
        <div className="panel scroll">
          <table>
            <thead>
              <tr>
                <th>Id</th>
                <th>Host</th>
                <th className="num">Process</th>
                <th className="num">Slots</th>
                <th className="num">Free</th>
                <th className="num">Tasks</th>
              </tr>
            </thead>
            <tbody>
              {list.map((w) => (
                <tr key={w.id}>
                  <td className="mono">{w.id}</td>
                  <td>{w.host}</td>
                  <td className="num">{w.pid}</td>
                  <td className="num">{w.slots}</td>
                  <td className="num">{w.free_slots}</td>
                  <td className="num">{w.tasks}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
