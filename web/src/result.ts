// A page of a job's result: what the dashboard asks for, follows and shows of it.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { get, type Job, jobPath, type Results } from "./api/client";
import { hasEnded } from "./parts/status";

/** An Order is the column that rows are ordered by, and the direction. */
export interface Order {
  column: string;
  down: boolean;
}

/** resultPath asks for the first rows of a job's result in an order, once or, with follow, whenever they change. */
export function resultPath(job: string, limit: number, order: Order | undefined, follow: boolean): string {
  const params = new URLSearchParams({ limit: String(limit), numbers: "string" });
  if (order) params.set("order_by", `${order.down ? "-" : ""}"${order.column.replaceAll('"', '""')}"`);
  if (follow) params.set("follow", "rows");
  return jobPath(job, `/results?${params}`);
}

/** A Shown is the newest page that has come; lost says that the server is away. */
export interface Shown {
  page: Results | undefined;
  error: Error | null;
  live: boolean;
  lost: boolean;
}

/**
 * useResult reads the first rows of a job's result: it follows them while the job goes on
 * and the page is seen, and reads them once where the job has ended. The rows of another
 * order come from the server too, which has all of them; until then the old ones stay.
 */
export function useResult(job: Job, limit: number, order: Order | undefined): Shown {
  const going = !hasEnded(job.status);
  const seen = useSeen();
  const once = useQuery({
    queryKey: ["result", job.name, job.attempt, job.status, limit, order],
    queryFn: () => get<Results>(resultPath(job.name, limit, order, false)),
    enabled: job.has_result && !going,
    refetchInterval: false,
  });
  const followed = useFollowed(job.has_result && going && seen ? resultPath(job.name, limit, order, true) : undefined);
  const last = useRef<Results>(undefined);
  const page = (going ? followed.page : once.data) ?? last.current;
  useEffect(() => {
    last.current = page;
  }, [page]);
  return { page, error: going ? null : once.error, live: going && page !== undefined, lost: going && followed.lost };
}

/** useFollowed keeps the newest rows that a stream of events tells; it takes in one page a frame at most. */
function useFollowed(path: string | undefined): { page: Results | undefined; lost: boolean } {
  const [page, setPage] = useState<Results>();
  const [lost, setLost] = useState(false);
  useEffect(() => {
    if (path === undefined) return;
    let newest = "";
    let frame = 0;
    const stream = new EventSource(path);
    stream.addEventListener("rows", (e) => {
      newest = (e as MessageEvent<string>).data;
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setPage(JSON.parse(newest) as Results);
      });
    });
    stream.addEventListener("end", () => stream.close());
    stream.onopen = () => setLost(false);
    stream.onerror = () => setLost(true);
    return () => {
      stream.close();
      cancelAnimationFrame(frame);
      setLost(false);
    };
  }, [path]);
  return { page, lost };
}

/** useSeen reports whether the page is seen: not in a tab behind others. */
function useSeen(): boolean {
  return useSyncExternalStore(
    (changed) => {
      document.addEventListener("visibilitychange", changed);
      return () => document.removeEventListener("visibilitychange", changed);
    },
    () => !document.hidden,
  );
}
