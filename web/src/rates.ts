import { useEffect, useRef, useState } from "react";

/** What a reading has of a job. */
export interface Reading {
  id: string;
  attempt: number;
  rows_in?: number | undefined; // absent: not known
}

interface Seen {
  at: number;
  attempt: number;
  rows: number;
  rates: number[];
}

const kept = 40; // rates per job
const window = 1500; // ms that a rate is taken over at least: figures come once a second

/** next adds a reading to what was seen of a job; a new attempt begins its count anew. */
export function next(seen: Seen | undefined, r: Reading, at: number): Seen | undefined {
  const { attempt, rows_in: rows } = r;
  if (rows === undefined) return seen;
  if (!seen || seen.attempt !== attempt || rows < seen.rows) return { at, attempt, rows, rates: seen?.rates ?? [] };
  if (at - seen.at < window) return seen;
  const perSecond = (rows - seen.rows) / ((at - seen.at) / 1000);
  return { at, attempt, rows, rates: [...seen.rates, perSecond].slice(-kept) };
}

/** useRates turns the growing counts of jobs into rows per second, the newest last. */
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
