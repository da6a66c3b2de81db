package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"weir"
)

// An Event is one line of a job's history.
type Event struct {
	Seq     int64           `json:"seq"` // within the job, from 1
	At      time.Time       `json:"at"`
	Kind    string          `json:"kind" enums:"status,attempt,checkpoint,savepoint,failure,commit"`
	Attempt int64           `json:"attempt"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty" swaggertype:"object"` // details for programs
} // @name Event

// An EventList is a page of a job's history.
type EventList struct {
	Events []Event `json:"events"`
	Next   int64   `json:"next,omitempty"` // after (with order=desc: before) of the next page; absent: this is the last
} // @name EventList

func viewEvent(e weir.Event) Event {
	return Event{Seq: e.Seq, At: e.At.UTC(), Kind: e.Kind, Attempt: e.Attempt, Message: e.Message, Data: e.Data}
}

// listEvents lists or follows a job's history.
//
//	@Summary		Show a job's history, or follow it
//	@Description	With Accept: text/event-stream the answer is a stream of events, oldest first, named after their kind; an event's id is its seq and may be given as Last-Event-ID.
//	@Tags			jobs
//	@Produce		json,text/event-stream
//	@Param			job		path		string	true	"id or name"
//	@Param			order	query		string	false	"asc: oldest first; desc: newest first"	Enums(asc,desc)	default(asc)
//	@Param			after	query		int		false	"only events after this seq"			minimum(0)
//	@Param			before	query		int		false	"only events before this seq; with order=desc"	minimum(1)
//	@Param			limit	query		int		false	"events per page"						default(1000)	minimum(1)	maximum(10000)
//	@Success		200		{object}	EventList
//	@Router			/v1/jobs/{job}/events [get]
func (s *Server) listEvents(c echo.Context) error {
	q := query(c)
	ask := eventQuery(q, wantsStream(c.Request()))
	j, err := s.jobOf(c, q)
	if err != nil {
		return err
	}
	if wantsStream(c.Request()) {
		return s.streamEvents(c, j, ask.after)
	}
	read, from := s.deps.History.Events, ask.after
	if ask.desc {
		read, from = s.deps.History.NewestEvents, ask.before
	}
	events, err := read(c.Request().Context(), j.ID, from, ask.limit+1)
	if err != nil {
		return err
	}
	list := EventList{Events: []Event{}}
	if len(events) > ask.limit {
		events = events[:ask.limit]
		list.Next = events[ask.limit-1].Seq
	}
	for _, e := range events {
		list.Events = append(list.Events, viewEvent(e))
	}
	return c.JSON(http.StatusOK, list)
}

// eventsAsked are the query parameters of listEvents.
type eventsAsked struct {
	desc          bool
	after, before int64
	limit         int
}

func eventQuery(q *queryReader, stream bool) eventsAsked {
	ask := eventsAsked{
		after: q.number("after", 0, 0, 1<<62), before: q.number("before", 0, 1, 1<<62), limit: int(q.number("limit", 1000, 1, 10000)),
	}
	switch order := q.text("order"); {
	case order == "desc" && stream:
		q.fault("order", "is desc: a stream goes on from the oldest to the newest")
	case order == "desc":
		ask.desc = true
	case order != "" && order != "asc":
		q.fault("order", "is "+quoted(order)+": give asc or desc")
	}
	if ask.desc && ask.after > 0 {
		q.fault("after", "does not go with order=desc: give before")
	}
	if !ask.desc && ask.before > 0 {
		q.fault("before", "goes with order=desc only: give after")
	}
	return ask
}

// streamEvents sends a job's history as it is written, until the job is deleted.
func (s *Server) streamEvents(c echo.Context, j weir.Job, after int64) error {
	ctx, cancel := streamContext(c.Request())
	defer cancel()
	if id := c.Request().Header.Get("Last-Event-ID"); id != "" {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return refuse(http.StatusBadRequest, "Last-Event-ID "+quoted(id)+" is none that was given out")
		}
		after = max(after, n)
	}
	out := newStream(c)
	for {
		events, err := s.deps.History.Events(ctx, j.ID, after, 1000)
		if err == nil && len(events) == 0 {
			_, err = s.deps.Service.Get(ctx, string(j.ID)) // deleted: the end
		}
		if err != nil && problemOf(err, http.MethodGet).Status < 500 {
			return nil // the stream is over
		}
		for _, e := range events {
			out.put(e.Kind, itoa(e.Seq), viewEvent(e))
			after = e.Seq
		}
		if !out.pause(ctx, s.opts.Poll) {
			return nil
		}
	}
}

