import { useContext, useState } from "react";
import { filters, fromField, reasons, statuses, toField, types } from "../checkpoints";
import { Clock } from "../parts/time";

/** Filters choose from the history; what is chosen lives in the page's URL. */
export function Filters({ params, set }: { params: URLSearchParams; set: (changes: Record<string, string>) => void }) {
  const { utc } = useContext(Clock);
  const [open, setOpen] = useState(false);
  const chosen = filters.filter((name) => params.get(name));
  const choice = (name: string, label: string, values: string[]) => (
    <label>
      {label}
      <select aria-label={label} value={params.get(name) ?? ""} onChange={(e) => set({ [name]: e.target.value })}>
        <option value="">all</option>
        {values.map((v) => (
          <option key={v} value={v}>
            {v}
          </option>
        ))}
        {params.get(name) && !values.includes(params.get(name)!) && <option value={params.get(name)!}>{params.get(name)}</option>}
      </select>
    </label>
  );
  const moment = (name: string, label: string) => (
    <label>
      {`${label}, ${utc ? "UTC" : "local"}`}
      <input type="datetime-local" aria-label={label} step="1" value={toField(params.get(name) ?? "", utc)} onChange={(e) => set({ [name]: fromField(e.target.value, utc) })} />
    </label>
  );
  return (
    <>
      <button className="link filter-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Hide filters" : "Filters"}
        {chosen.length > 0 ? ` (${chosen.length})` : ""}
      </button>
      <div className={open ? "filters open" : "filters"}>
        {choice("status", "Status", statuses)}
        {choice("type", "Type", types)}
        {choice("reason", "Reason", reasons)}
        {moment("since", "Since")}
        {moment("until", "Until")}
        <Typed name="attempt" label="Attempt" hint="any" value={params.get("attempt") ?? ""} set={set} />
        <Typed name="min_duration" label="Took at least" hint="500ms" value={params.get("min_duration") ?? ""} set={set} />
        {chosen.length > 0 && (
          <button className="act" onClick={() => set(Object.fromEntries(chosen.map((name) => [name, ""])))}>
            Clear filters
          </button>
        )}
      </div>
    </>
  );
}

/** Typed is a field that counts when it is left, or with Enter: half a number is no filter. */
function Typed({ name, label, hint, value, set }: { name: string; label: string; hint: string; value: string; set: (changes: Record<string, string>) => void }) {
  return (
    <label>
      {label}
      <input
        key={value}
        aria-label={label}
        className="few"
        defaultValue={value}
        placeholder={hint}
        onBlur={(e) => e.target.value.trim() !== value && set({ [name]: e.target.value.trim() })}
        onKeyDown={(e) => e.key === "Enter" && set({ [name]: e.currentTarget.value.trim() })}
      />
    </label>
  );
}
