package checkpoint

import "fmt"

// An OptionDoc says what an option means to its user.
type OptionDoc struct {
	Name    string // as in JSON, and behind "checkpoint." in SET
	Flink   string // behind "execution.checkpointing."
	Default string
	Range   string
	Meaning string
	// When to change it.
	Change string
}

// OptionDocs lists the options in their order, with the defaults of a job that names none.
func OptionDocs() []OptionDoc {
	docs := []OptionDoc{
		{
			Name: "interval", Flink: "interval", Range: "0, or 1ms and more",
			Meaning: "Between the starts of periodic checkpoints. The first one of a run comes sooner by up to half of it, 30s at most, so that jobs which begin together do not take theirs together. 0: only on request, and the last one of a bounded job.",
			Change:  "Shorter: less is read again after a failure, and output to files appears sooner. Longer: fewer objects and rows.",
		},
		{
			Name: "mode", Flink: "mode", Range: "exactly_once, at_least_once",
			Meaning: "Whether a channel is held while its operator waits for the other barriers.",
			Change:  "at_least_once where no record may wait for a barrier, and a row counted twice after a failure does no harm.",
		},
		{
			Name: "timeout", Flink: "timeout", Range: "1ms and more",
			Meaning: "From the trigger to the last ack. What takes longer is given up, and the failure says who was waited for.",
			Change:  "Longer where large states go to slow storage.",
		},
		{
			Name: "min_pause", Flink: "min-pause", Range: "0s and more",
			Meaning: "From the end of the last completed checkpoint to the next periodic one. Above 0, periodic ones do not overlap.",
			Change:  "Where checkpoints take about as long as the interval, so that the job also gets on.",
		},
		{
			Name: "max_concurrent", Flink: "max-concurrent-checkpoints", Range: "1 to 16",
			Meaning: "How many checkpoints may be pending. Savepoints do not count.",
			Change:  "Above 1 where one slow upload should not keep the next one from beginning.",
		},
		{
			Name: "retention", Flink: "externalized-checkpoint-retention", Range: "retain_on_cancellation, delete_on_cancellation, none",
			Meaning: "Which checkpoints outlive the job's end. none: neither a cancel nor a failure leaves one.",
			Change:  "delete_on_cancellation where a canceled job never starts again.",
		},
		{
			Name: "num_retained", Flink: "num-retained", Range: "1 and more",
			Meaning: "How many of the newest completed checkpoints are kept. The base and savepoints are kept besides.",
			Change:  "More, to be able to go back further.",
		},
		{
			Name: "tolerable_failures", Flink: "tolerable-failed-checkpoints", Range: "0 and more",
			Meaning: "How many checkpoints in a row may fail before the attempt fails and the job restarts from its base.",
			Change:  "Above 0 where storage is away now and then: the job goes on meanwhile, and has more to read again.",
		},
	}
	defaults, list := DefaultOptions(), optionList()
	for i := range docs {
		docs[i].Default = fmt.Sprint(list[i].get(defaults))
	}
	return docs
}
