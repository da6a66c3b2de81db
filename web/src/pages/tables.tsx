import { useQuery } from "@tanstack/react-query";
import { get, type Table } from "../api/client";
import { Notice } from "../parts/notice";

/** TablesPage answers: what can I query? */
export function TablesPage() {
  const query = useQuery({ queryKey: ["tables"], queryFn: () => get<{ tables: Table[] }>("/v1/tables") });
  const list = query.data?.tables ?? [];
  const views = list.filter((t) => t.kind === "view").length;
  const tables = list.length - views;
  return (
    <>
      <div className="head">
        <h1>Tables</h1>
      </div>
      <p className="answer">
        {query.isPending ? (
          "Reading…"
        ) : (
          <>
            <b>{tables}</b> {tables === 1 ? "table" : "tables"}
            {views > 0 && (
              <>
                {" "}
                and <b>{views}</b> {views === 1 ? "view" : "views"}
              </>
            )}{" "}
            that any query may name.
          </>
        )}
      </p>
      <Notice error={query.error} />
      {query.data && list.length === 0 && (
        <div className="panel empty">
          <p>No table yet. This line makes one:</p>
          <pre>{`curl -s ${location.origin}/v1/tables -H 'content-type: application/json' \\
  -d '{"sql":"CREATE TABLE numbers (n BIGINT) WITH (\\u0027connector\\u0027 = \\u0027datagen\\u0027)"}'`}</pre>
        </div>
      )}
      <div className="stack">
        {list.map((t) => (
          <div className="panel" key={t.name}>
            <header>
              <h2>{t.name}</h2>
              <span>{t.kind === "view" ? "view" : t.connector}</span>
            </header>
            <div className="body">
              <pre>{t.sql}</pre>
            </div>
          </div>
        ))}
      </div>
    </>
  );
}
