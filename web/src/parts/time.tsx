import { createContext, useContext, useEffect, useState } from "react";
import { ago, exact } from "../format";

/** Clock is the time that relative times are shown against, and the reader's choice of zone. */
export const Clock = createContext({ now: Date.now(), utc: true });

/** useNow ticks once a second. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const id = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(id);
  }, []);
  return now;
}

/** When shows a time relative to now, and exactly on hover. */
export function When({ at }: { at?: string | null }) {
  const { now, utc } = useContext(Clock);
  return (
    <time dateTime={at ?? undefined} title={exact(at, utc)}>
      {ago(at, now)}
    </time>
  );
}
