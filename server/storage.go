package server

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/checkpoint"
	"weir/server/job"
)

// An AdoptRequest names what a job is to go on from.
type AdoptRequest struct {
	// The newest whole one when absent.
	Checkpoint int64 `json:"checkpoint,omitempty" validate:"omitempty,min=1" example:"7"`
} // @name AdoptRequest

// An AdoptableCheckpoint is a checkpoint or savepoint whose manifest lies in storage.
type AdoptableCheckpoint struct {
	Checkpoint int64  `json:"checkpoint"`
	Attempt    string `json:"attempt,omitempty"` // that took it: number and tag
	Type       string `json:"type,omitempty" enums:"checkpoint,savepoint"`
	Savepoint  string `json:"savepoint,omitempty"` // its name
	Final      bool   `json:"final"`               // the last one of a bounded job
	StateBytes int64  `json:"state_bytes"`
	Known      bool   `json:"known"`             // the metastore has given its number out
	Whole      bool   `json:"whole"`             // it can be restored
	Problem    string `json:"problem,omitempty"` // why not
} // @name AdoptableCheckpoint

// An AdoptableList lists what lies in storage of a job, newest first.
type AdoptableList struct {
	Checkpoints []AdoptableCheckpoint `json:"checkpoints"`
} // @name AdoptableList

// An Adoption is the job, and what it goes on from.
type Adoption struct {
	Job        Job                 `json:"job"`
	Checkpoint AdoptableCheckpoint `json:"checkpoint"`
} // @name Adoption

func viewCandidate(c checkpoint.Candidate) AdoptableCheckpoint {
	v := AdoptableCheckpoint{Checkpoint: int64(c.Checkpoint), Known: !c.Newer, Whole: c.Problem == "", Problem: c.Problem}
	if m := c.Manifest; m != nil {
		v.Attempt, v.Type, v.Savepoint, v.Final, v.StateBytes = m.Attempt.String(), string(m.Type), m.Savepoint, m.Final, m.Bytes()
	}
	return v
}

// listAdoptable lists what storage holds of a job.
//
//	@Summary		List the checkpoints of a job that lie in storage
//	@Description	Newest first, whatever the metastore knows of them: what a job that failed as metastore_behind can go on from.
//	@Tags			storage
//	@Produce		json
//	@Param			job	path		string	true	"id or name"
//	@Success		200	{object}	AdoptableList
//	@Router			/v1/jobs/{job}/adoptable [get]
func (s *Server) listAdoptable(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	_, found, err := s.deps.Service.Adoptable(c.Request().Context(), param(c, "job"))
	if err != nil {
		return err
	}
	list := AdoptableList{Checkpoints: []AdoptableCheckpoint{}}
	for _, candidate := range found {
		list.Checkpoints = append(list.Checkpoints, viewCandidate(candidate))
	}
	return c.JSON(http.StatusOK, list)
}

// adoptCheckpoint lets a job go on from what storage holds.
//
//	@Summary		Let a job go on from a checkpoint in storage, after metastore_behind
//	@Description	The checkpoint becomes what the job starts from, and its numbers go on above all that storage holds. The job is not started.
//	@Tags			storage
//	@Accept			json
//	@Produce		json
//	@Param			job		path		string			true	"id or name"
//	@Param			adopt	body		AdoptRequest	false	"options"
//	@Success		200		{object}	Adoption
//	@Router			/v1/jobs/{job}/adopt [post]
func (s *Server) adoptCheckpoint(c echo.Context) error {
	var req AdoptRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	j, chosen, err := s.deps.Service.Adopt(c.Request().Context(), param(c, "job"), weir.CheckpointID(req.Checkpoint))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, Adoption{Job: s.viewJob(c, j), Checkpoint: viewCandidate(chosen)})
}

// A RepairRequest says what a repair of storage may do.
type RepairRequest struct {
	// Id or name; all jobs when absent.
	Job string `json:"job,omitempty"`
	// Read every object that is kept and compare its checksum.
	Deep bool `json:"deep,omitempty"`
	// Delete also what is newer than the metastore knows, but of jobs that failed as metastore_behind.
	Unknown bool `json:"unknown,omitempty"`
} // @name RepairRequest

// A StorageReport says what lies in storage that should not, and what does not that should.
type StorageReport struct {
	Jobs     int              `json:"jobs"`
	Objects  int              `json:"objects"`
	Bytes    int64            `json:"bytes"`
	Sound    bool             `json:"sound"`    // nothing that is kept, after a repair still, is missing or damaged
	GivenUp  int              `json:"given_up"` // checkpoints that could not be restored any more, and that the repair gave up
	Findings []StorageFinding `json:"findings"`
} // @name StorageReport

// A StorageFinding is one thing that is wrong.
type StorageFinding struct {
	Fault      string `json:"fault" enums:"orphan,missing,damaged,unknown,foreign,unfinished"`
	Job        string `json:"job,omitempty"`
	Checkpoint int64  `json:"checkpoint,omitempty"`
	Savepoint  string `json:"savepoint,omitempty"` // its name
	Object     string `json:"object"`              // key in object storage
	Bytes      int64  `json:"bytes"`
	Problem    string `json:"problem"`            // what is wrong, and what to do about it
	Repaired   string `json:"repaired,omitempty"` // what the repair did
} // @name StorageFinding

func viewReport(r *job.StorageReport) StorageReport {
	v := StorageReport{Jobs: r.Jobs, Objects: r.Objects, Bytes: r.Bytes, Sound: r.Sound(), GivenUp: len(r.GivenUp), Findings: []StorageFinding{}}
	for _, f := range r.Findings {
		v.Findings = append(v.Findings, StorageFinding{
			Fault: string(f.Fault), Job: string(f.Job), Checkpoint: int64(f.Checkpoint), Savepoint: f.Savepoint,
			Object: f.Key, Bytes: f.Bytes, Problem: f.Problem, Repaired: f.Repaired,
		})
	}
	return v
}

// checkStorage compares storage with the metastore.
//
//	@Summary		Check object storage
//	@Description	Compares what lies in storage with what the metastore knows: orphans, missing and damaged objects, what the metastore does not know, unfinished uploads. It changes nothing.
//	@Tags			storage
//	@Produce		json
//	@Param			job		query		string	false	"id or name; all jobs when absent"
//	@Param			deep	query		bool	false	"read every object that is kept and compare its checksum"
//	@Success		200		{object}	StorageReport
//	@Router			/v1/storage/check [get]
func (s *Server) checkStorage(c echo.Context) error {
	q := query(c)
	req := job.StorageRequest{Job: q.text("job"), Deep: q.flag("deep")}
	if err := q.done(); err != nil {
		return err
	}
	report, err := s.deps.Service.CheckStorage(c.Request().Context(), req)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewReport(report))
}

// repairStorage does what a check says can be done.
//
//	@Summary		Check object storage and repair it
//	@Description	Deletes orphans and unfinished uploads, and gives up checkpoints that are missing or damaged where nothing but retention keeps them. Savepoints, and what a job would start from, are only named. given_up counts what was lost so.
//	@Tags			storage
//	@Accept			json
//	@Produce		json
//	@Param			repair	body		RepairRequest	false	"options"
//	@Success		200		{object}	StorageReport
//	@Router			/v1/storage/repair [post]
func (s *Server) repairStorage(c echo.Context) error {
	var req RepairRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	report, err := s.deps.Service.CheckStorage(c.Request().Context(), job.StorageRequest{Job: req.Job, Deep: req.Deep, Repair: true, Unknown: req.Unknown})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewReport(report))
}
