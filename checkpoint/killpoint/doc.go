// Package killpoint names the moments of the checkpoint protocol at which a process may
// die, so that tests can make it die there.
//
//	if err := store.CompleteCheckpoint(…); …     ← killpoint.Here("before-decision") above it,
//	                                               killpoint.Here("after-decision") below
//
// In an ordinary build Here is an empty function that inlines to nothing: the calls cost
// nothing and can do nothing. Under the build tag killpoints a process reads its plan
// once, from WEIR_KILL:
//
//	WEIR_KILL=after-decision:3                 the third passage kills the process with SIGKILL
//	WEIR_KILL=before-ack:1,stop                the first stops it with SIGSTOP; SIGCONT wakes it up
//	WEIR_KILL=after-decision:1,armed=FILE      passages count once FILE exists
//
// What it does it says on standard error before, in one line that begins with
// "killpoint:", and in another one that it goes on. A plan that cannot be read, or that names no point, ends the process.
//
// The names are a closed list (Points), in the order in which a checkpoint passes them.
// Each is used exactly once in the code; a test walks the source and says so.
package killpoint
