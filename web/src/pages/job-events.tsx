import { useQuery } from "@tanstack/react-query";
import { type Event, get, type Job, jobPath } from "../api/client";
import { Notice } from "../parts/notice";
import { When } from "../parts/time";

/** JobEvents is the job's life as a readable list, newest first. */
export function JobEvents({ job }: { job: Job }) {
  const query = useQuery({ queryKey: ["events", job.name], queryFn: () => get<{ events: Event[] }>(jobPath(job.name, "/events?limit=1000")) });
  if (!query.data) return query.isPending ? <p className="answer">Reading…</p> : <Notice error={query.error} />;
  return (
    <div className="panel scroll">
      <table>
        <thead>
          <tr>
            <th>When</th>
            <th>What</th>
            <th className="num">Attempt</th>
            <th>Said</th>
          </tr>
        </thead>
        <tbody>
          {[...query.data.events].reverse().map((e) => (
            <tr key={e.seq}>
              <td>
                <When at={e.at} />
              </td>
              <td>{e.kind}</td>
              <td className="num">{e.attempt || ""}</td>
              <td className="wrap">{e.message}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
