import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { call, type Job } from "../api/client";
import { CopyCurl } from "../parts/dialog";
import { Notice } from "../parts/notice";

const start = "SELECT behavior, COUNT(*) AS n\nFROM user_behavior\nGROUP BY behavior";

/** SqlPage takes a script, checks it and starts it as a job. */
export function SqlPage() {
  const [sql, setSql] = useState(start);
  const [name, setName] = useState("");
  const navigate = useNavigate();
  const body = { sql, ...(name ? { name } : {}) };
  const submit = useMutation({
    mutationFn: () => call<Job>("POST", "/v1/jobs", body),
    onSuccess: (job) => void navigate(`/jobs/${job.name}`),
  });
  const check = useMutation({ mutationFn: () => call<{ text: string }>("POST", "/v1/plan", { sql }) });
  return (
    <>
      <div className="head">
        <h1>SQL</h1>
      </div>
      <p className="answer">A script: tables, settings, and one query that becomes a job.</p>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          submit.mutate();
        }}
      >
        <textarea aria-label="SQL" spellCheck={false} value={sql} onChange={(e) => setSql(e.target.value)} />
        <Notice error={submit.error ?? check.error} sql={sql} />
        <div className="head">
          <input aria-label="Name" placeholder="Name (optional)" value={name} onChange={(e) => setName(e.target.value)} pattern="[a-z0-9][a-z0-9_\-]{0,62}" title="lower-case letters, digits, - and _" />
          <button className="act primary" disabled={submit.isPending}>
            {submit.isPending ? "Starting…" : "Start job"}
          </button>
          <button type="button" className="act" onClick={() => check.mutate()}>
            Check
          </button>
          <span className="grow" />
          <CopyCurl method="POST" path="/v1/jobs" body={body} />
        </div>
        {check.data && !check.isError && (
          <div className="panel">
            <header>
              <h2>Plan</h2>
            </header>
            <div className="body">
              <pre>{check.data.text}</pre>
            </div>
          </div>
        )}
      </form>
    </>
  );
}
