import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Event, get, type Job, jobPath } from "../api/client";
import { Notice } from "../parts/notice";
import { When } from "../parts/time";

const shown = 500;

/** JobEvents is the job's life as a readable list, newest first; a long one is shown as far as asked for. */
export function JobEvents({ job }: { job: Job }) {
  const [limit, setLimit] = useState(shown);
  const query = useQuery({
    queryKey: ["events", job.name, limit],
    queryFn: () => get<{ events: Event[]; next?: number }>(jobPath(job.name, `/events?order=desc&limit=${limit}`)),
    placeholderData: keepPreviousData,
  });
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
          {query.data.events.map((e) => (
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
      {query.data.next !== undefined && limit < 10_000 && (
        <button className="link" onClick={() => setLimit(Math.min(limit * 2, 10_000))}>
          Show older events
        </button>
      )}
    </div>
  );
}
