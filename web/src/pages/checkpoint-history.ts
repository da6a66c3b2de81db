import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";
import { type CheckpointList, get, type Job, jobPath } from "../api/client";
import { append, type History, refresh } from "../checkpoints";

const newest = 100; // rows that are read again and again
const older = 500; // rows per page of what does not change any more
const catchUp = 5; // pages to read where many rows came at once

/** path is where a job's history is read, with a filter as a query string. */
export function historyPath(job: Job, filter: string, more: Record<string, string | number>): string {
  const query = new URLSearchParams(filter);
  for (const [name, value] of Object.entries(more)) query.set(name, String(value));
  return jobPath(job.name, `/checkpoints?${query}`);
}

/**
 * useHistory reads a job's history, newest first: its newest rows each second, older ones
 * when more is called.
 */
export function useHistory(job: Job, filter: string) {
  const client = useQueryClient();
  const key = useMemo(() => ["history", job.id, filter], [job.id, filter]);
  const page = useCallback((more: Record<string, string | number>) => get<CheckpointList>(historyPath(job, filter, more)), [job, filter]);
  const query = useQuery({
    queryKey: key,
    queryFn: async () => {
      const head = await page({ limit: newest });
      let history: History | undefined;
      for (let i = 0; ; i++) {
        history = refresh(client.getQueryData<History>(key), head);
        if (history || head.next === undefined || i === catchUp) return history ?? { rows: head.checkpoints, next: head.next };
        const next = await page({ limit: older, cursor: head.next });
        head.checkpoints.push(...next.checkpoints);
        head.next = next.next;
      }
    },
    placeholderData: keepPreviousData,
    retry: false,
  });
  const busy = useRef(false);
  const [fault, setFault] = useState<unknown>();
  const cursor = query.isPlaceholderData ? undefined : query.data?.next;
  const more = useCallback(() => {
    if (busy.current || cursor === undefined) return;
    busy.current = true;
    page({ limit: older, cursor })
      .then((next) => {
        client.setQueryData<History>(key, (known) => known && append(known, next));
        setFault(undefined);
      }, setFault)
      .finally(() => (busy.current = false));
  }, [cursor, page, client, key]);
  return { ...query, error: query.error ?? fault, more };
}
