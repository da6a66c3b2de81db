import dagre from "@dagrejs/dagre";
import { useQuery } from "@tanstack/react-query";
import { Background, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import { useMemo, useState } from "react";
import { get, type Job, type JobPlan, jobPath } from "../api/client";
import { bytes, countIfKnown, rate } from "../format";
import { Notice } from "../parts/notice";

type Chain = JobPlan["chains"][number];
type ChainNode = Node<{ chain: Chain; index: number; down: boolean; bottleneck: JobPlan["bottleneck"] }, "chain">;

const boxWidth = 232;

/** JobGraph draws the operator graph from left to right, on a small screen downwards, with live rates. */
export function JobGraph({ job }: { job: Job }) {
  const plan = useQuery({ queryKey: ["plan", job.name], queryFn: () => get<JobPlan>(jobPath(job.name, "/plan")) });
  const [chosen, setChosen] = useState<number>();
  const down = useMemo(() => matchMedia("(max-width: 720px)").matches, []);
  const { nodes, edges, height } = useMemo(() => layout(plan.data, down), [plan.data, down]);
  const chain = chosen === undefined ? undefined : plan.data?.chains[chosen];
  return (
    <div className="panel">
      <header>
        <h2>Graph</h2>
        <span className="key">
          <span>
            <i style={{ background: "var(--amber)" }} />
            busy
          </span>
          <span>
            <i style={{ background: "var(--red)" }} />
            back-pressured
          </span>
          <span>
            <i style={{ background: "var(--grey-bg)" }} />
            idle
          </span>
        </span>
      </header>
      {plan.error && !plan.data && (
        <div className="body">
          <Notice error={plan.error} />
        </div>
      )}
      <div className={chain ? "split" : ""}>
        <div className="graph" style={down ? { height: Math.min(Math.max(height + 40, 220), 640) } : undefined}>
          <ReactFlow
            key={plan.data ? "graph" : "empty"} // it fits the view to its nodes once
            nodes={nodes}
            edges={edges}
            nodeTypes={nodeTypes}
            fitView
            fitViewOptions={{ padding: 0.15, maxZoom: 1 }}
            minZoom={0.2}
            nodesDraggable={false}
            nodesConnectable={false}
            zoomOnScroll={false}
            preventScrolling={false}
            proOptions={{ hideAttribution: true }}
            onNodeClick={(_, node) => setChosen(Number(node.id))}
            onPaneClick={() => setChosen(undefined)}
          >
            <Background gap={16} size={1} />
          </ReactFlow>
        </div>
        {chain && <Side chain={chain} />}
      </div>
    </div>
  );
}

function Side({ chain }: { chain: Chain }) {
  return (
    <div className="body scroll">
      <table aria-label="Operators">
        <thead>
          <tr>
            <th>Operator</th>
            <th className="num">Busy</th>
            <th className="num">Rows/s in → out</th>
            <th className="num">Bytes/s in → out</th>
          </tr>
        </thead>
        <tbody>
          {chain.operators.map((o) => (
            <tr key={o.id}>
              <td title={o.id}>{o.name}</td>
              <td className="num">{told(chain) ? percent(o.busy) : "–"}</td>
              <td className="num">
                {rate(o.rows_in_per_second ?? NaN)} → {rate(o.rows_out_per_second ?? NaN)}
              </td>
              <td className="num">
                {bytesIfKnown(o.bytes_in_per_second)} → {bytesIfKnown(o.bytes_out_per_second)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="answer">
        {chain.parallelism} {chain.parallelism === 1 ? "subtask" : "subtasks"}, {countIfKnown(chain.rows_in)} rows in, {countIfKnown(chain.rows_out)} rows out
        {told(chain) && `; ${shares(chain)}`}
      </p>
    </div>
  );
}

function ChainBox({ data, selected }: NodeProps<ChainNode>) {
  const { chain, down, bottleneck } = data;
  const border = bottleneck ? "var(--red)" : selected ? "var(--accent)" : undefined;
  return (
    <div className={bottleneck ? "node bottleneck" : "node"} style={border ? { borderColor: border } : undefined}>
      <Handle type="target" position={down ? Position.Top : Position.Left} />
      <b>
        <span>{chain.operators[0]?.kind.replace("_", " ")}</span>
        {bottleneck && <em title={`${bottleneck.name} is at work for ${percent(bottleneck.busy)} of subtask ${bottleneck.subtask}'s time, and those before it wait for it`}>bottleneck</em>}
        <span>× {chain.parallelism}</span>
      </b>
      <ol>
        {chain.operators.map((o) => (
          <li key={o.id} title={o.name} className={bottleneck?.operator === o.id ? "slow" : undefined}>
            <span>{o.name}</span>
            {told(chain) && <span className="share">{percent(o.busy)}</span>}
          </li>
        ))}
      </ol>
      <div className="flow">
        {chain.rows_in_per_second === undefined ? "–" : `${rate(chain.rows_in_per_second)} rows/s, ${bytesIfKnown(chain.bytes_in_per_second)}/s`}
      </div>
      <div className="load" role="img" aria-label={shares(chain)} title={shares(chain)}>
        <span className="busy" style={{ width: percent(chain.busy) }} />
        <span className="blocked" style={{ width: percent(chain.back_pressured) }} />
      </div>
      <Handle type="source" position={down ? Position.Bottom : Position.Right} />
    </div>
  );
}

/** told reports whether the shares of a chain are known: they add up to 1 then. */
function told(chain: Chain): boolean {
  return chain.busy + chain.back_pressured + chain.idle > 0;
}

function shares(chain: Chain): string {
  if (!told(chain)) return "nothing is known of its time";
  const most = chain.busiest && chain.busiest.busy - chain.busy > 0.2 ? ` (subtask ${chain.busiest.subtask}: ${percent(chain.busiest.busy)})` : "";
  return `busy ${percent(chain.busy)}${most}, back-pressured ${percent(chain.back_pressured)}, idle ${percent(chain.idle)}`;
}

function bytesIfKnown(n: number | undefined): string {
  return n === undefined ? "–" : bytes(Math.round(n));
}

const nodeTypes = { chain: ChainBox };

function percent(share: number | undefined): string {
  return `${Math.round(100 * (share ?? 0))}%`;
}

function layout(plan: JobPlan | undefined, down: boolean): { nodes: ChainNode[]; edges: Edge[]; height: number } {
  if (!plan) return { nodes: [], edges: [], height: 0 };
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: down ? "TB" : "LR", ranksep: down ? 50 : 90, nodesep: 30 });
  graph.setDefaultEdgeLabel(() => ({}));
  const height = (c: Chain) => 68 + 20 * c.operators.length;
  plan.chains.forEach((c, i) => graph.setNode(String(i), { width: boxWidth, height: height(c) }));
  plan.edges.forEach((e) => graph.setEdge(String(e.from), String(e.to)));
  dagre.layout(graph);
  return {
    height: graph.graph().height ?? 0,
    nodes: plan.chains.map((chain, index) => {
      const at = graph.node(String(index));
      return { id: String(index), type: "chain", position: { x: at.x - boxWidth / 2, y: at.y - height(chain) / 2 }, data: { chain, index, down, bottleneck: plan.bottleneck?.chain === index ? plan.bottleneck : undefined } };
    }),
    edges: plan.edges.map((e, i) => ({
      id: String(i),
      source: String(e.from),
      target: String(e.to),
      label: plan.chains[e.to]?.operators[0]?.kind === "rejects" ? "rejects" : label(plan, e.from),
      labelStyle: { fill: "var(--muted)", fontSize: 12 },
      labelBgStyle: { fill: "var(--panel)" },
      style: { stroke: "var(--line-strong)" },
    })),
  };
}

function label(plan: JobPlan, from: number): string {
  const perSecond = plan.chains[from]?.rows_out_per_second;
  return perSecond === undefined ? "" : `${rate(perSecond)} rows/s`;
}