// streamJobs sends every job, and then each one that changes.
//
//	@Summary		Follow all jobs
//	@Description	A stream of events: job, with a Job, for each job there is and then whenever one changes, and deleted, with {"id":…}.
//	@Tags			jobs
//	@Produce		text/event-stream
//	@Success		200	{string}	string
//	@Router			/v1/events [get]
func (s *Server) streamJobs(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	ctx, cancel := streamContext(c.Request())
	defer cancel()
	out := newStream(c)
	shown := map[weir.JobID][]byte{}
	for {
		jobs, err := s.deps.Service.List(ctx, weir.JobFilter{})
		if err == nil {
			s.putJobs(c, out, jobs, shown)
		}
		if !out.pause(ctx, max(s.opts.Poll, time.Second/2)) {
			return nil
		}
	}
}

// putJobs puts what is not shown yet, and what is not there any more.
func (s *Server) putJobs(c echo.Context, out *stream, jobs []weir.Job, shown map[weir.JobID][]byte) {
	there := make(map[weir.JobID]bool, len(jobs))
	for i := len(jobs) - 1; i >= 0; i-- { // the oldest first
		j := jobs[i]
		there[j.ID] = true
		body, err := json.Marshal(s.viewJob(c, j))
		if err != nil {
			s.deps.Logger.Warn("job not shown", "job", j.ID, "err", err)
			continue
		}
		if !bytes.Equal(body, shown[j.ID]) {
			shown[j.ID] = body
			out.put("job", "", json.RawMessage(body))
		}
	}
	for id := range shown { // their order does not matter: each is gone
		if !there[id] {
			delete(shown, id)
			out.put("deleted", "", map[string]string{"id": string(id)})
		}
	}
}

// An Attempt is one try at running a job.
type Attempt struct {
	Number       int64      `json:"number"`
	Tag          string     `json:"tag"`
	Term         int64      `json:"term"` // of the lease under which it began
	Parallelism  int        `json:"parallelism"`
	RestoredFrom string     `json:"restored_from" example:"checkpoint:7"`
	StartedAt    time.Time  `json:"started_at"`
	RunningAt    *time.Time `json:"running_at,omitempty"`
	EndedAt      *time.Time `json:"ended_at,omitempty"`
	EndedBy      string     `json:"ended_by,omitempty"` // a status or a failure's reason
	Failure      *Failure   `json:"failure,omitempty"`
} // @name Attempt

// An AttemptList lists attempts, newest first.
type AttemptList struct {
	Attempts []Attempt `json:"attempts"`
} // @name AttemptList

// listAttempts lists a job's attempts.
//
//	@Summary	List a job's attempts, newest first
//	@Tags		jobs
//	@Produce	json
//	@Param		job	path		string	true	"id or name"
//	@Success	200	{object}	AttemptList
//	@Router		/v1/jobs/{job}/attempts [get]
func (s *Server) listAttempts(c echo.Context) error {
	j, err := s.jobOf(c, query(c))
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	attempts, err := s.deps.History.Attempts(ctx, j.ID)
	if err != nil {
		return err
	}
	list := AttemptList{Attempts: []Attempt{}}
	for _, a := range attempts {
		list.Attempts = append(list.Attempts, Attempt{
			Number: a.ID.Number, Tag: a.ID.Tag, Term: a.Term, Parallelism: a.Parallelism, RestoredFrom: s.snapshotText(ctx, j.ID, a.RestoredFrom),
			StartedAt: a.StartedAt.UTC(), RunningAt: optional(a.RunningAt), EndedAt: optional(a.EndedAt), EndedBy: a.EndedBy, Failure: viewFailure(a.Failure),
		})
	}
	return c.JSON(http.StatusOK, list)
}
