const colours: Record<string, string> = {
  RUNNING: "green",
  FINISHED: "grey",
  STOPPED: "grey",
  CANCELED: "grey",
  CREATED: "blue",
  SCHEDULING: "blue",
  STOPPING: "amber",
  RESTARTING: "amber",
  FAILED: "red",
  completed: "green",
  pending: "blue",
  failed: "red",
  aborted: "grey",
};

/** hasEnded says that a job of that status does nothing more by itself. */
export function hasEnded(status: string): boolean {
  return ["STOPPED", "CANCELED", "FINISHED", "FAILED"].includes(status);
}

/** Status shows a job's or a checkpoint's status: colour, shape and word. */
export function Status({ value }: { value: string }) {
  return <span className={`status ${colours[value] ?? "grey"}`}>{value.toLowerCase()}</span>;
}
