// Package sim simulates a job and its checkpoints in one goroutine, from a seed: the
// real coordinator, aligner, restore and collection; a metastore and an object store in
// memory that fail before or after doing their work; a network that delays, drops and
// repeats acks, triggers, notifies and confirmations; workers and servers that die at
// any step, and live on as zombies that do not know it yet.
//
//	splits ─▶ source 0…p ══hash══▶ counter 0…p ▸ sink ─▶ visible output
//
// A counter emits (key, n) for the n-th row of a key. So the visible output of a job
// that read each key N times must be (key, 1) … (key, N), each exactly once: a row lost
// or counted twice, state restored twice or not at all, a segment made visible twice, out of
// turn or without a decision would show.
//
// Checked on the way: every id is new (I1); no held channel is read (I3, the aligner
// panics); segments become visible only after the decision, in barrier order, once (I10);
// after every deletion each kept manifest and all its objects are there (I9); each
// attempt can be restored from its base (I8, I9); a zombie changes nothing.
//
// A failing seed prints its trace; Run with the same seed repeats it.
package sim
