package job

import (
	"time"

	"weir"
)

// An event is something that happened. Those of an attempt name it; events of another
// one are ignored.
type event interface{ isEvent() }

type (
	// evStart is the first event. Saved: the base is the savepoint that the stop in the
	// job's row asked for.
	evStart struct{ Saved bool }
	// evWished: the row was read again at a time; its Desired and StopSavepoint count.
	evWished struct {
		Job    weir.Job
		ReadAt time.Time
	}
	// evBegun: the attempt is recorded. Saved as in evStart: the stop's savepoint was
	// completed by the attempt before, which failed on its way to the end.
	evBegun struct {
		Job   weir.Job
		Saved bool
	}
	// evLoaded: the snapshot is read (or there is none), for tasks in slots; or it
	// cannot be.
	evLoaded struct {
		Need, Tasks int
		Failure     *weir.Failure
		Restart     bool
	}
	// evPlaced: slots are reserved, or Missing of them are not there. Wait: not all
	// workers may have been heard of yet.
	evPlaced struct {
		Slots   []weir.WorkerID
		Missing int
		Wait    bool
	}
	evSlots    struct{} // slots may have become free
	evTaskRuns struct {
		Attempt weir.AttemptID
		Task    weir.TaskID
	}
	evTaskFailed struct {
		Attempt weir.AttemptID
		Failure weir.Failure
		Restart bool
	}
	evWorkerLost struct {
		Worker weir.WorkerID
		Why    string
	}
	// evSaved: the stop's savepoint is complete and its output visible, or failed.
	evSaved struct {
		Attempt weir.AttemptID
		Failure *weir.Failure
	}
	// evFinal: the final checkpoint is complete and its output visible.
	evFinal struct{ Attempt weir.AttemptID }
	// evEnded: no task and no coordinator of the attempt runs, as far as can be known, and
	// as long as actEnd waited.
	evEnded struct {
		Attempt weir.AttemptID
		Waited  bool
	}
	// evCommitted: no commit is open any more, or Problem says why some still are.
	evCommitted struct{ Problem string }
	evTick      struct{}
)

func (evStart) isEvent()      {}
func (evWished) isEvent()     {}
func (evBegun) isEvent()      {}
func (evLoaded) isEvent()     {}
func (evPlaced) isEvent()     {}
func (evSlots) isEvent()      {}
func (evTaskRuns) isEvent()   {}
func (evTaskFailed) isEvent() {}
func (evWorkerLost) isEvent() {}
func (evSaved) isEvent()      {}
func (evFinal) isEvent()      {}
func (evEnded) isEvent()      {}
func (evCommitted) isEvent()  {}
func (evTick) isEvent()       {}

// An action is something to do. Those that answer name the event.
type action interface{ isAction() }

type (
	actBegin  struct{}              // record the next attempt → evBegun
	actLoad   struct{}              // read the base's manifest → evLoaded
	actPlace  struct{ Need int }    // reserve slots → evPlaced
	actDeploy struct{}              // send the tasks to their workers
	actRun    struct{}              // start the coordinator of checkpoints
	actSave   struct{ Name string } // take the stop's savepoint → evSaved
	// actEnd ends coordinator and tasks and gives the slots back → evEnded. Close: the
	// tasks end by themselves. Wait: the answer waits for workers that take their time.
	actEnd    struct{ Close, Wait bool }
	actCommit struct{} // complete open commits → evCommitted
	actStatus struct {
		To      weir.Status
		Failure *weir.Failure
	}
	actResume struct{ Stop string }          // record that the user's stop with that savepoint is over: desired is running
	actNote   struct{ Kind, Message string } // append to the history
	actDone   struct{}                       // the machine has no more to do
)

func (actBegin) isAction()  {}
func (actLoad) isAction()   {}
func (actPlace) isAction()  {}
func (actDeploy) isAction() {}
func (actRun) isAction()    {}
func (actSave) isAction()   {}
func (actEnd) isAction()    {}
func (actCommit) isAction() {}
func (actStatus) isAction() {}
func (actResume) isAction() {}
func (actNote) isAction()   {}
func (actDone) isAction()   {}
