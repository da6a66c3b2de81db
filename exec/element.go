package exec

import (
	"weir"
	"weir/checkpoint"
)

// A Network gives the ends of an attempt's channels. Each end is asked for once.
type Network interface {
	// Inbound opens the receiving end of a channel. Whenever a frame becomes available
	// a value is put into wake, unless one is there already (wake has room for one and
	// is shared by all inputs of the task).
	Inbound(id weir.ChannelID, wake chan<- struct{}) (weir.Inbound, error)
	// Outbound opens the sending end; local says that the receiver runs in this worker,
	// so that frames carry Batch instead of Bytes. Once the channel is broken, broken is
	// called with what Send fails with from then on; it must not block.
	Outbound(id weir.ChannelID, broken func(error)) (out weir.Outbound, local bool, err error)
}

// A Reporter hears what tasks do. Its methods are called from the goroutines of
// tasks and must not block for long: a worker queues what it hears.
type Reporter interface {
	// Ack reports a durable snapshot, or with Failure set that there will be none.
	Ack(a checkpoint.Ack)
	// Ended reports that a source task has no more data: its channels carry `end`. A
	// task restored as ended reports it again.
	Ended(task weir.TaskID)
	// Committed reports that the task's sinks have made the segments of id, and of
	// everything before it, visible.
	Committed(task weir.TaskID, id weir.CheckpointID)
	// Failed reports the end of a task by a failure; restart says whether another
	// attempt may fare better. Run returns afterwards.
	Failed(task weir.TaskID, f weir.Failure, restart bool)
}
