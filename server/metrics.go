package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"weir"
	"weir/checkpoint"
	"weir/planner/plan"
	"weir/server/job"
)

// A metric is a row of docs/metrics.md.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	desc       *prometheus.Desc
}

// metrics are all of Weir's own.
type metrics struct {
	all []*metric

	channelQueued, channelUnacked, channelCredit, channelRate, channelResent *metric

	jobStatus, jobAttempt, rowsIn, rowsOut, rowsRejected *metric
	lastID, lastEnded, lastDuration, lastSize            *metric
	workerUp, workerSlots, workerSlotsFree, metastoreUp  *metric
	stateBytes, spilled, uploadBytes, deltaSeconds       *metric

	operatorRowsIn, operatorRowsOut, operatorBytesIn, operatorBytesOut, operatorBusy *metric
	chainBlocked, chainIdle                                                          *metric

	workerBudget, workerHeap, workerMemory, workerStateLimit, workerSpilled *metric
}

func newMetrics() *metrics {
	m := &metrics{}
	add := func(kind prometheus.ValueType, labels []string, name, help string) *metric {
		x := &metric{name, help, kind, labels, prometheus.NewDesc(name, help, labels, nil)}
		m.all = append(m.all, x)
		return x
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	channel := []string{"job", "name", "edge", "from", "to"}
	m.channelQueued = add(gauge, channel, "weir_channel_queued_bytes", "Bytes that wait at either end of a channel: to be transmitted, or for the receiving task.")
	m.channelUnacked = add(gauge, channel, "weir_channel_unacked_bytes", "Bytes that the sending task has given and the receiving end has not acknowledged.")
	m.channelCredit = add(gauge, channel, "weir_channel_credit_bytes", "Bytes that the sending task may still send; near 0, the receiving task is what is slow.")
	m.channelRate = add(gauge, channel, "weir_channel_bytes_per_second", "Bytes per second that the receiving task took of late.")
	m.channelResent = add(counter, channel, "weir_channel_resent_frames_total", "Frames sent again in this attempt, as NATS had lost them or was away.")
	of := []string{"job", "name"}
	m.jobStatus = add(gauge, []string{"job", "name", "status"}, "weir_job_status", "Always 1: the job is of this status.")
	m.jobAttempt = add(gauge, of, "weir_job_attempt", "Number of the job's newest attempt.")
	m.rowsIn = add(counter, of, "weir_job_rows_in_total", "Rows that the sources of this attempt have read.")
	m.rowsOut = add(counter, of, "weir_job_rows_out_total", "Rows that the sinks and results of this attempt were given.")
	m.rowsRejected = add(counter, of, "weir_job_rows_rejected_total", "Rows at fault that were skipped or kept since the job began.")
	m.stateBytes = add(gauge, of, "weir_job_state_bytes", "State of the job's tasks in memory.")
	m.spilled = add(gauge, of, "weir_job_state_spilled_entries", "Entries of the state that are on the workers' disks only.")
	m.uploadBytes = add(gauge, of, "weir_job_upload_bytes", "Changes of the state, in memory, that no completed checkpoint holds yet.")
	m.deltaSeconds = add(counter, of, "weir_job_delta_seconds_total", "Seconds of a core, in this attempt, that went into writing what changed of the state.")
	m.lastID = add(gauge, of, "weir_job_last_checkpoint_id", "Number of the last completed checkpoint or savepoint.")
	m.lastEnded = add(gauge, of, "weir_job_last_checkpoint_timestamp_seconds", "When it was completed, in seconds since 1970.")
	m.lastDuration = add(gauge, of, "weir_job_last_checkpoint_duration_seconds", "How long it took, from trigger to end.")
	m.lastSize = add(gauge, of, "weir_job_last_checkpoint_size_bytes", "How large the state in it is.")
	operator, chain := []string{"job", "name", "chain", "operator"}, []string{"job", "name", "chain"}
	m.operatorRowsIn = add(counter, operator, "weir_operator_rows_in_total", "Rows that the operator was given, or has read, in this attempt.")
	m.operatorRowsOut = add(counter, operator, "weir_operator_rows_out_total", "Rows that it gave on, kept or wrote.")
	m.operatorBytesIn = add(counter, operator, "weir_operator_bytes_in_total", "Bytes that it has read, or that the columns weigh that it was given.")
	m.operatorBytesOut = add(counter, operator, "weir_operator_bytes_out_total", "Bytes that the columns weigh that it gave on, or that it has written.")
	m.operatorBusy = add(counter, operator, "weir_operator_busy_seconds_total", "Seconds, of all its subtasks in this attempt, in which it was at work.")
	m.chainBlocked = add(counter, chain, "weir_chain_back_pressured_seconds_total", "Seconds, of all subtasks of the chain in this attempt, in which they waited for a full channel.")
	m.chainIdle = add(counter, chain, "weir_chain_idle_seconds_total", "Seconds, likewise, in which they waited for input or for time.")
	worker := []string{"worker"}
	m.workerUp = add(gauge, worker, "weir_worker_up", "1 if a living worker has told its figures within 2 s, 0 if not.")
	m.workerSlots = add(gauge, worker, "weir_worker_slots", "Slots that the worker has.")
	m.workerSlotsFree = add(gauge, worker, "weir_worker_slots_free", "Slots that nothing runs in.")
	m.workerBudget = add(gauge, worker, "weir_worker_memory_budget_bytes", "Memory that the worker may take; no series: as much as there is.")
	m.workerHeap = add(gauge, worker, "weir_worker_heap_bytes", "Live heap of the worker: state, uploads, network and all else but the cache.")
	m.workerMemory = add(gauge, []string{"worker", "use"}, "weir_worker_memory_bytes", "What the worker's memory is used for: state, uploads, network (what waits in channels), cache (of what is spilled).")
	m.workerStateLimit = add(gauge, worker, "weir_worker_state_limit_bytes", "What the state may take of the worker's memory just now; over it entries are spilled.")
	m.workerSpilled = add(gauge, worker, "weir_worker_spilled_bytes", "State on the worker's disk.")
	m.metastoreUp = add(gauge, nil, "weir_metastore_up", "1 if the jobs and their checkpoints could be read, 0 if not: the series of jobs and channels are then not whole.")
	return m
}

// processFigures are those of this process.
func processFigures() prometheus.Gatherer {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// getMetrics answers Prometheus. Nothing is kept between two answers.
func (s *Server) getMetrics(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	r := prometheus.NewRegistry()
	if err := r.Register(scrape{c.Request().Context(), s}); err != nil {
		return err
	}
	promhttp.HandlerFor(prometheus.Gatherers{s.process, r}, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(s.deps.Logger.Handler(), slog.LevelWarn),
	}).ServeHTTP(c.Response(), c.Request())
	return nil
}

// A scrape collects the figures for one answer.
type scrape struct {
	ctx context.Context // of the request
	s   *Server
}

// Describe tells of all metrics.
func (x scrape) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range x.s.metrics.all {
		ch <- m.desc
	}
}

