package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// A Worker is a worker process that this server hears of.
type Worker struct {
	ID          string    `json:"id"`
	Incarnation string    `json:"incarnation"` // tells two lives of it apart
	PID         int       `json:"pid"`
	Host        string    `json:"host"`
	Slots       int       `json:"slots"`
	FreeSlots   int       `json:"free_slots"`
	Tasks       int       `json:"tasks"`
	Jobs        []string  `json:"jobs"` // ids
	HeardAt     time.Time `json:"heard_at"`

	Memory WorkerMemory `json:"memory"`
} // @name Worker

// WorkerMemory is how a worker's memory is used.
type WorkerMemory struct {
	BudgetBytes     int64 `json:"budget_bytes,omitempty"`      // that it may take; absent: as much as there is
	HeapBytes       int64 `json:"heap_bytes"`                  // live, state included
	StateBytes      int64 `json:"state_bytes"`                 // of all tasks
	StateLimitBytes int64 `json:"state_limit_bytes,omitempty"` // that state may take just now; over it entries are spilled
	UploadBytes     int64 `json:"upload_bytes"`                // changes of the state that no completed checkpoint holds yet
	SpilledBytes    int64 `json:"spilled_bytes"`               // state on its disk
} // @name WorkerMemory

// A WorkerList lists workers by id.
type WorkerList struct {
	Workers []Worker `json:"workers"`
} // @name WorkerList

// listWorkers lists the workers.
//
//	@Summary	List the workers and what they run
//	@Tags		cluster
//	@Produce	json
//	@Success	200	{object}	WorkerList
//	@Router		/v1/workers [get]
func (s *Server) listWorkers(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	workers, err := s.deps.Service.Workers(c.Request().Context())
	if err != nil {
		return err
	}
	list := WorkerList{Workers: []Worker{}}
	for _, w := range workers {
		v := Worker{
			ID: string(w.ID), Incarnation: w.Incarnation, PID: w.PID, Host: w.Host, Slots: w.Slots, FreeSlots: w.FreeSlots,
			Tasks: w.Tasks, Jobs: []string{}, HeardAt: w.HeardAt.UTC(),
			Memory: WorkerMemory{
				BudgetBytes: w.Memory.Budget, HeapBytes: w.Memory.Heap, StateBytes: w.Memory.State, StateLimitBytes: w.Memory.StateLimit,
				UploadBytes: w.Memory.Uploads, SpilledBytes: w.Memory.Spilled,
			},
		}
		for _, id := range w.Jobs {
			v.Jobs = append(v.Jobs, string(id))
		}
		list.Workers = append(list.Workers, v)
	}
	return c.JSON(http.StatusOK, list)
}

// A Cluster says what this server is and how what it depends on fares.
type Cluster struct {
	Version      string       `json:"version"`
	Workers      int          `json:"workers"`
	Slots        int          `json:"slots"`
	FreeSlots    int          `json:"free_slots"`
	Dependencies []Dependency `json:"dependencies"`
} // @name Cluster

// A Dependency is something that the server cannot do without.
type Dependency struct {
	Name    string `json:"name" example:"metastore"`
	Healthy bool   `json:"healthy"`
	Detail  string `json:"detail,omitempty"`
} // @name Dependency

// Health is the answer of a server that works.
type Health struct {
	Status string `json:"status" example:"ok"`
} // @name Health

// probeWithin bounds each look at a dependency.
const probeWithin = 2 * time.Second

// dependencies looks at each dependency.
func (s *Server) dependencies(ctx context.Context) (list []Dependency, healthy bool) {
	list, healthy = []Dependency{}, true
	for _, p := range s.opts.Probes {
		d := Dependency{Name: p.Name, Healthy: true}
		pctx, cancel := context.WithTimeout(ctx, probeWithin)
		if err := p.Check(pctx); err != nil {
			s.deps.Logger.Warn("dependency not healthy", "dependency", p.Name, "err", withoutURL(err))
			d.Healthy, d.Detail, healthy = false, "cannot be reached; the server's log says why", false
		}
		cancel()
		list = append(list, d)
	}
	return list, healthy
}

// getCluster shows the cluster.
//
//	@Summary	Show the version and what the server depends on
//	@Tags		cluster
//	@Produce	json
//	@Success	200	{object}	Cluster
//	@Router		/v1/cluster [get]
func (s *Server) getCluster(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	v := Cluster{Version: s.opts.Version}
	v.Dependencies, _ = s.dependencies(ctx)
	workers, err := s.deps.Service.Workers(ctx)
	if err != nil {
		return err
	}
	for _, w := range workers {
		v.Workers++
		v.Slots += w.Slots
		v.FreeSlots += w.FreeSlots
	}
	return c.JSON(http.StatusOK, v)
}

// getHealth says that the process lives.
//
//	@Summary	Liveness: the process answers
//	@Tags		cluster
//	@Produce	json
//	@Success	200	{object}	Health
//	@Router		/healthz [get]
func (s *Server) getHealth(c echo.Context) error {
	return c.JSON(http.StatusOK, Health{Status: "ok"})
}

// getReady says whether requests can be answered.
//
//	@Summary	Readiness: what the server depends on answers too
//	@Tags		cluster
//	@Produce	json
//	@Success	200	{object}	Health
//	@Router		/readyz [get]
func (s *Server) getReady(c echo.Context) error {
	list, healthy := s.dependencies(c.Request().Context())
	if healthy {
		return c.JSON(http.StatusOK, Health{Status: "ready"})
	}
	var sick []string
	for _, d := range list {
		if !d.Healthy {
			sick = append(sick, d.Name)
		}
	}
	return refuse(http.StatusServiceUnavailable, "not ready: "+strings.Join(sick, " and ")+" cannot be reached")
}
