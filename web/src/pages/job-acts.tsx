import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { type Checkpoint, get, type Job, jobPath, type Savepoint, type TriggeredCheckpoint } from "../api/client";
import { began } from "../checkpoints";
import { bytes } from "../format";
import { type Act, Dialog } from "../parts/dialog";
import { hasEnded } from "../parts/status";

/** JobActs are the buttons of a job: what its status allows. */
export function JobActs({ job, onDeleted }: { job: Job; onDeleted: () => void }) {
  const [open, setOpen] = useState<"savepoint" | "stop" | "cancel" | "restore" | "delete">();
  const navigate = useNavigate();
  const over = hasEnded(job.status);
  const close = () => setOpen(undefined);
  return (
    <>
      <button className="act" disabled={job.status !== "RUNNING"} onClick={() => setOpen("savepoint")}>
        Savepoint
      </button>
      <button className="act" disabled={job.status !== "RUNNING"} onClick={() => setOpen("stop")}>
        Stop
      </button>
      <button className="act" onClick={() => setOpen("restore")}>
        Restore…
      </button>
      {over ? (
        <button className="act danger" onClick={() => setOpen("delete")}>
          Delete
        </button>
      ) : (
        <button className="act danger" onClick={() => setOpen("cancel")}>
          Cancel
        </button>
      )}
      {open === "savepoint" && <NamedAct job={job} rest="/savepoints" onDone={(answer) => void navigate("?tab=checkpoints", { state: { said: began(answer as TriggeredCheckpoint) } })} title={`Savepoint of ${job.name}`} verb="Take savepoint" words="A savepoint is yours: it is kept until you delete it." onClose={close} />}
      {open === "stop" && <NamedAct job={job} rest="/stop" title={`Stop ${job.name}`} verb="Stop with savepoint" words="The job takes a savepoint and stops; it can go on from there, and nothing is lost." onClose={close} />}
      {open === "restore" && <Restore job={job} onClose={close} />}
      {open === "cancel" && (
        <Dialog act={{ title: `Cancel ${job.name}`, verb: "Cancel job", danger: true, method: "POST", path: jobPath(job.name, "/cancel") }} onClose={close}>
          <p>The job ends without a savepoint: what it counted since its last checkpoint is counted again when it starts.</p>
        </Dialog>
      )}
      {open === "delete" && (
        <Dialog act={{ title: `Delete ${job.name}`, verb: "Delete job", danger: true, method: "DELETE", path: jobPath(job.name) }} onClose={close} onDone={onDeleted}>
          <p>The job, its history, its result and its checkpoints are deleted. Savepoints stay.</p>
        </Dialog>
      )}
    </>
  );
}

function NamedAct({ job, rest, title, verb, words, onClose, onDone }: { job: Job; rest: string; title: string; verb: string; words: string; onClose: () => void; onDone?: (answer: unknown) => void }) {
  const [name, setName] = useState("");
  const act: Act = { title, verb, method: "POST", path: jobPath(job.name, rest), body: name ? { name } : undefined };
  return (
    <Dialog act={act} onClose={onClose} onDone={onDone}>
      <p>{words}</p>
      <label>
        Name (optional)
        <input value={name} onChange={(e) => setName(e.target.value)} pattern="[a-z0-9][a-z0-9_\-]{0,62}" title="lower-case letters, digits, - and _" />
      </label>
    </Dialog>
  );
}

/** Restore asks to which moment the job goes back; from is the one that was chosen before. */
export function Restore({ job, from: chosen, onClose }: { job: Job; from?: string; onClose: () => void }) {
  const checkpoints = useQuery({ queryKey: ["restorable", job.name], queryFn: () => get<{ checkpoints: Checkpoint[] }>(jobPath(job.name, "/checkpoints?status=completed&limit=50")), refetchInterval: false });
  const savepoints = useQuery({ queryKey: ["savepoints"], queryFn: () => get<{ savepoints: Savepoint[] }>("/v1/savepoints"), refetchInterval: false });
  const done = job.status === "FINISHED"; // its latest moment has nothing left to count
  const [from, setFrom] = useState(chosen ?? (done ? "nothing" : "latest"));
  const [parallelism, setParallelism] = useState(String(job.parallelism));
  const [duplicate, setDuplicate] = useState(false);
  const body = { from, parallelism: Number(parallelism), ...(duplicate ? { allow_duplicate_output: true } : {}) };
  return (
    <Dialog act={{ title: `Restore ${job.name}`, verb: "Restore", danger: true, method: "POST", path: jobPath(job.name, "/restore"), body }} onClose={onClose}>
      <p>The job goes back to the chosen moment and counts on from there. A running attempt is ended without a savepoint.</p>
      <label>
        From
        <select value={from} onChange={(e) => setFrom(e.target.value)}>
          {chosen && <option value={chosen}>{chosen.replace(":", " ")}</option>}
          {!done && <option value="latest">latest ({job.base})</option>}
          {savepoints.data?.savepoints
            .filter((s) => s.job === job.id && s.status === "completed" && chosen !== `savepoint:${s.name}`)
            .map((s) => (
              <option key={s.name} value={`savepoint:${s.name}`}>
                savepoint {s.name}
              </option>
            ))}
          {checkpoints.data?.checkpoints
            .filter((c) => c.type === "checkpoint" && !c.discarded && chosen !== `checkpoint:${c.id}`)
            .map((c) => (
              <option key={c.id} value={`checkpoint:${c.id}`}>
                checkpoint {c.id} ({bytes(c.state_bytes)})
              </option>
            ))}
          <option value="nothing">nothing: start over</option>
        </select>
      </label>
      <label>
        Parallelism
        <input type="number" min={1} max={job.max_parallelism} required value={parallelism} onChange={(e) => setParallelism(e.target.value)} />
      </label>
      <label className="check">
        <input type="checkbox" checked={duplicate} onChange={(e) => setDuplicate(e.target.checked)} />
        Allow rows that were written already to be written again
      </label>
    </Dialog>
  );
}
