package checkpoint

// A ReasonDoc says what a reason in the failure of a checkpoint means.
type ReasonDoc struct {
	Reason string
	// Counts: a checkpoint that failed so counts towards tolerable_failures.
	Counts   bool
	Meaning  string
	WhatToDo string
}

// Reasons lists the reasons by name.
func Reasons() []string {
	var names []string
	for _, d := range ReasonDocs() {
		names = append(names, d.Reason)
	}
	return names
}

// ReasonDocs is the closed list of the reasons for which a checkpoint or savepoint does not
// complete. A savepoint's failure never counts.
func ReasonDocs() []ReasonDoc {
	return []ReasonDoc{
		{
			ReasonTimeout, true,
			"It expired before every task had acknowledged. The failure names the task that the others waited for, or the first three of several, and what each was at: its barrier was behind records, or it was still cutting or storing its snapshot.",
			"Back-pressured: look downstream of the task for the one that is busy, and give the job more parallelism. Storing: see how fast object storage is. Or raise checkpoint.timeout.",
		},
		{
			ReasonDeclined, true,
			"A task could not take its snapshot; the failure says which, on what worker, and why.",
			"What the message names: mostly object storage that refuses writes, or a full disk.",
		},
		{
			ReasonManifest, true,
			"All snapshots were stored, but the manifest that lists them could not be written in three tries.",
			"See whether the server reaches object storage and may write there.",
		},
		{
			ReasonStore, true,
			"The metastore did not record the decision, and says so when it is asked again. Or it did not record that one began, for all that is known: once it is back, a row says which one was due and why it failed; that does not count.",
			"See whether the metastore works; the message has its answer.",
		},
		{
			ReasonTrigger, true,
			"It expired because a source could not be told to begin: its worker did not take the trigger.",
			"See whether the worker that the failure names runs and reaches NATS.",
		},
		{
			ReasonAttemptEnded, false,
			"The attempt that took it ended: the job failed, was stopped or canceled, or its server died.",
			"Nothing; if the job failed, see its own failure.",
		},
		{
			ReasonCanceled, false,
			"Its user canceled it.",
			"Nothing.",
		},
		{
			ReasonSuperseded, false,
			"A newer checkpoint completed first; this one would have moved the job back.",
			"Nothing. Where it happens all the time, lower checkpoint.max_concurrent.",
		},
		{
			ReasonMetastoreBack, false,
			"Storage knows checkpoints or attempts that the metastore does not: the metastore was restored from a backup, or lost what it had confirmed. The job fails, and nothing is deleted.",
			"Restore the metastore to its newest state, or adopt the newest checkpoint: weir job adopt.",
		},
	}
}