// historyWithin bounds how long the last checkpoints are looked for.
const historyWithin = time.Second

// Collect asks for all figures.
func (x scrape) Collect(ch chan<- prometheus.Metric) {
	m := x.s.metrics
	o, err := x.s.deps.Service.Observe(x.ctx)
	for _, w := range o.Workers {
		id := string(w.ID)
		m.workerUp.send(ch, number(w.Up), id)
		m.workerSlots.send(ch, float64(w.Slots), id)
		m.workerSlotsFree.send(ch, float64(w.FreeSlots), id)
		if w.Up {
			m.memory(ch, id, w.Memory)
		}
	}
	names := map[weir.JobID]string{}
	ctx, cancel := context.WithTimeout(x.ctx, historyWithin)
	defer cancel()
	for _, j := range o.Jobs {
		if _, twice := names[j.Job.ID]; twice { // it ended while jobs were listed
			continue
		}
		names[j.Job.ID] = j.Job.Name
		m.job(ch, j)
		if err == nil && !j.Job.Status.Terminal() {
			err = x.lastCheckpoint(ctx, ch, j.Job)
		}
	}
	if err != nil {
		x.s.deps.Logger.Warn("figures are not whole", "err", withoutURL(err))
	}
	m.metastoreUp.send(ch, number(err == nil))
	for _, c := range o.Channels {
		if name, ok := names[c.Job]; ok {
			m.channel(ch, name, c)
		}
	}
}

