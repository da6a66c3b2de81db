// Package weir holds the nouns of Weir, a platform that runs SQL over streams
// and never loses count: jobs and attempts, key groups, the frames that a channel
// carries, and the four sentinel errors. It imports the standard library only and
// every other package may import it.
//
//	job ──1:n──▶ attempt ──1:n──▶ task (one subtask, running)
//	  │                             │
//	  └──1:n──▶ checkpoint ◀──ack───┘
//
// Invariants
//
//  1. A job id is random (128 bits); an attempt is a number that grows over the
//     life of the job and a random tag, so that a forgotten history never meets a
//     new one.
//  2. Key groups are a pure function of the encoded key and of max parallelism;
//     the hash is frozen by a golden test.
//  3. Only the transitions that Status.CanBecome allows ever happen.
package weir
