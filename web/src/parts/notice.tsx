import { Refusal } from "../api/client";

/** Notice says what went wrong: a sentence, and for SQL each fault with its place. */
export function Notice({ error, sql }: { error: unknown; sql?: string }) {
  if (!error) return null;
  if (error instanceof Refusal && error.faults.length > 0) {
    const lines = (sql ?? "").split("\n");
    return (
      <div className="notice red" role="alert">
        {error.faults.map((f, i) => (
          <div key={i}>
            <p>
              {f.line ? `Line ${f.line}, column ${f.column}: ` : ""}
              {f.field ? `${f.field} ` : ""}
              {f.message}
            </p>
            {f.line && lines[f.line - 1] !== undefined && (
              <pre>
                {lines[f.line - 1]}
                {"\n" + " ".repeat(Math.max(0, (f.column ?? 1) - 1)) + "^"}
              </pre>
            )}
            {f.hint && <p className="hint">{f.hint}</p>}
          </div>
        ))}
      </div>
    );
  }
  return (
    <div className="notice red" role="alert">
      {error instanceof Error ? error.message : String(error)}
    </div>
  );
}
