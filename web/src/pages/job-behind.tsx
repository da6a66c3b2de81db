import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type AdoptableCheckpoint, get, type Job, jobPath } from "../api/client";
import { bytes } from "../format";
import { Dialog } from "../parts/dialog";
import { Notice } from "../parts/notice";

/** Behind says that storage knows more of a job than the metastore, what lies there, and offers to go on from it. */
export function Behind({ job }: { job: Job }) {
  const query = useQuery({ queryKey: ["adoptable", job.id], queryFn: () => get<{ checkpoints: AdoptableCheckpoint[] }>(jobPath(job.name, "/adoptable")), refetchInterval: 10_000 });
  const [chosen, setChosen] = useState<AdoptableCheckpoint>();
  const list = query.data?.checkpoints ?? [];
  const name = (c: AdoptableCheckpoint) => (c.savepoint ? `savepoint ${c.savepoint}` : `checkpoint ${c.checkpoint}`);
  return (
    <div className="notice amber behind">
      <p>
        <b>Nothing was deleted.</b>{" "}
        {job.failure?.reason === "restore"
          ? "The job could not start from what the metastore names. Mend that, or go on from what storage has:"
          : "Storage has newer checkpoints of this job than the metastore knows, as when the metastore is restored from a backup. The job waits for you: restore the metastore to its newest state, or go on from what storage has."}
      </p>
      <p className="hint">{job.failure?.message}</p>
      <Notice error={query.error} />
      {query.data && list.length === 0 && <p>Storage has no checkpoint of this job.</p>}
      {list.length > 0 && (
        <div className="scroll tall">
          <table aria-label="In storage">
            <thead>
              <tr>
                <th className="num">Id</th>
                <th>Type</th>
                <th className="wide">Attempt</th>
                <th className="num">Size</th>
                <th className="wide">Metastore</th>
                <th>Restorable</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {list.map((c) => (
                <tr key={c.checkpoint}>
                  <td className="num">{c.checkpoint}</td>
                  <td title={c.savepoint}>
                    {c.type ?? "–"}
                    {c.savepoint ? ` ${c.savepoint}` : c.final ? ", final" : ""}
                  </td>
                  <td className="mono wide">{c.attempt ?? "–"}</td>
                  <td className="num">{bytes(c.state_bytes)}</td>
                  <td className="wide">{c.known ? "knows it" : "does not know it"}</td>
                  <td title={c.problem}>{c.whole ? "yes" : `no: ${c.problem ?? "it is not whole"}`}</td>
                  <td className="num">
                    {c.whole && (
                      <button className="link" aria-label={`Adopt ${c.checkpoint}`} onClick={() => setChosen(c)}>
                        Adopt…
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {chosen && (
        <Dialog act={{ title: `Adopt ${name(chosen)}`, verb: "Adopt", danger: true, method: "POST", path: jobPath(job.name, "/adopt"), body: { checkpoint: chosen.checkpoint } }} onClose={() => setChosen(undefined)}>
          <p>
            The job will start from {name(chosen)} ({bytes(chosen.state_bytes)}), and its numbers go on above all that storage has. What it read after that is read again. {newer(list, chosen)} It is not started by this: press Restore… after it.
          </p>
        </Dialog>
      )}
    </div>
  );
}

/** newer says what is passed over by taking an older one. */
function newer(list: AdoptableCheckpoint[], chosen: AdoptableCheckpoint): string {
  const n = list.filter((c) => c.whole && c.checkpoint > chosen.checkpoint).length;
  return n === 0 ? "It is the newest one that can be restored." : `${n} newer ${n === 1 ? "one that" : "ones that"} could be restored ${n === 1 ? "is" : "are"} passed over.`;
}
