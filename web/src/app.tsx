import { useQuery } from "@tanstack/react-query";
import { lazy, useEffect, useState } from "react";
import { Navigate, NavLink, Route, Routes, useLocation } from "react-router";
import { get } from "./api/client";
import { JobPage } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { SqlPage } from "./pages/sql";
import { TablesPage } from "./pages/tables";
import { WorkersPage } from "./pages/workers";
import { Later } from "./parts/later";
import { Clock, useNow } from "./parts/time";

const SavepointsPage = lazy(() => import("./pages/savepoints").then((m) => ({ default: m.SavepointsPage })));

const rail = [
  ["/", "Jobs"],
  ["/sql", "SQL"],
  ["/savepoints", "Savepoints"],
  ["/tables", "Tables"],
  ["/workers", "Workers"],
] as const;

function useStored(key: string, initial: string): [string, (v: string) => void] {
  const [value, setValue] = useState(() => localStorage.getItem(key) ?? initial);
  useEffect(() => localStorage.setItem(key, value), [key, value]);
  return [value, setValue];
}

/** App is the frame around every page: the rail, the connection's state, the switches. */
export function App() {
  const now = useNow();
  const [zone, setZone] = useStored("zone", "utc");
  const [theme, setTheme] = useStored("theme", matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  return (
    <Clock.Provider value={{ now, utc: zone === "utc" }}>
      <div className="frame">
        <nav className="rail" aria-label="Pages">
          <span className="brand">
            <img src="/favicon.svg" alt="" /> Weir
          </span>
          {rail.map(([to, name]) => (
            <NavLink key={to} to={to} end={to !== "/"} className={({ isActive }) => (isActive || (to === "/" && location.pathname.startsWith("/jobs/")) ? "item active" : "item")}>
              {name}
            </NavLink>
          ))}
          <span className="spacer" />
          <a className="item" href="/docs">
            API
          </a>
        </nav>
        <main className="content">
          <div className="top">
            <Where />
            <Connection />
            <button className="link" onClick={() => setZone(zone === "utc" ? "local" : "utc")}>
              {zone === "utc" ? "UTC" : "Local time"}
            </button>
            <button className="link" onClick={() => setTheme(theme === "dark" ? "light" : "dark")}>
              {theme === "dark" ? "Light" : "Dark"}
            </button>
          </div>
          <Routes>
            <Route path="/" element={<JobsPage />} />
            <Route path="/jobs" element={<Navigate to="/" replace />} />
            <Route path="/jobs/:job" element={<JobPage />} />
            <Route path="/sql" element={<SqlPage />} />
            <Route
              path="/savepoints"
              element={
                <Later>
                  <SavepointsPage />
                </Later>
              }
            />
            <Route path="/tables" element={<TablesPage />} />
            <Route path="/workers" element={<WorkersPage />} />
            <Route path="*" element={<p className="answer">There is no such page.</p>} />
          </Routes>
        </main>
      </div>
    </Clock.Provider>
  );
}

function Where() {
  const { pathname } = useLocation();
  const parts = pathname.split("/").filter(Boolean).map(decodeURIComponent);
  return <span className="where">{parts.length === 0 ? "jobs" : parts.join(" / ")}</span>;
}

function Connection() {
  const health = useQuery({ queryKey: ["health"], queryFn: () => get("/readyz"), refetchInterval: 2000 });
  if (health.isPending) return <span />;
  return health.isError ? <span className="status amber">reconnecting</span> : <span className="status green">connected</span>;
}
