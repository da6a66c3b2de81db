// Package transport moves frames between the tasks of an attempt and commands
// between servers and workers. It knows NATS, and nothing of batches, plans or
// checkpoints: a payload is bytes (between workers) or an opaque value (within one).
//
//	task ──Send──▶ Sender ═══ data subject ═══▶ Receiver ──Poll──▶ task
//	(exec)         channel.go, sender.go  NATS   receiver.go       (exec)
//	                  ▲                             │
//	                  └─ ack {lives, seq, consumed, limit, gap} ┘
//
// Core NATS delivers at most once: it drops for slow readers, around a reconnect,
// and before a subscription has spread. So a channel is a small reliable protocol
// above it, a pair of pure machines; nats.go drives them. A channel within a worker
// is a bounded queue in memory (local.go) that keeps the same rules.
//
// # The protocol
//
// All frames of a channel, of every kind, share one sequence from 1. The receiver
// answers with one small message, the ack: seq (all up to it arrived), consumed
// (weight the task has taken, from the beginning), limit (weight the sender may
// send in all, from the beginning) and gap (something after seq was seen). All four
// are totals, so an ack that is lost, late or repeated does no harm. The sender
// keeps what is not acknowledged and, on a gap, sends again from seq+1: no more than the
// smallest window at first, then more with each ack, so that what was lost in a burst is not
// lost again in one. On a slow way the gap is told many times before what went again shows: then
// little goes each time, and ever more seldom.
//
// A probe names the last sequence that was transmitted and asks for an ack. It opens the
// channel (a sender may start before its peer has subscribed), finds a lost tail
// (unacknowledged frames and silence), a lost ack, a lost grant of credit, and what
// a reconnect swallowed. While something is unacknowledged or a Send waits, the
// probe is repeated, 50 ms apart at first and 500 ms at most.
//
// Each end has a life, a random number drawn when it is opened. Every message names the
// life that sends it and, as far as it is known, the one that it is for. An end is bound
// to the first life that it hears. Another one later, or a message for another one than
// itself, says that an end was opened anew: frames that a life before sent or took are
// not to be had any more, so the channel is broken, for good. Of a message of another
// life nothing is believed; messages that come very late may so break a channel that
// would have done, and never join what does not belong together. A broken end says
// nothing more, but that a sender tells another receiver of the one it knew, which has it
// break too: its task may wait for frames that went there. A receiver that has heard no
// sender says every 5 s that it is there, for a sender that has nothing to say.
//
// The silence of a peer is the time that a sender waits for a word (something is
// unacknowledged, or a Send waits) while its connection is there and its process awake: a
// tick that comes more than 2 s late is our own sleep. Any word ends it, and so does the
// loss of our connection, which may have taken the word along. After 30 s the channel is
// broken.
//
// A frame weighs its encoded length, header included, so that frames without
// payload are bounded too. Credit follows time: about 200 ms of work at the rate
// at which the task was seen to consume while frames waited for it, within a minimum
// and a maximum; the maximum shrinks when many channels share a connection. A frame
// larger than the whole window passes alone. Frames are collected into messages that NATS
// takes; one that is itself larger, since max_payload was lowered after its task was
// deployed, breaks the channel when it is to be sent: the next attempt's frames are smaller.
//
// # Invariants
//
//	T1 Frames of a channel are polled in the order they were sent, each once.
//	T2 sent ≤ limit, or one frame alone is on its way: credit is never negative.
//	T3 What a receiver holds weighs at most the largest window, or is one frame;
//	   the sender holds no more than that either.
//	T4 A held channel is not polled and holds up no other one: credit is per channel.
//	T5 Nothing is dropped to make room. What is dropped (repeats, frames after a gap,
//	   other attempts, damage, weight beyond the credit) is or was sent again.
//	T6 A frame of another attempt is never delivered: the attempt is in the subject
//	   and in the frame, and both are checked.
//	T7 While one's own connection is down no timer runs; what is due when it is back
//	   is sent at once.
//	T8 A command runs once per key (job, attempt, kind, id) in one incarnation of its
//	   worker, whichever servers send it: a repetition joins the running one, or gets
//	   the answer of one that was done. A refusal is not kept. What has no key runs once
//	   per message. What is addressed to one life of a worker reaches no other process
//	   of its name.
//	T9 A report returns only with an answer of a server, or with the end of its
//	   context: it is never lost silently. A heartbeat of any size is sent.
//	T10 What nobody waits for any more is not begun. A message says how long its sender
//	   still waits, counted from its arrival; no clock is compared with another's. A
//	   read's context ends then; what has a key is not left half done.
//	T11 A body that NATS does not take lies in an object: its length and SHA-256 are in
//	   the message and are checked, its key is below the cluster's own prefix or it is
//	   neither read nor deleted, and the asker deletes it when it waits no more.
//	T12 Frames of one life of a sender go to one life of a receiver, and of no other. Where
//	   an end was opened anew, one of both says weir.ErrBroken, or nothing was lost. A
//	   broken channel stays so.
//	T13 Without an end opened anew, 30 s of silence, or a frame that NATS does not take, no
//	   channel breaks.
//
// # Goroutines
//
// Network.Run owns one: the alarms of all channels (alarm.go), and the messages that collect
// small frames. Its work is in proportion to what is due, not to the number of channels. Acks,
// frames and probes are handled on the goroutines of nats.go, one per subscription,
// and Send and Poll on their caller's; a mutex per channel keeps them apart. A broken
// channel wakes its task from any of them.
// Control.Serve and Control.ServeReports run each request in a goroutine, of which a
// bounded number works and a bounded number waits, and return when all have ended. OpenNetwork and OpenControl start
// the goroutines of nats.go; Run and Close end them.
//
// # Failures
//
// A NATS server whose max_payload is below the least is left again, and tried once a
// second, as one that takes no connection: no attempt, command or heartbeat begins on it.
// A write that fails, as after 4 s in which a full socket has taken nothing, ends its
// connection: what was to be written may have been a subscription. A server that is there and
// does not answer in time is tried again at the start too, for 10 s.
//
// NATS away: Send blocks once its credit is used up, Poll says nothing is there,
// requests and reports wait; all go on by themselves. A channel whose end was opened anew,
// whose peer is silent, or whose frame is too large, is broken: Send and Poll fail with
// weir.ErrBroken, which says which channel, whose task, and why; another attempt opens new
// ones. A Send to nobody blocks until then, or until its context ends or the attempt is
// released (weir.ErrStale). A message that cannot be read, as by another version, is
// dropped; the log has one line a second. Where nats.go closes a connection for good, there is
// another one soon, with its subscriptions (renew.go). Ping tells absence (weir.ErrNotFound:
// no responders) from silence (context.DeadlineExceeded) and from one's own broken connection
// (weir.ErrConflict).
//
// A try that the end of a connection cuts off is repeated once it is back. Where nobody
// listens, tries come ever more rarely, up to 400 ms apart, each by chance a little
// sooner. Storage that does not take or give a body, or gives another one, is an error
// of the Request (weir.ErrConflict: try again) and is tried again by Publish, which
// writes the object anew with each try. What a crash leaves, a check of storage finds.
//
// # Security
//
// A connection is TLS where the server wants it or Security says so, and says who it is by
// password, token, nkey or creds; files are read anew for each connection. Which user may
// do what is for NATS to decide: subject.go makes all subjects so that it can, and
// deploy/nats.conf lists what servers and workers need. An answer's subject says whose it is
// (mailbox.go), so that no worker needs leave to answer anywhere. A subject that NATS forbids is
// logged, and ends a command that cannot be sent (weir.ErrInvalid); a refused connection
// is tried again more slowly. Nothing is authenticated within a message: workers of one
// cluster trust each other's frames.
//
// # Testing
//
// testdata/channel holds scripts over the pair of machines, one per way of losing.
// A property runs them over a network that drops, damages, repeats, reorders and delays,
// opens either end anew, and puts processes to sleep; a course of frames larger than the
// window is struck at every message.
// transporttest is the conformance suite, run on local channels, on an embedded NATS server
// and behind proxies that cut, refuse, delay and swallow. Frames have golden bytes and a
// fuzz test.
package transport