func (m *metric) send(ch chan<- prometheus.Metric, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (m *metrics) job(ch chan<- prometheus.Metric, j job.Figures) {
	id, name := string(j.Job.ID), j.Job.Name
	m.jobStatus.send(ch, 1, id, name, string(j.Job.Status))
	m.jobAttempt.send(ch, float64(j.Job.Attempt.Number), id, name)
	if !j.Rates.Known() {
		return
	}
	m.rowsIn.send(ch, float64(j.Rates.RowsIn), id, name)
	m.rowsOut.send(ch, float64(j.Rates.RowsOut), id, name)
	m.rowsRejected.send(ch, float64(j.Rates.RowsRejected), id, name)
	m.stateBytes.send(ch, float64(j.Rates.State.Bytes), id, name)
	m.spilled.send(ch, float64(j.Rates.State.Spilled), id, name)
	m.uploadBytes.send(ch, float64(j.Rates.State.UploadBytes), id, name)
	m.deltaSeconds.send(ch, j.Rates.State.DeltaSeconds, id, name)
	m.operators(ch, j)
}

// operators tells of the operators of a job's plan, however many subtasks they have.
func (m *metrics) operators(ch chan<- prometheus.Metric, j job.Figures) {
	var g plan.Graph
	if json.Unmarshal(j.Job.Plan, &g) != nil { // whoever asks for the plan is told
		return
	}
	for i, c := range j.Rates.Chains {
		if c.Tasks == 0 || i >= len(g.Chains) {
			continue
		}
		of := []string{string(j.Job.ID), j.Job.Name, strconv.Itoa(i)}
		m.chainBlocked.send(ch, c.BlockedSeconds, of...)
		m.chainIdle.send(ch, c.IdleSeconds, of...)
		for k := range min(len(c.Operators), len(g.Chains[i].Operators)) {
			o, labels := c.Operators[k], slices.Concat(of, []string{string(g.Chains[i].Operators[k].ID)})
			m.operatorRowsIn.send(ch, float64(o.RowsIn), labels...)
			m.operatorRowsOut.send(ch, float64(o.RowsOut), labels...)
			m.operatorBytesIn.send(ch, float64(o.BytesIn), labels...)
			m.operatorBytesOut.send(ch, float64(o.BytesOut), labels...)
			m.operatorBusy.send(ch, o.BusySeconds, labels...)
		}
	}
}

// memory tells how a worker's memory is used.
func (m *metrics) memory(ch chan<- prometheus.Metric, worker string, f job.Memory) {
	if f.Budget > 0 {
		m.workerBudget.send(ch, float64(f.Budget), worker)
	}
	if f.StateLimit > 0 { // GOMEMLIMIT alone sets one too
		m.workerStateLimit.send(ch, float64(f.StateLimit), worker)
	}
	m.workerHeap.send(ch, float64(f.Heap), worker)
	m.workerMemory.send(ch, float64(f.State), worker, "state")
	m.workerMemory.send(ch, float64(f.Uploads), worker, "uploads")
	m.workerMemory.send(ch, float64(f.Network), worker, "network")
	m.workerMemory.send(ch, float64(f.Cache), worker, "cache")
	m.workerSpilled.send(ch, float64(f.Spilled), worker)
}

func (x scrape) lastCheckpoint(ctx context.Context, ch chan<- prometheus.Metric, j weir.Job) error {
	list, err := x.s.deps.History.Checkpoints(ctx, j.ID, checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusCompleted}, Limit: 1})
	if err != nil || len(list) == 0 {
		return err
	}
	m, r, id, name := x.s.metrics, list[0], string(j.ID), j.Name
	m.lastID.send(ch, float64(r.ID), id, name)
	m.lastEnded.send(ch, float64(r.CompletedAt.UnixMilli())/1000, id, name)
	m.lastDuration.send(ch, max(r.CompletedAt.Sub(r.TriggeredAt), 0).Seconds(), id, name)
	m.lastSize.send(ch, float64(r.StateBytes), id, name)
	return nil
}

func (m *metrics) channel(ch chan<- prometheus.Metric, name string, c job.Channel) {
	labels := []string{string(c.Job), name, strconv.Itoa(c.ID.Edge), taskText(c.ID.From), taskText(c.ID.To)}
	m.channelQueued.send(ch, float64(c.QueuedBytes), labels...)
	m.channelUnacked.send(ch, float64(c.UnackedBytes), labels...)
	m.channelCredit.send(ch, float64(c.CreditBytes), labels...)
	m.channelRate.send(ch, c.BytesPerSecond, labels...)
	m.channelResent.send(ch, float64(c.Resent), labels...)
}

// taskText is "chain/subtask", or "chain/*" for all subtasks together.
func taskText(t weir.TaskID) string {
	if t.Subtask == job.AllSubtasks {
		return strconv.Itoa(t.Chain) + "/*"
	}
	return t.String()
}
