import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { call, curl } from "../api/client";
import { Notice } from "./notice";

/** An Act is a request that the user may make, and its words. */
export interface Act {
  title: string;
  verb: string;
  danger?: boolean;
  method: string;
  path: string;
  body?: unknown;
}

/** CopyCurl copies a request as a command line. */
export function CopyCurl({ method, path, body }: { method: string; path: string; body?: unknown }) {
  const [copied, setCopied] = useState(false);
  return (
    <button
      type="button"
      className="link"
      onClick={() => {
        void navigator.clipboard.writeText(curl(method, path, body)).then(() => setCopied(true));
      }}
    >
      {copied ? "Copied" : "Copy as curl"}
    </button>
  );
}

/** Dialog asks once and carries out an act; children are its words and fields. */
export function Dialog({ act, onClose, onDone, children }: { act: Act; onClose: () => void; onDone?: (answer: unknown) => void; children: ReactNode }) {
  const ref = useRef<HTMLDialogElement>(null);
  const client = useQueryClient();
  const request = useMutation({
    mutationFn: () => call<unknown>(act.method, act.path, act.body),
    onSuccess: (answer) => {
      void client.invalidateQueries();
      onDone?.(answer);
      onClose();
    },
  });
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={ref} onCancel={onClose} aria-label={act.title}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          request.mutate();
        }}
      >
        <h2>{act.title}</h2>
        {children}
        <Notice error={request.error} />
        <div className="buttons">
          <CopyCurl method={act.method} path={act.path} body={act.body} />
          <button type="button" className="act" onClick={onClose}>
            Close
          </button>
          <button type="submit" className={act.danger ? "act danger" : "act primary"} disabled={request.isPending}>
            {request.isPending ? "Working…" : act.verb}
          </button>
        </div>
      </form>
    </dialog>
  );
}
