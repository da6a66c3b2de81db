import { useEffect, useRef, useState } from "react";

/** What a reading has of a job. */
export interface Reading {
  id: string;
  rows_in_per_second?: number | undefined; // absent: not known
}

interface Seen {
  at: number;
  rates: number[];
}

const kept = 40; // rates per job
const apart = 1500; // ms between two rates: figures come once a second

/** next adds a reading to what was seen of a job. */
export function next(seen: Seen | undefined, r: Reading, at: number): Seen | undefined {
  const rate = r.rows_in_per_second;
  if (rate === undefined || (seen && at - seen.at < apart)) return seen;
  return { at, rates: [...(seen?.rates ?? []), rate].slice(-kept) };
}

/** useRates keeps the last rates of jobs, the newest last. */
export function useRates(jobs: Reading[] | undefined, at: number): Map<string, number[]> {
  const seen = useRef(new Map<string, Seen | undefined>());
  const [rates, setRates] = useState(new Map<string, number[]>());
  useEffect(() => {
    if (!jobs) return;
    seen.current = new Map(jobs.map((j) => [j.id, next(seen.current.get(j.id), j, at)]));
    setRates(new Map([...seen.current].map(([id, s]) => [id, s?.rates ?? []])));
  }, [jobs, at]);
  return rates;
}
